"""What the figures of this paper share: which curves they take, and how a grid of panels is drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.papers.fedht.titles import (
    EXPERIMENTS,
    LEVEL_READINGS,
    READINGS,
    REAL_READINGS,
    level_name,
    ordered_levels,
)
from replifed.figures.summaries import summarise
from replifed.figures.curves import plot_curves
from replifed.figures.style import METHODS, Line, figure, housed, legend

X_LABELS = {"round": "communication rounds", "iterations": "local iterations", "bits": "bits sent"}


def collect(
    inputs: Any,
    settings: dict,
    keep: Callable[[pd.DataFrame], pd.Series],
    name: Callable[[dict], str],
    by: Sequence[str] = ("experiment", "level", "reading", "method", "local_steps", "step"),
    readings: Collection[str] = READINGS,
    relative: bool = False,
) -> pd.DataFrame:
    """Summarise the curves that an artefact draws.

    Parameters
    ----------
    inputs : Inputs
    settings : dict
        The artefact's; `artefact.runs` says which methods of which experiments.
    keep : callable
        Maps a history to a boolean for each of its lines.
    name : callable
        Maps a curve's `by` columns to the name of its panel.
    by : sequence of str
        Columns that tell the curves apart.
    readings : collection of str
        Readings of the step size that are drawn.
    relative : bool
        Divide each run's objective by what it was at round 0.

    Returns
    -------
    DataFrame
        Column panel, then those of `summarise`, then kind (of the data).
    """
    frames = []
    for experiment, methods in settings["artefact"]["runs"].items():
        for method in methods:
            history = inputs.run(experiment, method)
            chosen = history[keep(history) & history["reading"].isin(list(readings))]
            if chosen.empty:
                continue
            if relative:
                runs = chosen.groupby([*(set(by) - {"experiment"}), "replicate"], sort=False)["objective"]
                chosen = chosen.assign(objective=chosen["objective"] / runs.transform("first"))
            chosen = chosen.assign(experiment=experiment)
            summary = _without_bands_of_noise(summarise(chosen, by), chosen, by)
            summary["kind"] = inputs.data_kind(experiment)[0]
            frames.append(summary)
    frame = pd.concat(frames, ignore_index=True)
    labels = frame[list(by)].drop_duplicates()
    labels["panel"] = [name(row) for row in labels.to_dict("records")]
    frame = frame.merge(labels, on=list(by), how="left", validate="many_to_one")
    return frame[["panel", *(column for column in frame.columns if column != "panel")]]


def _without_bands_of_noise(summary: pd.DataFrame, history: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Count each curve's chaotic seeds (`replifed.twins`); such a curve is drawn without a band."""
    runs = history.drop_duplicates([*by, "replicate"])
    summary = summary.merge(runs.groupby(list(by))["chaotic"].sum().reset_index(), on=list(by), how="left")
    noisy = summary["chaotic"] > 0
    for column in ("low", "high"):
        summary[column] = summary[column].where(~noisy, summary["mean"])
    return summary


def minibatched(history: pd.DataFrame) -> pd.Series:
    """The lines of runs with minibatches."""
    return history["batch"] != "full"


def first_level(history: pd.DataFrame) -> pd.Series:
    """The lines of the mildest level of heterogeneity."""
    return history["level"] == ordered_levels(history["level"])[0]


def experiments_and_levels(frame: pd.DataFrame) -> list[dict[str, str]]:
    """The experiments of an artefact in order, with each of their levels: rows of panels."""
    return [
        {"experiment": experiment, "level": level}
        for experiment in EXPERIMENTS
        for level in ordered_levels(frame.loc[frame["experiment"] == experiment, "level"])
    ]


def panel_name(curve: Mapping[str, Any], *, method: str = "") -> str:
    """Name of the panel of a curve: experiment, level, method and reading, as far as they are told apart."""
    head = " ".join(
        part for part in (EXPERIMENTS[curve["experiment"]], level_name(str(curve["level"]))) if part
    )
    reading = {**READINGS, **LEVEL_READINGS, **REAL_READINGS}[curve["reading"]]
    return ", ".join(part for part in (head, method, reading) if part)


@housed
def draw_grid(
    frame: pd.DataFrame,
    columns: Sequence[tuple[Mapping[str, Any], str]],
    rows: Sequence[Mapping[str, Any]],
    series: str,
    lines: Mapping[Any, Line],
    *,
    title: str,
    height: float = 2.35,
    width: float = 3.2,
    row_title: Callable[[Mapping[str, Any]], str],
    column_title: Callable[[Mapping[str, Any]], str],
    y_label: str = "objective",
) -> Figure:
    """Draw a grid of panels.

    Parameters
    ----------
    frame : DataFrame
        From `collect`.
    columns : sequence of (conditions, x)
        What a column of panels shows: values of columns of `frame`, and the horizontal axis.
    rows : sequence of conditions
    series : str
        Column of `frame` that tells the curves of a panel apart.
    lines : mapping
        Line of each value of `series`.
    row_title, column_title : callable
        Map conditions to text.
    """
    made, axes = figure(len(rows), len(columns), title=title, width=width, height=height)
    for i, row in enumerate(rows):
        for j, (column, x) in enumerate(columns):
            ax = axes[i][j]
            panel = _where(frame, {**row, **column})
            surrogate = "kind" in panel and (panel["kind"] == "surrogate").any()
            ax.set_title(f"{row_title(row)}, {column_title(column)}", loc="left", fontsize=9, pad=15)
            if i == len(rows) - 1 or len({x for _, x in columns}) > 1:
                ax.set_xlabel(X_LABELS[x])
            if j == 0:
                ax.set_ylabel(y_label)
            if panel.empty:
                _say(ax, "nothing was run here")
                continue
            plot_curves(ax, panel, series, lines, x=x, log_x=x != "round", notes=x == "round")
            if x == "round":
                remark = _settings(panel, series, lines)
                ax.text(0, 1.02, remark, transform=ax.transAxes, fontsize=7, color="#555555")
            noisy = [key for key in lines if panel.loc[panel[series] == key, "chaotic"].any()]
            if noisy:
                said = "hangs on rounding: " + ", ".join(lines[key].label for key in noisy)
                ax.text(0.02, 0.03, said, transform=ax.transAxes, fontsize=7, color="#B03A00", zorder=6)
            if surrogate:
                ax.text(
                    0.5,
                    0.5,
                    "surrogate data",
                    transform=ax.transAxes,
                    ha="center",
                    va="center",
                    rotation=20,
                    fontsize=15,
                    color="#B03A00",
                    alpha=0.25,
                    zorder=1,
                )
    legend(made, list(lines.values()))
    return made


def _settings(panel: pd.DataFrame, series: str, lines: Mapping[Any, Line]) -> str:
    """K and step size of a panel's curves: once if they are those of all, else in the legend's order."""
    told = {"step": "γ"} if series == "local_steps" else {"local_steps": "K", "step": "γ"}
    found = [panel.loc[panel[series] == key, list(told)].drop_duplicates() for key in lines]
    curves = pd.concat([curve for curve in found if len(curve) == 1])
    said = []
    for column, name in told.items():
        values = [
            np.format_float_positional(value, precision=2, fractional=False, trim="-")
            for value in curves[column]
        ]
        said.append(f"{name} = {', '.join(values if len(set(values)) > 1 else values[:1])}")
    return "; ".join(said)


def draw_methods(
    frame: pd.DataFrame,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    readings: Mapping[str, str] = READINGS,
    axes: Sequence[str] = ("round", "iterations"),
) -> Figure:
    """Draw all methods, by reading, against each of `axes`."""
    methods = {method: line for method, line in METHODS.items() if (frame["method"] == method).any()}
    columns = [({"reading": reading}, x) for reading in readings for x in axes]

    def row_title(row: Mapping[str, Any]) -> str:
        return " ".join(filter(None, (EXPERIMENTS[row["experiment"]], level_name(str(row.get("level", ""))))))

    return draw_grid(
        frame,
        columns,
        rows,
        "method",
        methods,
        title=title,
        row_title=row_title,
        column_title=lambda column: readings[column["reading"]].replace("each method's ", ""),
    )


def _where(frame: pd.DataFrame, conditions: Mapping[str, Any]) -> pd.DataFrame:
    for column, value in conditions.items():
        frame = frame[frame[column] == value]
    return frame


def _say(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color="#767676")
    ax.set_xticks([])
    ax.set_yticks([])
