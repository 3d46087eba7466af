"""The searches behind the step sizes: objective at the end of the search against the step, for each K."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from replifed.papers.fedht.titles import EXPERIMENTS, METHODS, level_name
from replifed.figures.curves import readable_log_axis
from replifed.figures.style import GREEN, GREY, Line, figure, housed, legend, local_steps_lines

TITLE = "FedHT: step-size searches"

# The paper's grid, which the searches here extend while the best step lies at its edge.
PRINTED_STEPS = (0.001, 10.0)


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Every point of every search; the score of a step that diverged is infinite.

    That of a step that was given up, since the objective rose, is what it had come to (`tune.Search`).
    """
    rows = []
    for experiment, methods in settings["artefact"]["tuned"].items():
        for method in methods:
            outcome = inputs.tuned(experiment, method)
            for level, found in outcome["levels"].items():
                name = " ".join(filter(None, (EXPERIMENTS[experiment], level_name(level))))
                for K, search in found["by_local_steps"].items():
                    for step, score in zip(search["steps"], search["scores"], strict=True):
                        rows.append(
                            {
                                "panel": f"{name}, {METHODS[method]}",
                                "experiment": experiment,
                                "level": level,
                                "method": method,
                                "local_steps": int(K),
                                "step": step,
                                "score": math.inf if score is None else score,
                                "best": step == search["step"],
                                "chosen": step == search["step"] and int(K) == found["local_steps"],
                                "rejected": step in search["rejected"],
                                "chaotic": search["chaotic"],
                                **outcome["cost"],
                            }
                        )
    return pd.DataFrame(rows)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each data set, a column for each method."""
    rows = list(dict.fromkeys(zip(frame["experiment"], frame["level"], strict=True)))
    methods = [method for method in METHODS if (frame["method"] == method).any()]
    lines = local_steps_lines(sorted(set(frame["local_steps"]) - {1}))
    made, axes = figure(len(rows), len(methods), title=TITLE, width=3.1, height=1.95, legend_lines=2)
    for i, (experiment, level) in enumerate(rows):
        row = frame[(frame["experiment"] == experiment) & (frame["level"] == level)]
        finite = row[np.isfinite(row["score"])]
        # The smallest steps hardly move; steps on the brink of divergence would squeeze all other curves.
        hardly_moved = finite[finite["step"] == finite["step"].min()]["score"].max()
        low, high = finite["score"].min(), min(finite["score"].max(), 3 * hardly_moved)
        limits = low / (high / low) ** 0.1, high * (high / low) ** 0.25
        for j, method in enumerate(methods):
            ax = axes[i][j]
            one = {1: Line("", GREEN, "-", "^")}
            searched = row[row["method"] == method]
            if searched.empty:
                ax.text(0.5, 0.5, "not run at this level", transform=ax.transAxes, ha="center", color=GREY)
            else:
                _tell_cost(ax, searched.iloc[0])
            _draw_search(ax, searched, lines | one, limits)
            name = " ".join(filter(None, (EXPERIMENTS[experiment], level_name(str(level)))))
            ax.set_title(f"{name}, {METHODS[method]}", loc="left", fontsize=9)
            ax.set_xlim(frame["step"].min() / 1.5, frame["step"].max() * 1.5)
            if i == len(rows) - 1:
                ax.set_xlabel("step size")
            if j == 0:
                ax.set_ylabel("objective")
    marks = [
        Line("one local step", GREEN, "-", "^"),
        Line("best step", "black", "", "*"),
        Line("diverged", GREY, "", "x"),
        Line("not stable", GREY, "", "o"),
        Line("the paper's grid", "#E3E8EE", "-", "", 8),
    ]
    legend(made, [*lines.values(), *marks], columns=4)
    return made


def _tell_cost(ax: Axes, row: pd.Series) -> None:
    said = f"{row['runs']:,} runs, {row['rounds']:,} rounds, {row['bits']:.1e} bits"
    ax.text(0.02, 0.03, said, transform=ax.transAxes, fontsize=7, color="#555555", zorder=5)


def _draw_search(ax: Axes, frame: pd.DataFrame, lines: dict[int, Line], limits: tuple[float, float]) -> None:
    ax.axvspan(*PRINTED_STEPS, color="#E3E8EE", zorder=0, linewidth=0)
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())  # over eight decades they would be a grey band
    ax.set_yscale("log")
    ax.set_ylim(*limits)
    readable_log_axis(ax.yaxis, *limits)
    for place, (K, line) in enumerate(lines.items()):
        curve = frame[frame["local_steps"] == K].sort_values("step")
        if curve.empty:
            continue
        held = curve[np.isfinite(curve["score"])]
        ax.plot(
            held["step"],
            held["score"],
            color=line.color,
            linestyle=line.dashes,
            marker=line.marker,
            markersize=2.5,
            linewidth=1.2,
            zorder=3,
        )
        lost = curve[~np.isfinite(curve["score"])]
        # One row of crosses per K, below the upper edge.
        height = limits[1] / (limits[1] / limits[0]) ** (0.03 + 0.045 * place)
        ax.plot(lost["step"], [height] * len(lost), "x", color=line.color, markersize=3.5, zorder=3)
        shaky = held[held["rejected"]]
        ax.plot(
            shaky["step"], shaky["score"], "o", color=line.color, markersize=6, fillstyle="none", zorder=4
        )
        best = curve[curve["best"]]
        chosen = bool(best["chosen"].any())
        ax.plot(
            best["step"],
            best["score"],
            "*",
            color=line.color,
            markersize=11 if chosen else 8,
            zorder=4,
            markeredgecolor="black" if chosen else GREY,
            markeredgewidth=0.8 if chosen else 0.4,
        )
