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

from replifed.figures.artefact import Curves, Panel
from replifed.figures.curves import centre_of
from replifed.figures.lines import Line

# Maximum number of points of a curve, and of numbers of a figure: more curves have fewer points.
MAX_POINTS = 32
MAX_NUMBERS = 12_000
# Maximum number of curves and panels that an alternative text names.
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
    numbers = sum(len(drawn) * (len(panel.x) + 3) for panel, drawn in panels)
    points = max(12, min(MAX_POINTS, MAX_NUMBERS // max(numbers, 1)))
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
                    for key, curve in drawn.items()
                ],
                "published": [[line.label, line.x, line.y] for line in panel.references],
            }
            for panel, drawn in panels
        ],
    }


def in_words(grid: Curves, frame: pd.DataFrame) -> str:
    """Alternative text of a picture of the grid: its axes and curves, and the lowest ends in its panels."""
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
    for label in dict.fromkeys(line.label for panel in panels for line in panel.references):
        text += f" {label[0].upper()}{label[1:]}."
    ends = []
    for panel in panels[:_NAMED]:
        drawn = _curves_of(grid, panel)
        # Points alone may go farther than the lines, and end elsewhere.
        keys = [key for key in drawn if not _look(lines[key])[2]] or list(drawn)
        last = {key: drawn[key][centre_of(drawn[key])].iloc[-1] for key in keys}
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
    """Colour, dashes in pixels, and True if points alone are drawn."""
    named = {"-": "", "--": "6 3", ":": "2 2", "-.": "6 2 2 2", "": ""}
    if isinstance(line.dashes, str):
        return to_hex(line.color), named.get(line.dashes, ""), line.dashes == ""
    return to_hex(line.color), " ".join(f"{2 * part:g}" for part in line.dashes[1]), False


def _curves_of(grid: Curves, panel: Panel) -> dict[Any, pd.DataFrame]:
    """Return the curves of a panel that have points, in the order of drawing."""
    frame = panel.frame
    along = "round" if "round" in frame else next(iter(panel.x))
    curves_by_line = {}
    for key in grid.lines_of(frame):
        curve = frame[frame[grid.series] == key].sort_values(along)
        curve = curve[np.isfinite(pd.to_numeric(curve[centre_of(curve)], errors="coerce"))]
        if len(curve):
            curves_by_line[key] = curve
    return curves_by_line


def _numbers(curve: pd.DataFrame, columns: Sequence[str], points: int) -> dict[str, Any]:
    thinned = curve.iloc[_thinned(len(curve), points)]
    numbers: dict[str, Any] = {"x": {column: _short(thinned[column]) for column in columns}}
    numbers["y"] = _short(thinned[centre_of(thinned)])
    for end in ("low", "high"):
        if end in thinned:
            numbers[end] = _short(thinned[end], digits=3)
    for count in ("seeds", "diverged"):
        if count in thinned:
            numbers[count] = int(thinned[count].iloc[0])
    return numbers


def _thinned(length: int, points: int) -> list[int]:
    """Return at most `points` indices: half by equal factors, for logarithmic axes, half evenly."""
    if length <= points:
        return list(range(length))
    half = points // 2
    geometric = np.unique(np.geomspace(1, length, half).round().astype(int)) - 1
    even = np.linspace(0, length - 1, points - len(geometric)).round().astype(int)
    return sorted({*geometric.tolist(), *even.tolist()})


def _short(values: pd.Series, digits: int = 4) -> list[float | None]:
    """Return numbers to so many digits, and None for those that are not finite."""
    numbers = (float(value) for value in pd.to_numeric(values, errors="coerce"))
    return [_whole(float(f"{number:.{digits}g}")) if math.isfinite(number) else None for number in numbers]


def _whole(number: float) -> float:
    return int(number) if number.is_integer() and abs(number) < 1e6 else number
