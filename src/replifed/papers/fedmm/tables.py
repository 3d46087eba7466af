"""The searches behind the steps, and Remark 1's toy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from replifed.figures.artefact import Made, by_name
from replifed.papers.fedmm.paper import EXPERIMENTS, METHODS
from replifed.papers.fedmm.problems import TOYS
from replifed.papers.inputs import Inputs

# Readings of Remark 1's example.
TOY_NAMES = {
    "interval": "(θ − z)² / 2 on [−1, 1], T(s) = clip(s)",
    "rate": "θ z − log θ, T(s) = 1 / s",
}


def _steps(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Every step of every search; the score of a step that diverged is infinite.

    `edge`, `chaotic` and the cost (`runs`, `rounds`, `bits`) are the whole search's.
    """
    frames = []
    for experiment, methods in settings["artefact"]["tuned"].items():
        for method in methods:
            search = inputs.tuned(experiment, method)
            columns = {
                "experiment": experiment,
                "method": method,
                "beta": search["betas"],
                "score": [np.inf if score is None else score for score in search["scores"]],
                "chosen": [beta == search["beta"] for beta in search["betas"]],
                "rejected": [beta in search["rejected"] for beta in search["betas"]],
            }
            whole = {"edge": search["edge"], "chaotic": search["chaotic"], **search["cost"]}
            frames.append(pd.DataFrame(columns).assign(**whole))
    return pd.concat(frames, ignore_index=True)


def _render_steps(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people: a line for each search, its steps in increasing order."""
    rows = []
    for (experiment, method), lines in frame.groupby(["experiment", "method"], sort=False):
        one = lines.iloc[0]
        rows.append(
            {
                "Data": EXPERIMENTS[experiment],
                "Method": METHODS[method].label,
                "β: mean objective": ", ".join(map(_step, lines.sort_values("beta").itertuples())),
                "best": "at the bound" if one["edge"] else "inside",
                "stable": "none" if one["chaotic"] else "yes",
                "runs": f"{one['runs']:,}",
                "rounds": f"{one['rounds']:,}",
                "bits": f"{one['bits']:.2g}",
            }
        )
    return pd.DataFrame(rows)


def _step(line: Any) -> str:
    score = "diverged" if np.isinf(line.score) else f"{line.score:.4g}"
    return f"{line.beta:g}: {score}" + (" *" if line.chosen else " †" if line.rejected else "")


def _remark1(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Model after each round, its distance to the solution, and the solution T(mean of z)."""
    frames = []
    for experiment, methods in settings["artefact"]["runs"].items():
        for reading, z in settings["experiments"][experiment]["values"].items():
            solution = float(TOYS[reading].T(np.array([np.mean(z)]))[0])
            for method in methods:
                history = inputs.run(experiment, method)
                history = history[(history["reading"] == reading) & (history["round"] > 0)]
                frames.append(
                    history.assign(
                        z=" ".join(f"{value:g}" for value in z),
                        solution=solution,
                        error=history["theta"] - solution,
                    )
                )
    return pd.concat(frames, ignore_index=True)[
        ["reading", "z", "method", "round", "theta", "solution", "error"]
    ]


def _render_remark1(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people: the first and the last round."""
    rows = []
    for (reading, method), lines in frame.groupby(["reading", "method"], sort=False):
        first, last = lines.iloc[0], lines.iloc[-1]
        rows.append(
            {
                "Loss": TOY_NAMES[reading],
                "Clients' z": first["z"],
                "Aggregation of": "surrogates (FedMM)" if method == "fedmm" else "parameters",
                "θ after round 1": f"{first['theta']:.6g}",
                f"θ after round {last['round']}": f"{last['theta']:.6g}",
                "Solution": f"{first['solution']:.6g}",
                "Error": f"{last['error']:.3g}",
            }
        )
    return pd.DataFrame(rows)


TABLES = by_name(
    Made(
        "steps",
        "Searches of the step (not in the paper)",
        (
            "Mean objective over the last fifth of the search's rounds for each step that was tried, "
            "γ_t = min(1, β / √t). The range grows until the best step lies inside, at most to the β from "
            "which on γ_t is 1 in every round. * marks the chosen step, † one that was checked and is not "
            "stable: moved by its last bits a run goes elsewhere, or it ends no lower than it began. Runs, "
            "rounds and bits, both ways, are what each search cost, its checks for stability included. The "
            "repetitions are others than those reported; on MovieLens they share users and clients with them."
        ),
        _steps,
        _render_steps,
    ),
    Made(
        "remark1",
        "Remark 1: the toy",
        (
            "Two readings of the example, whose formulas are lost. Aggregating surrogates gives the solution "
            "in the first round, aggregating parameters a constant that is not the solution."
        ),
        _remark1,
        _render_remark1,
    ),
)
