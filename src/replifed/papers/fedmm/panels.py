"""What the figures of this paper share: a table of curves by experiment and metric, and its drawing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedmm.titles import EXPERIMENTS, METRICS
from replifed.figures.summaries import summarise
from replifed.figures.curves import plot_curves
from replifed.figures.style import Line, figure, housed, legend

CURVE = ("experiment", "method", "beta", "alpha", "participation", "batch", "message_bits")
"""Columns that tell a curve apart, beside its metric."""


def collect(
    inputs: Any,
    settings: dict,
    keep: Callable[[str, str, pd.DataFrame], pd.Series],
    metrics: Collection[str] = tuple(METRICS),
    uplink: bool = False,
) -> pd.DataFrame:
    """Summarise the curves that an artefact draws, one standard deviation around their means.

    Parameters
    ----------
    inputs : Inputs
    settings : dict
        The artefact's; `artefact.runs` says which methods of which experiments.
    keep : callable
        Maps experiment, method and history to a boolean for each line of the history.
    metrics : collection of str
    uplink : bool
        Count the clients' bits only. The server's broadcast is not quantised.

    Returns
    -------
    DataFrame
        Columns metric, `CURVE`, and those of `summarise`.
    """
    frames = []
    for experiment, methods in settings["artefact"]["runs"].items():
        for method in methods:
            history = inputs.run(experiment, method)
            chosen = history[keep(experiment, method, history)].assign(experiment=experiment)
            if uplink:
                chosen = chosen.assign(bits_down=0.0)
            for metric in metrics:
                # An update is of the round behind it; round 0 has none.
                lines = chosen if metric == "objective" else chosen[chosen["round"] > 0]
                frame = summarise(lines, CURVE, metric, band="sd")
                frame.insert(0, "metric", metric)
                frames.append(frame)
    return pd.concat(frames, ignore_index=True)


@housed
def draw_metrics(
    frame: pd.DataFrame, series: str, lines: Mapping[Any, Line], *, title: str, columns: int = 4
) -> Figure:
    """Draw what `collect` returns: a row for each experiment, a column for each metric."""
    rows = [name for name in EXPERIMENTS if (frame["experiment"] == name).any()]
    metrics = [name for name in METRICS if (frame["metric"] == name).any()]
    drawn = {key: line for key, line in lines.items() if (frame[series] == key).any()}
    legend_lines = -(-len(drawn) // columns)
    made, axes = figure(
        len(rows), len(metrics), title=title, width=3.6, height=2.4, legend_lines=legend_lines
    )
    for i, experiment in enumerate(rows):
        for j, metric in enumerate(metrics):
            ax = axes[i][j]
            panel = frame[(frame["experiment"] == experiment) & (frame["metric"] == metric)]
            plot_curves(ax, panel, series, drawn, log_y=True if metric != "objective" else None)
            ax.set_title(EXPERIMENTS[experiment], loc="left", fontsize=9)
            ax.set_ylabel(METRICS[metric])
            if i == len(rows) - 1:
                ax.set_xlabel("communication rounds")
    legend(made, list(drawn.values()), columns=columns)
    return made


def final(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The last recorded round of each curve."""
    return frame[frame["round"] == frame.groupby(list(by))["round"].transform("max")]
