"""Figures 1, 2, 3 and 6: objectives by local steps, heterogeneity and method."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from replifed.figures.artefact import By, Grid, Reference, X
from replifed.figures.curves import note
from replifed.figures.lines import Line, sequence_lines
from replifed.figures.summaries import averages
from replifed.papers.fedht.paper import (
    COMPARISON_READINGS,
    EXPERIMENTS,
    LEVEL_READINGS,
    LINES,
    METHODS,
    READINGS,
    REAL_READINGS,
    ROUNDS,
    experiment_name,
    level_key,
    level_name,
    ordered_levels,
)
from replifed.papers.inputs import Inputs

_COMMON = (
    "all methods at one step, half the inverse of the clients' largest smoothness constant l, with the "
    "largest K, which was chosen because Figure 3's numbers come out in it; each method at its own best step "
    "(and best K)."
)
_LEVELS = (
    "Three choices of the step: each method at the best step of the printed grid (and best K) at each level, "
    "at its own best step (and best K), and one step for all levels, half the inverse of the largest "
    "smoothness constant at (1, 1)."
)
_PAGES = "The PDF has a page for each choice of the step; the first is shown."
_AXES = "The PDF has a page for each horizontal axis."
_BANDS = (
    "Lines: means over seeds; bands: 95 % intervals of the mean. A cross marks the round in which a seed "
    "diverged; such seeds are not in the mean. Numbers of local steps K and step sizes γ are in the legend "
    "if a method has them in all panels, else in the panel. A curve that is sensitive to rounding, as "
    "perturbed runs show, is named in its panel and has no band."
)

_CURVE = ["level", "reading", "method", "local_steps", "step"]


def _objectives(
    inputs: Inputs,
    readings: Collection[str],
    *,
    levels: Collection[int] | None = None,
    every_K: bool = False,
    full_batch: bool = False,
    relative: bool = False,
    named: Collection[str] = ("level",),
) -> pd.DataFrame:
    """Return mean objectives of the runs of some readings, a line for each curve and round.

    Levels are given by number, all by default; `every_K` selects every number of local steps, not just the
    one that a reading prescribes; `full_batch` selects runs with full gradients, not those with minibatches;
    `relative` divides objectives by the first. Column chaotic counts each curve's seeds that are sensitive to
    rounding; such a curve has no band. Column panel names experiment and reading, and what else is `named`.
    """
    frames = []
    for history in inputs.histories():
        selected = history["reading"].isin(list(readings)) & ((history["batch"] == "full") == full_batch)
        if not every_K:
            selected &= history["tuned"]  # K is the one that the reading prescribes
        if levels is not None:
            ordered = ordered_levels(history["level"])
            selected &= history["level"].isin([ordered[number] for number in levels])
        history = history[selected]
        if history.empty:
            continue
        if relative:
            first = history.groupby([*_CURVE, "replicate"], sort=False)["objective"].transform("first")
            history = history.assign(objective=history["objective"] / first)
        # Every round of a run says whether it is sensitive to rounding; each run counts once.
        at_start = history.assign(chaotic=history["chaotic"] & (history["round"] == 0))
        chaotic = at_start.groupby(_CURVE)["chaotic"].transform("sum")
        kind, _ = inputs.data_kind(history["experiment"].iloc[0])
        frames.append(history.assign(chaotic=chaotic, kind=kind))
    frame = averages(frames, ["experiment", *_CURVE, "chaotic", "kind"])
    sensitive = frame["chaotic"] > 0
    frame = frame.assign(**{end: frame[end].where(~sensitive, frame["mean"]) for end in ("low", "high")})
    panels = []
    for curve in frame.itertuples():
        name = experiment_name(curve.experiment, curve.level if "level" in named else "")
        method = METHODS[curve.method] if "method" in named else ""
        reading = {**READINGS, **LEVEL_READINGS, **REAL_READINGS}[curve.reading]
        panels.append(", ".join(filter(None, (name, method, reading))))
    frame.insert(0, "panel", panels)
    return frame


def local_steps_lines(values: Collection[int]) -> dict[int, Line]:
    """Return the line of each number of local steps K; those of the paper have fixed looks."""
    order = dict.fromkeys([3, 5, 8, 10, *sorted(values)])
    lines = sequence_lines({K: f"K = {K}" for K in order})
    return {K: lines[K] for K in sorted(values)}


def _remarks(ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], series: str) -> None:
    """Name curves that depend on rounding, and mark surrogate data."""
    sensitive = [
        line.label for key, line in lines.items() if panel.loc[panel[series] == key, "chaotic"].any()
    ]
    if sensitive:
        note(ax, "depends on rounding: " + ", ".join(sensitive))
    mark_surrogate(ax, panel)


def mark_surrogate(ax: Axes, panel: pd.DataFrame) -> None:
    """Write across a panel that its data, by column kind, are no real ones."""
    if (panel["kind"] == "surrogate").any():
        middle: dict[str, Any] = {"ha": "center", "va": "center", "rotation": 20, "transform": ax.transAxes}
        ax.text(0.5, 0.5, "surrogate data", **middle, color="#B03A00", fontsize=15, alpha=0.35, zorder=6)


BY_EXPERIMENT = By("experiment", EXPERIMENTS)
BY_LEVEL = By("level", level_name, level_key)
_SHORT = By(
    "reading",
    {
        "printed": "best printed step",
        "theory": "the theorems' step",
        "common": "common step",
        "own": "own best step",
    },
)
_DOTTED = "Dotted: the round at which the paper has FedIterHT where Distributed-IHT is after " + ", ".join(
    f"{slow} ({EXPERIMENTS[name]})" for name, (_, slow, _) in ROUNDS.items()
)
_PUBLISHED = [
    Reference(
        f"published: {fast} rounds ({EXPERIMENTS[name]})",
        x=fast,
        where={"experiment": name},
        claim=f"fig3.{name}.rounds",
    )
    for name, (fast, _, _) in ROUNDS.items()
]

figure = partial(
    Grid,
    prefix="FedHT",
    log_bands=True,
    series="method",
    lines=LINES,
    settings={"local_steps": "K", "step": "γ"},
    annotate=_remarks,
    x={"round": "communication rounds", "iterations": "local iterations", "bits": "bits sent"},
    y="objective",
    height=2.35,
    legend_columns=6,
)

OBJECTIVES = (
    figure(
        "fig1",
        title="Figure 1: number of local steps",
        caption="Objective against communication rounds of FedHT and FedIterHT for each number of local "
        "steps K, on both simulations at (0.1, 0.1). Steps: the best of the printed grid for each K; "
        f"1/(6 l), as the theorems have it, of which the remarks on K speak; {_COMMON} {_BANDS}",
        source=lambda inputs: _objectives(
            inputs, COMPARISON_READINGS, levels=[0], every_K=True, named=("level", "method")
        ),
        rows=[BY_EXPERIMENT, By("method", METHODS)],
        columns=[_SHORT],
        series="local_steps",
        lines=lambda frame: local_steps_lines(frame["local_steps"].unique().tolist()),
        settings={"step": "γ"},
        x={"round": "communication rounds"},
        width=3.2,
    ),
    figure(
        "fig2",
        title="Figure 2: heterogeneity",
        caption="Objective, as a share of the initial one, against communication rounds of FedHT and "
        f"FedIterHT at three degrees of heterogeneity (α, β), on both simulations. {_LEVELS} {_PAGES} "
        f"{_BANDS}",
        # The levels' objectives begin decades apart.
        source=lambda inputs: _objectives(inputs, LEVEL_READINGS, relative=True, named=("method",)),
        pages=[By("reading", LEVEL_READINGS)],
        rows=[BY_EXPERIMENT],
        columns=[By("method", METHODS)],
        series="level",
        lines=By("level", lambda level: f"(α, β) = {level_name(level)}", level_key).lines,
        y="objective / initial objective",
    ),
    figure(
        "fig3",
        title="Figure 3: against Distributed-IHT on the simulations",
        caption="Objective of FedHT, FedIterHT and Distributed-IHT, on Simulation I with dense FedAvg for "
        "reference, against communication rounds and local iterations, on both simulations at (0.1, 0.1) "
        "and (1, 1). Steps: each method at the best step of the printed grid, of which "
        "few converge on Simulation I; 1/(6 l), as the theorems have it, at (0.1, 0.1) and without FedAvg; "
        f"{_COMMON} {_DOTTED}. The PDF has a page for each level and horizontal axis. {_BANDS}",
        source=lambda inputs: _objectives(inputs, COMPARISON_READINGS, levels=[0, -1]),
        pages=[BY_LEVEL, X("round", "iterations")],
        rows=[_SHORT],
        columns=[BY_EXPERIMENT],
        references=_PUBLISHED,
    ),
    figure(
        "fig3_full_batch",
        title="Figure 3 with full local gradients",
        caption="The same methods as in Figure 3 with all local samples in each gradient, at (0.1, 0.1). "
        f"Steps, of which none is printed: {_COMMON} {_DOTTED}. {_AXES}",
        source=lambda inputs: _objectives(inputs, READINGS, full_batch=True),
        pages=[BY_LEVEL, X("round", "iterations")],
        rows=[_SHORT],
        columns=[BY_EXPERIMENT],
        references=_PUBLISHED,
    ),
    figure(
        "fig6",
        title="Figure 6: against Distributed-IHT on real data",
        caption="Objective of FedHT, FedIterHT and Distributed-IHT, on MNIST with dense FedAvg for "
        "reference, against communication rounds, local iterations and bits, on E2006-tfidf, RCV1 and MNIST, "
        "there with τ = 500 of all weights and in each class; each method at its own best step and K, and at "
        f"the best step of the printed grid, which ends far below the best on RCV1. {_AXES} {_BANDS}",
        source=lambda inputs: _objectives(inputs, REAL_READINGS),
        pages=[X("round", "iterations", "bits")],
        rows=[BY_EXPERIMENT],
        columns=[_SHORT],
        width=3.2,
    ),
)
