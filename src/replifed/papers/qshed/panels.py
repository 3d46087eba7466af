"""Relative cost against rounds or bits, a panel for each channel: what Figures 1 and 2 draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from replifed.papers.qshed.curves import medians
from replifed.papers.qshed.titles import CHANNELS, EXPERIMENTS, LINES
from replifed.plotting.style import figure, housed, legend

BY = ("experiment", "method", "variant", "case", "channel")
AXES = {"round": "communication rounds", "megabits": "Mbit sent by all devices"}
# Gaps are drawn down to this; what is below is rounding error in part.
BOTTOM = 1e-11


def collect(inputs: Any, settings: dict, curves: Sequence[str], channels: Sequence[str]) -> pd.DataFrame:
    """Medians of the wanted curves of all runs of an artefact."""
    found = []
    for experiment, methods in settings["artefact"]["runs"].items():
        for method in methods:
            history = inputs.run(experiment, method).assign(experiment=experiment)
            history = history[history["channel"].isin(channels)]
            found.append(medians(history, BY))
    frame = pd.concat(found, ignore_index=True)
    return frame[frame["curve"].isin(curves)].reset_index(drop=True)


@housed
def draw_panels(frame: pd.DataFrame, title: str, x: str, panels: Sequence[tuple[str, str]]) -> Figure:
    """Draw a panel for each (experiment, channel)."""
    drawn = {name for name, curve in frame.groupby("curve") if not _diverged(curve)}
    lines = {name: line for name, line in LINES.items() if (frame["curve"] == name).any()}
    made, axes = figure(1, len(panels), title=title, width=4.6, height=3.3, legend_lines=-(-len(lines) // 3))
    for place, (experiment, channel) in enumerate(panels):
        one = frame[(frame["experiment"] == experiment) & (frame["channel"] == channel)]
        _draw_panel(axes[0][place], one, lines, x)
        axes[0][place].set_title(f"{EXPERIMENTS[experiment]}, {CHANNELS[channel]}", loc="left")
        axes[0][place].set_xlabel(AXES[x])
    axes[0][0].set_ylabel("relative cost f − f*")
    legend(made, [line for name, line in lines.items() if name in drawn], columns=3)
    return made


def _diverged(curve: pd.DataFrame) -> bool:
    return bool((curve["diverged"] == curve["seeds"]).all())


def _draw_panel(ax: Axes, frame: pd.DataFrame, lines: dict, x: str) -> None:
    ax.set_yscale("log")
    said = []
    for place, (name, line) in enumerate(lines.items()):
        curve = frame[frame["curve"] == name].sort_values("round")
        if curve.empty:
            continue
        if _diverged(curve):
            said.append(f"{line.label}: diverged")
            continue
        at = curve[x].to_numpy()
        end, slowest = (_end(curve[side].to_numpy()) for side in ("median", "high"))
        every = max(end // 6, 1)
        ax.plot(
            at[:end],
            curve["median"].to_numpy()[:end],
            color=line.color,
            linestyle=line.dashes,
            linewidth=line.width,
            marker=line.marker,
            markevery=(min(place * every // 5, end - 1), every),
            zorder=3,
        )
        low, high = (curve[side].to_numpy()[:slowest] for side in ("low", "high"))
        ax.fill_between(
            at[:slowest], np.maximum(low, BOTTOM / 10), high, color=line.color, alpha=0.15, linewidth=0
        )
    ax.set_ylim(BOTTOM, 1.0)
    ax.yaxis.set_major_locator(LogLocator(numticks=7))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=x == "round"))
    ax.set_xlim(left=0)
    if said:
        ax.text(0.98, 0.97, "\n".join(said), transform=ax.transAxes, ha="right", va="top", fontsize=7)


def _end(values: np.ndarray) -> int:
    """How many of a curve's values are to be drawn: up to the first below the axis."""
    shown = np.flatnonzero(values >= BOTTOM)
    return min(int(shown[-1]) + 2, len(values)) if len(shown) else len(values)
