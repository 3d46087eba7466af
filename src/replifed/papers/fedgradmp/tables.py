"""Table I: what methods declare of themselves, their client steps and the cost of searches."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replifed.engine.trials import Spent
from replifed.figures.artefact import Made, by_name
from replifed.papers.fedgradmp.paper import EXPERIMENTS, METHODS, declared
from replifed.papers.inputs import Inputs

# FedHT and FedIterHT share a line.
NAMES = {**METHODS, "fediterht": "FedHT / FedIterHT"}


def _table1(inputs: Inputs) -> pd.DataFrame:
    """A line for each method: declared properties, client steps on Figure 4's data, and costs of searches.

    Columns such as tuning_mild_bits are costs of the search of an experiment, zero without one.
    """
    rows = []
    searched = list(dict.fromkeys(name for name, _ in inputs.searches()))
    for experiment, method in inputs.runs():
        history = inputs.run(experiment, method)
        steps = sorted(set(history["step"].dropna()))
        final = history[history["round"] == history["round"].max()]["error"]
        row = {
            "method": method,
            **declared(method),
            "steps_run": " ".join(f"{step:g}" for step in steps),
            "best_final_error": float(np.min(final)),
        }
        for name in searched:
            search = inputs.tuned(name, method) if inputs.has(f"tuned:{name}/{method}") else {}
            cost = search.get("cost", Spent().record())
            row |= {f"tuning_{name}_{kind}": amount for kind, amount in cost.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def _mark(holds: bool) -> str:
    return "✓" if holds else "✗"


def _render_table1(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with marks, and costs as texts."""
    rows = []
    for row in frame.to_dict("records"):
        line = {
            "Method": NAMES[row["method"]],
            "Dictionary sparsity": _mark(row["dictionary"]),
            "Linear convergence to the optimal statistical bias": _mark(row["linear_to_bias"])
            + "*" * row["growing_batches"],
            "No client step size": _mark(row["no_client_step"]) + "**" * row["no_step_for_least_squares"],
            "Unbounded dissimilarity": _mark(row["unbounded_dissimilarity"]),
            "Client step sizes run here": str(row["steps_run"]) or "none",
        }
        for name, label in EXPERIMENTS.items():
            if f"tuning_{name}_runs" in frame:
                cost = Spent(*(row[f"tuning_{name}_{kind}"] for kind in Spent().record()))
                line[f"Tuning, {label}"] = str(cost)
        rows.append(line)
    return pd.DataFrame(rows)


_ACCURACIES = ["train_accuracy", "test_accuracy"]


def _digits_more(inputs: Inputs) -> pd.DataFrame:
    """A line for each experiment, method and variant: accuracies over the last tenth of the rounds.

    Column rounding is the largest distance in training accuracy from a perturbed run, zero without one.
    """
    rows = []
    for experiment, method in inputs.runs():
        history = inputs.run(experiment, method)
        own = history[(history["reading"] == "own") & (history["round"] > 0.9 * history["round"].max())]
        for variant, runs in own.groupby("variant", sort=False):
            means = runs.groupby("replicate").mean(numeric_only=True)
            others = means.filter(like="train_accuracy.").sub(means["train_accuracy"], axis=0).abs()
            labels = {"experiment": experiment, "method": method, "variant": variant, "seeds": len(means)}
            rounding = np.nan_to_num(others.to_numpy()).max(initial=0.0)
            rows.append(labels | means[_ACCURACIES].mean().to_dict() | {"rounding": rounding})
    return pd.DataFrame(rows)


def _render_digits_more(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with names."""
    named = frame.assign(experiment=frame["experiment"].map(EXPERIMENTS), method=frame["method"].map(METHODS))
    accuracies = {name: frame[name].map("{:.4f}".format) for name in [*_ACCURACIES, "rounding"]}
    headings = {"variant": "tau, or weight", "train_accuracy": "training", "test_accuracy": "test"}
    return named.drop(columns="seeds").assign(**accuracies).rename(columns=headings)


TABLES = by_name(
    Made(
        "digits_more",
        "Figure 6, on demand: few weights, and double precision",
        "Accuracies over the last tenth of the rounds, each method at its best step. Rounding: the largest "
        "distance in training accuracy between a run and a perturbed one; zero where runs have none.",
        _digits_more,
        _render_digits_more,
    ),
    Made(
        "table1",
        "Table I: comparison of methods",
        "What each method declares of itself, and the client step sizes it ran with on Figure 4's data. * "
        "needs minibatches that grow exponentially. ** needs none for least squares. Tuning: what the "
        "searches for these steps and for those of the other comparisons used, over all of a method's "
        "variants.",
        _table1,
        _render_table1,
    ),
)
