"""Boxes that explain the lines of a panel, where its curves leave space for one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from replifed.figures.curves import panel_inches
from replifed.figures.style import Line

_BOX: dict[str, Any] = {"fontsize": 7, "handlelength": 1.9, "labelspacing": 0.15, "borderpad": 0.2}
# Points along a piece of a curve.
_ALONG = np.linspace(0.0, 1.0, 9)[:, None]
# Places of a box in a panel, and where its centre is, as shares of what it leaves of the panel.
_PLACES = {
    f"{up} {along}": (x, y)
    for up, y in (("upper", 1.0), ("lower", 0.0), ("center", 0.5))
    for along, x in (("right", 1.0), ("left", 0.0), ("center", 0.5))
    if up != along
}


def explain(ax: Axes, lines: Sequence[Line], **where: Any) -> None:
    """Explain lines in a panel, in one box."""
    handles = [Line2D([], [], **line.look, linewidth=line.width, label=line.label) for line in lines]
    # Below the curves: the box hides none of them.
    ax.legend(handles=handles, **_BOX, **where).set_zorder(0.9)


def explain_where_free(panels: Sequence[Axes], lines: Sequence[Line]) -> None:
    """Explain lines in that one of the panels, and there in that place, of which curves cross least."""
    # Inches of the box, for letters of 7 points.
    size = 0.053 * max(len(line.label) for line in lines) + 0.3, 0.115 * len(lines) + 0.06
    crossed = [(_crossed(ax, size, _PLACES[place]), ax, place) for ax in panels for place in _PLACES]
    _, ax, place = min(crossed, key=lambda one: one[0])
    explain(ax, lines, loc=place, frameon=True, framealpha=0.8, edgecolor="none")


def _crossed(ax: Axes, size: tuple[float, float], place: tuple[float, float]) -> float:
    """Length of a panel's curves, in widths and heights of the panel, that lies in a box at a place."""
    ax.autoscale_view()
    width, height = panel_inches(ax)
    share = np.array([size[0] / (width - 0.7), size[1] / (height - 0.5)]).clip(max=1.0)
    low = np.array(place) * (1.0 - share)
    inside = 0.0
    for line in ax.lines:
        path = (line.get_transform() - ax.transAxes).transform_path(line.get_path())
        points = np.asarray(path.vertices, float)
        points = points[np.isfinite(points).all(axis=1)]
        for begin, end in itertools.pairwise(points):
            between = begin + _ALONG * (end - begin)
            hidden = ((between >= low) & (between <= low + share)).all(axis=1).mean()
            inside += hidden * np.linalg.norm(end - begin)
    return inside
