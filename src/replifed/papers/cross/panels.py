"""Gap against rounds, bits and sample gradients: the grid of panels of both figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.cross.families import AXES, EXPERIMENTS, lines
from replifed.figures.style import Line, figure, housed, legend

# Curves end here; below, gaps are of no use to a statistician and soon of rounding.
_FLOOR = 1e-10
_MARKERS = 6


def table(inputs: Any) -> pd.DataFrame:
    """Median, least and largest relative gap over the seeds at each round, with what was used so far."""
    frames = []
    for experiment in inputs.experiments():
        for method in inputs.methods(experiment):
            history = inputs.run(experiment, method)
            frames.append(_summary(history).assign(experiment=experiment, method=method))
    frame = pd.concat(frames, ignore_index=True)
    first = ["experiment", "method"]
    return frame[[*first, *(column for column in frame.columns if column not in first)]]


def _summary(history: pd.DataFrame) -> pd.DataFrame:
    history = history.assign(bits=history["bits_up"] + history["bits_down"])
    rounds = history.groupby("round", sort=True)
    summary = rounds[["bits", "sample_gradients"]].mean()
    summary["median"] = rounds["gap"].median()
    summary["low"], summary["high"] = rounds["gap"].min(), rounds["gap"].max()
    summary["seeds"], summary["diverged"] = rounds["gap"].size(), rounds["diverged"].sum()
    kept = np.isfinite(summary["median"])
    # The first round at the floor is drawn, those after it are not.
    reached = (summary["median"] <= _FLOOR).shift(fill_value=False).cummax()
    return summary[kept & ~reached].reset_index()


@housed
def draw(frame: pd.DataFrame, known: Mapping[str, Line], title: str) -> Figure:
    """Draw what `table` returns: a row for each data set, a column for each axis."""
    methods = lines(frame, known)
    experiments = [name for name in EXPERIMENTS if (frame["experiment"] == name).any()]
    made, axes = figure(len(experiments), len(AXES), title=title, width=4.2, height=2.5, legend_lines=3)
    for i, experiment in enumerate(experiments):
        for j, (x, label) in enumerate(AXES.items()):
            ax = axes[i][j]
            panel = frame[frame["experiment"] == experiment]
            for place, (method, line) in enumerate(methods.items()):
                _curve(ax, panel[panel["method"] == method].sort_values("round"), x, line, place)
            ax.set_title(f"{EXPERIMENTS[experiment]}: {label}", loc="left", fontsize=9)
            ax.set_yscale("log")
            ax.set_ylim(_FLOOR / 3, 3.0)
            if x != "round":
                ax.set_xscale("log")
            if i == len(experiments) - 1:
                ax.set_xlabel(label)
            if j == 0:
                ax.set_ylabel("relative gap")
    legend(made, list(methods.values()), columns=5)
    return made


def _curve(ax: Any, curve: pd.DataFrame, x: str, line: Line, place: int) -> None:
    curve = curve[curve[x] > 0] if x != "round" else curve
    if curve.empty:
        return
    every = max(1, len(curve) // _MARKERS)
    ax.plot(
        curve[x],
        curve["median"],
        color=line.color,
        linestyle=line.dashes,
        linewidth=line.width,
        marker=line.marker or None,
        markersize=4,
        # Different starts, so that curves on one another can be told apart.
        markevery=(place % every, every),
    )
    ax.fill_between(curve[x], curve["low"], curve["high"].clip(upper=1e3), color=line.color, alpha=0.12, lw=0)
