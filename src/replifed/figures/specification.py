"""Specification curve: sorted effects under many settings, and below each effect its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.figures.lines import BLUE, GREY, VERMILLION, Line
from replifed.figures.style import canvas, legend, styled

_COLOURS = {"before": BLUE, "after": VERMILLION}
# Effects beyond so many decades are drawn there.
_MOST = 3.0
_LEAST = 0.1


class Curve(NamedTuple):
    """One pair of methods.

    `cells` has the columns difference, ci_low, ci_high, order, decided, used, and one an axis; `options` are
    those of each axis, in the order of their rows, by the axis's name in words.
    """

    title: str
    cells: pd.DataFrame
    options: Mapping[str, tuple[str, Sequence[str]]]  # by name: the column, and its values


@styled
def specification(curves: Sequence[Curve], *, title: str, effect: str, notes: Sequence[str] = ()) -> Figure:
    """Draw a curve a pair, one below the other: its effects above, dots of their options below."""
    rows = max(sum(len(values) for _, values in curve.options.values()) for curve in curves)
    made, axes = canvas(2 * len(curves), 1, title=title, width=7.0, height=max(1.7, 0.16 * rows + 0.35))
    panels = [ax for row in axes for ax in row]
    for number, curve in enumerate(curves):
        cells = curve.cells.sort_values("difference", kind="stable").reset_index(drop=True)
        above, below = panels[2 * number : 2 * number + 2]
        _effects(above, cells, effect)
        above.set_title(curve.title, loc="left")
        _dots(below, cells, curve.options)
        for ax in (above, below):
            ax.set_xlim(-0.8, len(cells) - 0.2)
            ax.set_xticks([])
    panels[-1].set_xlabel("\n".join(["cells, sorted by the difference", *notes]))
    legend(made, _explained())
    return made


def _explained() -> list[Line]:
    lines = [Line(f"{name} the rival", colour, "none", "o") for name, colour in _COLOURS.items()]
    lines.append(Line("tie, or open", GREY, "none", "o"))
    lines.append(Line("not decided", GREY, "none", "o", filled=False))
    return [*lines, Line("by the gap at the end", GREY, "none", "D")]


def _effects(ax: Axes, cells: pd.DataFrame, effect: str) -> None:
    """Draw the differences with their intervals, as far as these are known."""
    difference = cells["difference"].clip(-_MOST, _MOST)
    most = max(_LEAST, 1.15 * difference.abs().max())
    ends = [pd.to_numeric(cells[name], errors="coerce").fillna(difference) for name in ("ci_low", "ci_high")]
    ax.vlines(cells.index, *(end.clip(-most, most) for end in ends), color="#BBBBBB", linewidth=0.8)
    kinds = cells.assign(end=cells["used"] == "gap")
    for (order, decided, end), part in kinds.groupby(["order", "decided", "end"]):
        colour = _COLOURS.get(order, GREY)
        (points,) = ax.plot(part.index, difference[part.index], "D" if end else "o", color=colour)
        points.set(markersize=3.6, markerfacecolor=colour if decided else "white")
    ax.axhline(0, color="black", linewidth=0.7)
    ax.set(ylim=(-most, most), ylabel=effect)
    ax.grid(axis="x", visible=False)


def _dots(ax: Axes, cells: pd.DataFrame, options: Mapping[str, tuple[str, Sequence[str]]]) -> None:
    """Draw a row an option, an axis below the other, with a dot where a cell has it."""
    labels: dict[float, str] = {}
    at = 0.0
    for name, (column, values) in options.items():
        for value in values:
            labels[at] = f"{name}  {value}" if value == values[0] else str(value)
            here = cells.index[cells[column] == value]
            colours = [_COLOURS.get(order, GREY) for order in cells["order"][here]]
            ax.scatter(here, np.full(len(here), at), s=26, marker="|", color=colours, linewidths=1.3)
            at -= 1.0
        at -= 0.5
    ax.set_yticks(list(labels), list(labels.values()))
    ax.set_ylim(at + 0.7, 0.7)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", visible=False)
