"""Curves of an artefact as data for the page's own drawing, and in words.

They are those of its CSV, thinned: the page is to stay small, and the CSV has them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from replifed.figures.curves import centre_of
from replifed.figures.grid import Curves, Panel
from replifed.figures.lines import Line

# Points of a curve; and numbers of a figure, so that those of many curves are thinned more.
MOST_POINTS = 32
MOST_NUMBERS = 12_000
# Curves and panels that an alternative text names.
_NAMED = 6


def read(file: Any) -> pd.DataFrame:
    """Read an artefact's CSV as its picture was drawn from it."""
    return pd.read_csv(file, keep_default_na=False, na_values=["nan"])


def curves(grid: Curves, frame: pd.DataFrame) -> dict[str, Any]:
    """Return the panels of a grid as lists and numbers that JSON can hold.

    ``lines`` are ``[label, colour, dashes, marked]``, dashes as SVG has them; each of the ``panels`` has
    ``curves`` of the number of a line, ``x`` by column, ``y``, ``low`` and ``high``; and in ``published`` the
    references: label, x on the first horizontal axis, and y, of which one is None.
    """
    panels = [(panel, _curves_of(grid, panel)) for panel in grid.panels(frame)]
    lines = grid.lines_of(frame if grid.shown is None else grid.shown(frame))
    numbers = sum(len(found) * (len(panel.x) + 3) for panel, found in panels)
    points = max(12, min(MOST_POINTS, MOST_NUMBERS // max(numbers, 1)))
    keys = list(lines)
    return {
        "lines": [[line.label, *_look(line)] for line in lines.values()],
        "points": points,
        "panels": [
            {
                "page": panel.page,
                "title": panel.title,
                "x": [[column, label, panel.log_x[column]] for column, label in panel.x.items()],
                "y": plain(panel.y),
                "log": panel.log_y,
                "curves": [
                    {"line": keys.index(key), **_numbers(curve, list(panel.x), points)}
                    for key, curve in found.items()
                ],
                "published": [[one.label, one.x, one.y] for one in panel.references],
            }
            for panel, found in panels
        ],
    }


def in_words(grid: Curves, frame: pd.DataFrame) -> str:
    """Say what a picture of the grid shows: its axes and curves, and which end lowest in its panels."""
    lines = grid.lines_of(frame if grid.shown is None else grid.shown(frame))
    panels = list(grid.panels(frame))
    panels = [panel for panel in panels if panel.page == panels[0].page]
    if not panels:
        return ""
    axes = _some(list(dict.fromkeys(next(iter(panel.x.values())) for panel in panels)))
    names = _some([line.label for line in lines.values()])
    heights = _some(list(dict.fromkeys(plain(panel.y) for panel in panels)))
    count = f"{len(panels)} panels" if len(panels) > 1 else "One panel"
    text = f"{count}: {heights} against {axes}. Curves: {names}."
    for label in dict.fromkeys(one.label for panel in panels for one in panel.references):
        text += f" {label[0].upper()}{label[1:]}."
    ends = []
    for panel in panels[:_NAMED]:
        found = _curves_of(grid, panel)
        # Points alone may go farther than the lines, and end elsewhere.
        kept = [key for key in found if not _look(lines[key])[2]] or list(found)
        last = {key: found[key][centre_of(found[key])].iloc[-1] for key in kept}
        if len(last) > 1:
            low, high = min(last, key=lambda key: last[key]), max(last, key=lambda key: last[key])
            of_several = [panel.title] + [plain(panel.y)] * (heights != plain(panel.y))
            title = ", ".join(filter(None, of_several))
            ends.append(
                f"{title}{': ' * bool(title)}{lines[low].label} ends lowest, at {last[low]:.3g}, "
                f"{lines[high].label} highest, at {last[high]:.3g}"
            )
    return f"{text} {'; '.join(ends)}." if ends else text


def plain(label: str) -> str:
    """Return a label without the marks of mathematics.

    >>> plain("mean field, $|h(S)|^2$")
    'mean field, |h(S)|²'
    """
    for mark, sign in (("$", ""), ("^2", "²"), ("^p", "ᵖ"), ("^s", "ˢ")):
        label = label.replace(mark, sign)
    return label


def _some(words: Sequence[str]) -> str:
    more = len(words) - 2 * _NAMED
    return ", ".join(words) if more <= 0 else f"{', '.join(words[: 2 * _NAMED])} and {more} more"


def _look(line: Line) -> tuple[str, str, bool]:
    """Colour, dashes in pixels, and whether points alone are drawn."""
    named = {"-": "", "--": "6 3", ":": "2 2", "-.": "6 2 2 2", "": ""}
    if isinstance(line.dashes, str):
        return to_hex(line.color), named.get(line.dashes, ""), line.dashes == ""
    return to_hex(line.color), " ".join(f"{2 * part:g}" for part in line.dashes[1]), False


def _curves_of(grid: Curves, panel: Panel) -> dict[Any, pd.DataFrame]:
    """Return the curves of a panel that have points, in the order of drawing."""
    frame = panel.frame
    along = "round" if "round" in frame else next(iter(panel.x))
    found = {}
    for key in grid.lines_of(frame):
        curve = frame[frame[grid.series] == key].sort_values(along)
        curve = curve[np.isfinite(pd.to_numeric(curve[centre_of(curve)], errors="coerce"))]
        if len(curve):
            found[key] = curve
    return found


def _numbers(curve: pd.DataFrame, columns: Sequence[str], points: int) -> dict[str, Any]:
    kept = curve.iloc[_thinned(len(curve), points)]
    numbers: dict[str, Any] = {"x": {column: _short(kept[column]) for column in columns}}
    numbers["y"] = _short(kept[centre_of(kept)])
    for end in ("low", "high"):
        if end in kept:
            numbers[end] = _short(kept[end])
    for count in ("seeds", "diverged"):
        if count in kept:
            numbers[count] = int(kept[count].iloc[0])
    return numbers


def _thinned(length: int, points: int) -> list[int]:
    """Return at most so many places: half by equal factors, for axes of logarithms, half evenly."""
    if length <= points:
        return list(range(length))
    half = points // 2
    geometric = np.unique(np.geomspace(1, length, half).round().astype(int)) - 1
    even = np.linspace(0, length - 1, points - len(geometric)).round().astype(int)
    return sorted({*geometric.tolist(), *even.tolist()})


def _short(values: pd.Series) -> list[float | None]:
    """Return numbers to four digits; None for what is none."""
    numbers = (float(value) for value in pd.to_numeric(values, errors="coerce"))
    return [_whole(float(f"{one:.4g}")) if math.isfinite(one) else None for one in numbers]


def _whole(number: float) -> float:
    return int(number) if number.is_integer() and abs(number) < 1e6 else number
