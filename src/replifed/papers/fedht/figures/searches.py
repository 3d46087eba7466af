"""Searches of the step size: scores of all steps, and those that are best, unstable or diverged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from replifed.figures.artefact import By, Grid
from replifed.figures.curves import note, readable_log_axis
from replifed.figures.lines import BLACK, GREEN, GREY, Line
from replifed.papers.fedht.figures.objectives import (
    BY_EXPERIMENT,
    BY_LEVEL,
    local_steps_lines,
    mark_surrogate,
)
from replifed.papers.fedht.paper import METHODS, experiment_name
from replifed.papers.inputs import Inputs

# The paper's grid, which the searches here extend while the best step lies at its edge.
PRINTED_STEPS = (0.001, 10.0)


def _tuning(inputs: Inputs) -> pd.DataFrame:
    """Every point of every search; the score of a step that diverged is infinite.

    The score of a step that was dropped follows from its last objective (`trials.Trials.scores`).
    """
    frames = []
    for experiment, method in inputs.searches():
        outcome = inputs.tuned(experiment, method)
        for level, searches in outcome["levels"].items():
            panel = f"{experiment_name(experiment, level)}, {METHODS[method]}"
            head = {"panel": panel, "experiment": experiment, "level": level, "method": method}
            head["kind"] = inputs.data_kind(experiment)[0]
            for K, search in searches["by_local_steps"].items():
                steps = np.array(search["steps"])
                best = steps == search["step"]
                points = {
                    "local_steps": int(K),
                    "step": steps,
                    "score": search["scores"],
                    "best": best,
                    "chosen": best & (int(K) == searches["local_steps"]),
                    "rejected": np.isin(steps, search["rejected"]),
                    "chaotic": search["chaotic"],
                }
                frames.append(pd.DataFrame({**head, **points, **outcome["cost"]}))
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(score=frame["score"].astype(float).fillna(np.inf))


_MARKS = {
    "best": Line("best step", BLACK, "", "*", size=8.0),
    "chosen": Line("best step and K", BLACK, "", "*", size=12.0),
    "rejected": Line("not stable", GREY, "", "o", size=6.0, filled=False),
}
# Steps without a point, at the upper edge.
_DIVERGED = Line("diverged", GREY, "", "x", size=3.5)
_ABOVE = Line("above the axis", GREY, "", r"$\uparrow$", size=6.0)


def _marked(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves of the scores, one for each K, and their points that are marked.

    Scores that are too large to show have no height.
    """
    parts = []
    for _, page in frame.groupby(["experiment", "level"], sort=False):
        finite = page[np.isfinite(page["score"])]
        # The smallest steps hardly move; steps on the brink of divergence would squeeze all other curves.
        hardly_moved = finite[finite["step"] == finite["step"].min()]["score"].max()
        lowest, highest = finite["score"].min(), min(finite["score"].max(), 3 * hardly_moved)
        page = page.assign(mean=page["score"].where(page["score"] <= highest), lowest=lowest, highest=highest)
        K = page["local_steps"].astype(str)
        parts.append(page.assign(curve=K))
        parts += [page[page[mark]].assign(curve=f"{mark} " + K[page[mark]]) for mark in _MARKS]
    return pd.concat(parts, ignore_index=True)


def _lines(frame: pd.DataFrame) -> dict[str, Line]:
    by_K = local_steps_lines(set(frame["local_steps"]) - {1}) | {1: Line("one local step", GREEN, "-", "^")}
    lines = {str(K): line._replace(size=2.5, width=1.2) for K, line in by_K.items()}
    for mark, look in _MARKS.items():
        for K, line in by_K.items():
            label = f"{look.label}, {line.label}"
            lines[f"{mark} {K}"] = look._replace(label=label, color=line.color, explained=False)
    return lines


def _limits(panel: pd.DataFrame) -> tuple[float, float]:
    """Leave space for marks at the upper edge, equal on all panels of a page."""
    low, high = panel[["lowest", "highest"]].iloc[0]
    return low / (high / low) ** 0.1, high * (high / low) ** 0.25


def _remarks(ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], *_: Any) -> None:
    """Mark steps without a point and the paper's grid, and note the cost of the search."""
    note(ax, "{runs:,.0f} runs, {rounds:,.0f} rounds, {bits:.1e} bits".format(**panel.iloc[0]))
    mark_surrogate(ax, panel)
    ax.axvspan(*PRINTED_STEPS, color="#E3E8EE", zorder=0, linewidth=0)
    ax.set_xlim(panel["step"].min() / 1.5, panel["step"].max() * 1.5)
    readable_log_axis(ax.xaxis, *ax.get_xlim())
    ax.xaxis.set_minor_locator(NullLocator())  # over eight decades its ticks would be a grey band
    curves = [key for key in lines if " " not in key]
    for number, key in enumerate(curves):
        curve = panel[(panel["curve"] == key) & panel["mean"].isna()]
        diverged = np.isinf(curve["score"])
        for mark, steps in ((_DIVERGED, curve[diverged]["step"]), (_ABOVE, curve[~diverged]["step"])):
            # A row for each K, below the upper edge.
            height = np.full(len(steps), 0.95 - 0.045 * number)
            look = mark._replace(color=lines[key].color).look
            ax.plot(steps, height, **look, transform=ax.get_xaxis_transform(), zorder=4)


SEARCHES = Grid(
    "tuning",
    prefix="FedHT",
    title="Step-size searches (not in the paper)",
    caption="Objective at the end of a short run against the step size, for each method and K; stars mark "
    "the best steps, crosses steps that diverged, rings steps that are not stable (moved by their last bits "
    "their runs go elsewhere), the grey band the grid printed in the paper. Steps that are behind after a "
    "third of the rounds are dropped, and stand where they had come to. Above stands what a method's search "
    "cost, over all levels and K. The PDF has a page for each data set and level.",
    source=_tuning,
    shown=_marked,
    pages=[BY_EXPERIMENT, BY_LEVEL],
    columns=[By("method", METHODS)],
    wrap=2,
    series="curve",
    lines=_lines,
    x={"step": "step size"},
    y="objective",
    log_y=True,
    limits=_limits,
    annotate=_remarks,
    others=[*_MARKS.values(), _DIVERGED, _ABOVE, Line("the paper's grid", "#E3E8EE", "-", "", 8.0)],
    width=3.5,
    height=2.3,
    legend_columns=5,
)
