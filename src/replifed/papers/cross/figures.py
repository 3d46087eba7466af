"""The figures and tables of all methods: gaps, accuracies, targets reached, use until a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from replifed.claims.pairs import USES, matrix, profile
from replifed.engine.accuracy import ACCURACY, NEW, WORST
from replifed.figures.artefact import By, Grid, Made, X, by_name
from replifed.figures.curves import visible_range, with_margin
from replifed.figures.summaries import averages
from replifed.papers.cross import accuracy, cohorts, paper
from replifed.papers.cross.named import BY_PROBLEM
from replifed.papers.cross.used import ON_AXES, PAIRED, TARGET, TARGETS, USED, all_pairs, render_used, use

# Curves end here; smaller gaps are of no statistical use, and soon rounding errors.
FLOOR = 1e-10
# Targets of the profile, and what its uses are divided by.
_PROFILED = [10.0**-k for k in range(1, 9)]
_UNITS = {"bits": "message_bits", "sample_gradients": "samples"}
_AXES = {
    "round": "communication rounds",
    "bits": "bits, as models from each client",
    "sample_gradients": "sample gradients, as passes over the data",
}


def gaps(inputs: Any, axes: Sequence[str] = ("bits", "sample_gradients")) -> pd.DataFrame:
    """Median gaps, without all after the first round at the floor; `axes` are those beside rounds."""
    by = ["experiment", "method"]
    frame = averages(inputs.histories(), by, ["gap"], centre="median", band="range", axes=axes)
    curves = (frame["median"] <= FLOOR).groupby([frame["experiment"], frame["method"]])
    passed = curves.transform(lambda low: low.shift(fill_value=False).cummax())
    return frame[~passed].reset_index(drop=True)


def _profiles(inputs: Any) -> pd.DataFrame:
    """Shares of targets reached, for each kind of problem."""
    by_kind: dict[str, dict[str, dict[str, pd.DataFrame]]] = {}
    for experiment, method in inputs.runs():
        of_kind = by_kind.setdefault(inputs.experiment(experiment).problem, {})
        of_kind.setdefault(method, {})[experiment] = inputs.run(experiment, method)
    shares = [profile(runs, _PROFILED, _UNITS).assign(problem=kind) for kind, runs in by_kind.items()]
    return pd.concat(shares, ignore_index=True)


# Panels of the profile, those of the figures: in one panel methods would hide each other.
_GROUPS = {
    "first order": ("logistic", paper.FIRST_ORDER),
    "curvature": ("logistic", paper.SECOND_ORDER),
    "averages": ("logistic", paper.AVERAGED),
    "corrected": ("logistic", paper.CORRECTED),
    "1-norm": ("composite", paper.COMPOSITE),
    "planted sparse model": ("planted", paper.SPARSE),
}


def _by_group(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the methods of each group on its kind of problem, and any others."""
    members = {
        group: (frame["problem"] == kind) & frame["method"].isin(methods)
        for group, (kind, methods) in _GROUPS.items()
    }
    members["others"] = ~np.logical_or.reduce(list(members.values()))
    parts = [frame[of].assign(group=group) for group, of in members.items()]
    return pd.concat(parts, ignore_index=True)


# Panels of accuracy: the clients of a9a have no test samples of their own.
_PANELS = {
    ("a9a_cohort", ACCURACY): "a9a",
    ("writers", ACCURACY): "digits by writer",
    ("writers", WORST): "worst tenth of writers",
    ("writers", NEW): "writers who never take part",
}


def _in_panels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves with the name of their panel."""
    keys = zip(frame["experiment"], frame["metric"], strict=True)
    return frame.assign(panel=[_PANELS.get(key) for key in keys]).dropna(subset="panel")


_PAGES = "The PDF has a page each for rounds, bits and sample gradients."


def reached(panel: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the axis of gaps: what the curves of a panel reach, down to the floor."""
    low, high = with_margin(*visible_range(panel, "method"), True)
    return max(low, FLOOR / 3), high


_LAYOUT: dict[str, Any] = dict(
    prefix=paper.PAPER["name"],
    source=gaps,
    pages=[X(*ON_AXES)],
    columns=[BY_PROBLEM],
    wrap=2,
    series="method",
    x=ON_AXES,
    y="relative gap",
    log_y=True,
    limits=(FLOOR / 3, 3.0),
    floor=FLOOR,
    width=4.2,
    height=2.5,
    legend_columns=5,
)


def figure(name: str, *, kind: type[Grid] = Grid, **more: Any) -> Grid:
    """Return a figure of gaps, in the layout of all of them but for what is said of it."""
    return kind(name, **{**_LAYOUT, **more})


FIGURES = by_name(
    figure(
        "fig1",
        title="First-order methods",
        caption="Relative gap (F - F*) / (F(0) - F*), median and range over seeds. FedAvg's curve is also "
        f"that of FedMid and FedDualAvg, which are the same method without a 1-norm. {_PAGES} "
        f"{paper.SETTING}",
        lines=paper.lines(*paper.FIRST_ORDER),
    ),
    figure(
        "fig2",
        title="Methods that send curvature",
        caption="The same for methods that use Hessians, with the same budget of bits per coordinate and "
        "round for those that fit their messages to one.",
        lines=paper.lines(*paper.SECOND_ORDER),
    ),
    figure(
        "fig3",
        title="Composite problems",
        caption="The same with a 1-norm in the objective, for methods that handle one; the gap is that of "
        "the whole objective.",
        lines=paper.lines(*paper.COMPOSITE),
    ),
    figure(
        "fig4",
        title="A planted sparse model",
        caption="The same for methods that keep a number of coordinates, that of the planted model; F* is "
        "the least objective on its support, and what falls below it counts as no gap.",
        lines=paper.lines(*paper.SPARSE),
    ),
    figure(
        "fig5",
        title="Averages, with momentum and acceleration",
        caption="As Figure 1, for methods that average local steps, or gradients, as they are. All "
        "gradients are full, so that minibatch SGD is gradient descent at a constant step. With clients of "
        "nearly one size and a small proximal weight FedNova and FedProx are nearly FedAvg, on whose curve "
        "they lie.",
        lines=paper.lines(*paper.AVERAGED),
    ),
    figure(
        "fig6",
        title="Corrected local steps",
        caption="As Figure 1, for methods that correct what local steps do to an average; all take part.",
        lines=paper.lines(*paper.CORRECTED),
    ),
    figure(
        "fig7",
        title="One client in ten",
        caption="As Figure 1, for methods with a form for cohorts: first-order methods and corrected ones. "
        f"{paper.COHORTS}",
        columns=[By("experiment", paper.WITH_COHORT)],
        lines=cohorts.lines_of,
        limits=reached,
    ),
    replace(
        accuracy.PICTURE,
        prefix=paper.PAPER["name"],
        caption=f"{accuracy.PICTURE.caption} {paper.COHORTS}",
        shown=_in_panels,
        rows=(),
        columns=[By("panel", {name: name for name in _PANELS.values()})],
        wrap=2,
    ),
    Grid(
        "profile",
        prefix=paper.PAPER["name"],
        title="Targets reached",
        caption="Share of the relative gaps 1e-1, 1e-2, ... 1e-8 on all problems of a kind that a method "
        "has reached, for the first time, after so many rounds, bits (as multiples of one model from each "
        "client) and sample gradients (as passes over the data): a data profile, mean over seeds with its "
        "95 % interval. A method counts on the problems on which it has run. The PDF has a page for each "
        "use.",
        source=_profiles,
        shown=_by_group,
        pages=[By("used", USES)],
        columns=[By("group", {name: name for name in _GROUPS})],
        wrap=2,
        series="method",
        lines=paper.EVERY,
        panel_legends=True,
        metric="used",
        x={"at": _AXES},
        y="share of targets reached",
        log_x=True,
        log_y=False,
        limits=(-0.02, 1.02),
        width=5.0,
        height=3.2,
    ),
)

TABLES = by_name(
    Made(
        "table1",
        "Use until the relative gap stays at 1e-4",
        f"{USED} {paper.SETTING}",
        lambda inputs: use(inputs, lambda _: [TARGET]),
        render_used,
    ),
    Made(
        "pairs",
        "Which of two methods needs less until the relative gap stays at 1e-2, and 1e-4",
        PAIRED,
        lambda inputs: all_pairs(inputs, lambda _: TARGETS),
        lambda frame: matrix(frame, paper.LABELS),
    ),
    accuracy.TABLE,
)
