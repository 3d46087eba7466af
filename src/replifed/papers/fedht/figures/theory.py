"""Theorems 1 and 2: measured errors and bounds, conditions on the paper's data, and bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from replifed.algorithms.hard_thresholding import RATES
from replifed.figures.artefact import By, Grid
from replifed.figures.curves import note
from replifed.figures.lines import BLACK, GREY, VERMILLION, Line
from replifed.figures.summaries import averages, on_log_scale, summarise
from replifed.papers.fedht.figures.objectives import BY_EXPERIMENT, local_steps_lines
from replifed.papers.fedht.paper import EXPERIMENTS, METHODS, SPARSITIES
from replifed.papers.inputs import Inputs

_LARGEST_K = 10


def _rates(inputs: Inputs) -> pd.DataFrame:
    """Measured error and bound by round; and for each experiment of the paper the tau it uses and needs.

    Column series is "error" (|x_t - x*|^2, mean over seeds), "small batches" (the same, begun with fewer
    samples than the theorem asks for), "bound" (theta^t |x_0 - x*|^2), "tau used" or "tau needed" (by the
    theorem, at kappa = 1 and tau* = 1, the kindest case that any data could offer). Column holds is true if
    the theorem's conditions are met; first_batch is the largest of the seeds.
    """
    planted = inputs.experiment("planted")
    frames = []
    for method in inputs.methods("planted"):
        history = inputs.run("planted", method)
        first_batch = history.groupby(["local_steps", "batch"])["first_batch"].max()
        averages = on_log_scale(summarise(history, ["local_steps", "batch"], "error"))
        for (K, batch), curve in averages.groupby(["local_steps", "batch"], sort=False):
            rate = RATES[method](planted.condition, planted.sparsity, planted.planted, int(K))
            theorem = batch == "theorem"
            measured = curve[["round", "mean", "low", "high", "seeds"]].assign(
                theta=rate.theta, holds=rate.holds and theorem, first_batch=first_batch[K, batch]
            )
            series = "error" if theorem else "small batches"
            head: dict[str, Any] = {"panel": f"{METHODS[method]}, planted problem", "series": series}
            head |= {"method": method, "experiment": "planted", "local_steps": int(K)}
            frames.append(pd.DataFrame({**head, **measured}))
            if theorem:
                bound = curve["mean"].iloc[0] * rate.theta ** curve["round"]
                frames.append(frames[-1].assign(series="bound", mean=bound, low=bound, high=bound))
        for name, tau in SPARSITIES.items():
            rate = RATES[method](1.0, tau, 1, _LARGEST_K)
            taus = pd.Series({"tau used": float(tau), "tau needed": rate.least_sparsity})
            conditions = {"panel": f"{METHODS[method]}, conditions on the paper's data", "series": taus.index}
            conditions |= {"method": method, "experiment": name, "local_steps": _LARGEST_K, "round": 0}
            conditions |= {"mean": taus.array, "low": taus.array, "high": taus.array, "seeds": 0}
            conditions |= {"theta": rate.theta, "holds": rate.holds, "first_batch": 0}
            frames.append(pd.DataFrame(conditions))
    return pd.concat(frames, ignore_index=True)


def _errors_and_conditions(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves on the planted problem, told apart by series and K, with bands of measured errors alone."""
    frame = frame[frame["mean"] > 0]
    measured = frame["series"] == "error"
    return frame.assign(
        kind=(frame["experiment"] == "planted").map({True: "errors", False: "conditions"}),
        curve=frame["series"] + ", K = " + frame["local_steps"].astype(str),
        **{end: frame[end].where(measured) for end in ("low", "high")},
    )


# Further series than measured errors; their curves have the colours of K.
_BOUND = Line("bound θᵗ |x₀ − x*|²", GREY, ":", "", 1.2)
_SMALL = Line("smaller batches", GREY, "--", "", 0.8)


def _lines(frame: pd.DataFrame) -> dict[str, Line]:
    lines = local_steps_lines(frame["local_steps"].unique().tolist())
    curves = {f"error, K = {K}": line for K, line in lines.items()}
    for series, look, words in (
        ("bound", _BOUND, "bound, "),
        ("small batches", _SMALL, "small batches with "),
    ):
        for K, line in lines.items():
            label = f"{words}{line.label}"
            curves[f"{series}, K = {K}"] = look._replace(label=label, color=line.color, explained=False)
    return curves


def _remark(ax: Axes, panel: pd.DataFrame, *_: Any) -> None:
    holds = panel.loc[panel["series"] == "error", "holds"].all()
    note(ax, "conditions met" if holds else "CONDITIONS NOT MET")
    first = panel.loc[panel["series"] == "small batches", "first_batch"].max()
    if first > 0:
        note(ax, f"{_SMALL.label}: from {first:.0f} samples on")


_USED = Line("τ used", BLACK, "", "o")
_NEEDED = Line("τ needed even at κ = 1, τ* = 1", VERMILLION, "", ">", size=6.0)


def _draw_conditions(ax: Axes, panel: pd.DataFrame) -> None:
    """Draw the tau that each experiment uses, and the one that it needs: one line per experiment."""
    used, needed = (panel[panel["series"] == f"tau {one}"] for one in ("used", "needed"))
    at = np.arange(len(used))[::-1]
    ax.hlines(at, used["mean"], needed["mean"], color="#BBBBBB", linewidth=1.2, zorder=2)
    for line, taus in ((_USED, used), (_NEEDED, needed)):
        ax.plot(taus["mean"], at, **line.look, zorder=3)
    for y, holds in zip(at, used["holds"], strict=True):
        text = "conditions met" if holds else "conditions not met"
        ax.text(0.99, y, text, transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=7.5)
    ax.set(xscale="log", xlim=(used["mean"].min() / 2, needed["mean"].max() * 1e4))
    ax.set_ylim(-0.6, len(at) - 0.1)
    ax.set_yticks(at, [EXPERIMENTS[name] for name in used["experiment"]])


def _biases(inputs: Inputs) -> pd.DataFrame:
    """Errors of the smallest and the largest K at each level, with full gradients or noisy minibatches."""
    frames = []
    for history in inputs.histories():
        K = history["local_steps"]
        gradients = np.where(history["experiment"].str.endswith("noisy"), "noisy", "full")
        named = history.assign(level=history["level"].astype(float), gradients=gradients)
        frames.append(named[K.isin([K.min(), K.max()])])
    by = ["experiment", "gradients", "level", "method", "local_steps"]
    return averages(frames, by, ["error"], centre="geometric", band="range", axes=())


THEORY = (
    Grid(
        "rates",
        prefix="FedHT",
        title="Linear rates (not in the paper)",
        caption="Above, the measured error of FedHT and FedIterHT on a planted problem that meets the "
        "theorems' conditions, with the theorems' bounds, for each K. No threshold removes anything there. "
        "The first minibatches that they ask for are larger than what a client holds, so that all samples "
        "are used; dashed, batches that begin smaller and grow as fast, of which the theorems say nothing. "
        "Below, the sparsity τ of the paper's experiments and the least τ that the theorems ask for in the "
        "kindest case: their conditions are met in none.",
        source=_rates,
        shown=_errors_and_conditions,
        columns=[By("kind", {"errors": "", "conditions": ""}), By("panel", str)],
        wrap=2,
        series="curve",
        lines=_lines,
        metric="kind",
        diagrams={"conditions": _draw_conditions},
        x={"round": {"errors": "communication rounds", "conditions": "sparsity level τ"}},
        y={"errors": "|xₜ − x*|²"},
        log_y=True,
        annotate=_remark,
        others=[_BOUND, _SMALL, _USED, _NEEDED],
        width=4.8,
        height=2.9,
        legend_columns=6,
    ),
    Grid(
        "bias",
        prefix="FedHT",
        title="Bias and dissimilarity (not in the paper)",
        caption="Squared distance to the solution of FedHT and FedIterHT, for the smallest and the largest "
        "K, on planted problems whose clients' minimisers scatter with variance α, drawn anew for each α, in "
        "all coordinates or on the solution's support; where they do not, the theorems' conditions hold. "
        "Gradients are full, or of noisy minibatches, and neither the solution nor the gradient at it "
        "depends on α: what the curves come to rest at is the bias. Lines are geometric means over seeds, "
        "bands from the least to the largest. The PDF has a page for full and one for noisy gradients.",
        source=_biases,
        pages=[By("gradients", {"full": "full gradients", "noisy": "noisy minibatches"})],
        rows=[BY_EXPERIMENT],
        columns=[By("method", METHODS), By("local_steps", "K = {}".format)],
        width=3.0,
        series="level",
        lines=By("level", "α = {:g}".format).lines,
        y="|xₜ − x*|²",
        x={"round": "communication rounds"},
        log_y=True,
        height=2.35,
        legend_columns=6,
    ),
)
