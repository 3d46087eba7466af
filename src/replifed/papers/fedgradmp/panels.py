"""What the figures of this paper share: curves over seeds, and grids of panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.figures.summaries import summarise
from replifed.figures.curves import plot_curves
from replifed.figures.style import Line, figure, housed, legend

# Errors below are rounding; an error of exactly zero has no logarithm.
LEAST = 1e-17

X_LABELS = {
    "round": "communication rounds",
    "work": "work, in gradients of single samples, all clients",
    "bits": "bits sent, both ways",
    "seconds": "processor seconds",
}
ERROR = "relative error |xₜ − x#| / |x#|"


def collect(
    inputs: Any,
    settings: dict,
    by: Sequence[str],
    value: str,
    *,
    logarithmic: bool = True,
    keep: Callable[[pd.DataFrame], pd.Series] | None = None,
) -> pd.DataFrame:
    """Summarise the runs of an artefact over their seeds.

    Parameters
    ----------
    inputs : Inputs
    settings : dict
        The artefact's.
    by : sequence of str
        Columns that tell curves apart, `experiment` and `series` among them.
    value : str
        The metric.
    logarithmic : bool
        Take geometric means, as fits curves that fall over many decades, and the range from the best to
        the worst seed: while some seeds are at rounding errors and others not, an interval says nothing.
    keep : callable, optional
        Maps a history to a boolean for each of its lines.

    Returns
    -------
    DataFrame
        Columns `by`, then those of `summarise`, with work (sample gradients) in place of iterations.
    """
    frames = []
    for experiment, methods in settings["artefact"]["runs"].items():
        for method in methods:
            history = inputs.run(experiment, method)
            if keep is not None:
                history = history[keep(history)]
            if history.empty:
                continue
            values = history[value].to_numpy(float)
            if logarithmic:
                values = np.log10(np.maximum(values, LEAST))
            frames.append(
                history.assign(
                    experiment=experiment,
                    series=history["method"] + "/" + history["variant"],
                    iterations=history["sample_gradients"],
                    shown=values,
                )
            )
    history = pd.concat(frames, ignore_index=True)
    frame = summarise(history, list(by), "shown")
    if logarithmic:
        held = history[np.isfinite(history["shown"])]
        keys = [*by, "round"]
        ends = held.groupby(keys)["shown"].agg(["min", "max"]).reset_index()
        ends = frame[keys].merge(ends, on=keys, how="left")
        # Seeds that diverge later are not in the mean, but in the range until then.
        frame["low"] = np.minimum(ends["min"], frame["mean"])
        frame["high"] = np.maximum(ends["max"], frame["mean"])
        frame[["mean", "low", "high"]] = 10.0 ** frame[["mean", "low", "high"]]
    return frame.rename(columns={"iterations": "work"})


@housed
def draw_grid(
    frame: pd.DataFrame,
    rows: Sequence[tuple[Mapping[str, Any], str]],
    columns: Sequence[tuple[Mapping[str, Any], str, str]],
    series: str,
    lines: Mapping[Any, Line],
    *,
    title: str,
    y_label: str | Sequence[str],
    width: float = 4.6,
    height: float = 2.6,
    legend_lines: int = 1,
    log_y: bool | None = None,
    log_x: bool | None = None,
) -> Figure:
    """Draw a grid of panels.

    Parameters
    ----------
    frame : DataFrame
        From `collect`.
    rows : sequence of (conditions, title)
    columns : sequence of (conditions, horizontal axis, title)
    series : str
        Column that tells the curves of a panel apart.
    lines : mapping
        Line of each value of `series`.
    y_label : str, or one a column
    """
    lines = {key: line for key, line in lines.items() if (frame[series] == key).any()}
    made, axes = figure(
        len(rows), len(columns), title=title, width=width, height=height, legend_lines=legend_lines
    )
    labels = [y_label] * len(columns) if isinstance(y_label, str) else list(y_label)
    for i, (row, row_title) in enumerate(rows):
        for j, (column, x, column_title) in enumerate(columns):
            panel = frame
            for name, value in {**row, **column}.items():
                panel = panel[panel[name] == value]
            ax = axes[i][j]
            ax.set_title(", ".join(filter(None, (row_title, column_title))), loc="left", fontsize=9)
            ax.set_ylabel(labels[j])
            ax.set_xlabel(X_LABELS[x])
            if panel.empty:
                ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", color="#767676")
                continue
            plot_curves(
                ax,
                panel,
                series,
                lines,
                x=x,
                log_x=x != "round" if log_x is None else log_x,
                log_y=log_y,
                notes=x == "round",
            )
    columns_of_legend = -(-len(lines) // legend_lines)
    legend(made, list(lines.values()), columns=max(columns_of_legend, 1))
    return made
