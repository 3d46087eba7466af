"""Figures 1, 2, 3 and 6: objectives by local steps, heterogeneity and method."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from replifed.figures.curves import note
from replifed.figures.grid import By, Grid, Reference, X
from replifed.figures.lines import Line, sequence_lines
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
    "Two readings of the step size: each method at its own best step (and best K) at each level, and one "
    "step for all levels, half the inverse of the largest smoothness constant at (1, 1)."
)
_PAGES = "The PDF has a page for each reading; the first is shown."
_AXES = "The PDF has a page for each horizontal axis."
_BANDS = (
    "Lines: means over seeds; bands: 95 % intervals of the mean. A cross marks the round in which a seed "
    "diverged; such seeds are not in the mean. Numbers of local steps K and step sizes γ are in the legend "
    "if a method has them in all panels, else in the panel. A curve that is sensitive to rounding, as "
    "perturbed runs show, is named in its panel and has no band."
)

_CURVE = ["level", "reading", "method", "local_steps", "step"]
_RUN = ["level", "reading", "method", "local_steps", "step", "replicate"]


def _curves(
    readings: Collection[str] = READINGS,
    *,
    levels: Collection[int] | None = None,
    every_K: bool = False,
    full_batch: bool = False,
    relative: bool = False,
) -> Callable[[pd.DataFrame, Any], pd.DataFrame]:
    """Return a function that selects the runs of some readings.

    Levels are given by number, all by default; `every_K` selects every number of local steps, not just the
    one that a reading prescribes; `full_batch` selects runs with full gradients, not those with minibatches;
    `relative` divides objectives by the first. Column chaotic counts each curve's seeds that are sensitive to
    rounding.
    """

    def prepare(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
        selected = history["reading"].isin(list(readings)) & ((history["batch"] == "full") == full_batch)
        if not every_K:
            selected &= history["tuned"]  # K is the one that the reading prescribes
        if levels is not None:
            ordered = ordered_levels(history["level"])
            selected &= history["level"].isin([ordered[number] for number in levels])
        history = history[selected]
        if history.empty:
            return history
        if relative:
            first = history.groupby(_RUN, sort=False)["objective"].transform("first")
            history = history.assign(objective=history["objective"] / first)
        # Every round of a run says whether it is sensitive to rounding; each run counts once.
        at_start = history.assign(chaotic=history["chaotic"] & (history["round"] == 0))
        chaotic = at_start.groupby(_CURVE)["chaotic"].transform("sum")
        return history.assign(chaotic=chaotic, kind=inputs.data_kind(history["experiment"].iloc[0])[0])

    return prepare


def _finish(*, level: bool = False, method: bool = False) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that removes bands that are sensitive to rounding, and adds the column panel.

    It holds experiment and reading, the level and the method too where these are asked for.
    """
    readings = {**READINGS, **LEVEL_READINGS, **REAL_READINGS}

    def panel(curve: Any) -> str:
        head = experiment_name(curve.experiment, curve.level if level else "")
        return ", ".join(
            filter(None, (head, METHODS[curve.method] if method else "", readings[curve.reading]))
        )

    def finish(frame: pd.DataFrame) -> pd.DataFrame:
        sensitive = frame["chaotic"] > 0
        frame = frame.assign(**{end: frame[end].where(~sensitive, frame["mean"]) for end in ("low", "high")})
        frame.insert(0, "panel", [panel(curve) for curve in frame.itertuples()])
        return frame

    return finish


def local_steps_lines(values: Collection[int]) -> dict[int, Line]:
    """Return the line of each number of local steps K; those of the paper have fixed looks."""
    order = dict.fromkeys([3, 5, 8, 10, *sorted(values)])
    lines = sequence_lines({K: f"K = {K}" for K in order})
    return {K: lines[K] for K in sorted(values)}


def _lines_of_K(frame: pd.DataFrame) -> Mapping[int, Line]:
    return local_steps_lines(frame["local_steps"].unique().tolist())


def _remarks(series: str, ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], x: str) -> None:
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
_STEPS = {"local_steps": "K", "step": "γ"}

_figure = partial(
    Grid,
    prefix="FedHT",
    rows=[BY_EXPERIMENT],
    by=("experiment", *_CURVE, "chaotic", "kind"),
    series="method",
    lines=LINES,
    annotate=partial(_remarks, "method"),
    settings=_STEPS,
    finish=_finish(level=True),
    y="objective",
    x={"round": "communication rounds", "iterations": "local iterations", "bits": "bits sent"},
    width=4.6,
    height=2.35,
    legend_columns=6,
)
_DOTTED = "Dotted: the round at which the paper has FedIterHT where Distributed-IHT is after " + ", ".join(
    f"{slow} ({EXPERIMENTS[name]})" for name, (_, slow, _) in ROUNDS.items()
)
# Figure 3, with small and with full batches.
_against_iht = partial(
    _figure,
    pages=[BY_LEVEL, X("round", "iterations")],
    rows=[_SHORT],
    columns=[BY_EXPERIMENT],
    references=[
        Reference(
            f"published: {fast} rounds ({EXPERIMENTS[name]})",
            x=fast,
            where={"experiment": name},
            claim=f"fig3.{name}.rounds",
        )
        for name, (fast, _, _) in ROUNDS.items()
    ],
)

OBJECTIVES = (
    _figure(
        "fig1",
        title="Figure 1: number of local steps",
        caption="Objective against communication rounds of FedHT and FedIterHT for each number of local "
        "steps K, on both simulations at (0.1, 0.1). Readings of the step size: 1/(6 l), as the theorems "
        f"have it, of which the remarks on K speak; {_COMMON} {_BANDS}",
        prepare=_curves(levels=[0], every_K=True),
        finish=_finish(level=True, method=True),
        rows=[BY_EXPERIMENT, By("method", METHODS)],
        columns=[_SHORT],
        x={"round": "communication rounds"},
        width=3.2,
        series="local_steps",
        settings={"step": "γ"},
        lines=_lines_of_K,
        annotate=partial(_remarks, "local_steps"),
    ),
    _figure(
        "fig2",
        title="Figure 2: heterogeneity",
        caption="Objective, as a share of the initial one, against communication rounds of FedHT and "
        f"FedIterHT at three degrees of heterogeneity (α, β), on both simulations. {_LEVELS} {_PAGES} "
        f"{_BANDS}",
        # The levels' objectives begin decades apart.
        prepare=_curves(LEVEL_READINGS, relative=True),
        finish=_finish(method=True),
        pages=[By("reading", LEVEL_READINGS)],
        columns=[By("method", METHODS)],
        series="level",
        lines=By("level", lambda level: f"(α, β) = {level_name(level)}", level_key).lines,
        annotate=partial(_remarks, "level"),
        y="objective / initial objective",
    ),
    _against_iht(
        "fig3",
        title="Figure 3: against Distributed-IHT on the simulations",
        caption="Objective of FedHT, FedIterHT and Distributed-IHT, on Simulation I with dense FedAvg for "
        "reference, against communication rounds and local iterations, on both simulations at (0.1, 0.1) "
        "and (1, 1). Readings of the step size: each method at the best step of the printed grid, of which "
        "few converge on Simulation I; 1/(6 l), as the theorems have it, at (0.1, 0.1) and without FedAvg; "
        f"{_COMMON} {_DOTTED}. The PDF has a page for each level and horizontal axis. {_BANDS}",
        prepare=_curves(COMPARISON_READINGS, levels=[0, -1]),
    ),
    _against_iht(
        "fig3_full_batch",
        title="Figure 3 with full local gradients",
        caption="The same methods as in Figure 3 with all local samples in each gradient, at (0.1, 0.1). "
        f"Readings of the step size, of which none is printed: {_COMMON} {_DOTTED}. {_AXES}",
        prepare=_curves(full_batch=True),
    ),
    _figure(
        "fig6",
        title="Figure 6: against Distributed-IHT on real data",
        caption="Objective of FedHT, FedIterHT and Distributed-IHT, with dense FedAvg for reference, "
        "against communication rounds, local iterations and bits, on E2006-tfidf, RCV1 and MNIST; each "
        "method at its own best step and K, and at the best step of the printed grid, which ends far below "
        f"the best on RCV1. {_AXES} {_BANDS}",
        prepare=_curves(REAL_READINGS),
        pages=[X("round", "iterations", "bits")],
        columns=[_SHORT],
        width=3.2,
    ),
)
