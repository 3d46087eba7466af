"""Boxes that explain the lines of a panel, where its curves leave space for one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from replifed.figures.curves import panel_inches
from replifed.figures.lines import Line

_BOX: dict[str, Any] = {"fontsize": 7, "handlelength": 1.9, "labelspacing": 0.15, "borderpad": 0.2}
# Shares of a piece of a curve at which it is looked for in a box.
_ALONG = np.linspace(0.0, 1.0, 9)[:, None]
# Positions of a box in a panel, and those of its centre as shares of the panel without the box.
_POSITIONS = {
    f"{up} {along}": (x, y)
    for up, y in (("upper", 1.0), ("lower", 0.0), ("center", 0.5))
    for along, x in (("right", 1.0), ("left", 0.0), ("center", 0.5))
    if up != along
}


def explain(ax: Axes, lines: Sequence[Line], **where: Any) -> None:
    """Explain lines in a panel, in one box."""
    handles = [Line2D([], [], **line.look, label=line.label) for line in lines]
    # Below the curves: the box hides none of them.
    ax.legend(handles=handles, **_BOX, **where).set_zorder(0.9)


def explain_where_free(panels: Sequence[Axes], lines: Sequence[Line]) -> None:
    """Explain lines in one of the panels, where the box covers the least length of curves."""
    # Inches of the box, for letters of 7 points.
    size = 0.053 * max(len(line.label) for line in lines) + 0.3, 0.115 * len(lines) + 0.06
    covered = [(_covered(ax, size, _POSITIONS[name]), ax, name) for ax in panels for name in _POSITIONS]
    _, ax, name = min(covered, key=lambda one: one[0])
    explain(ax, lines, loc=name, frameon=True, framealpha=0.8, edgecolor="none")


def _covered(ax: Axes, size: tuple[float, float], position: tuple[float, float]) -> float:
    """Return the length of a panel's curves, in widths and heights of the panel, that a box covers."""
    ax.autoscale_view()
    width, height = panel_inches(ax)
    share = np.array([size[0] / (width - 0.7), size[1] / (height - 0.5)]).clip(max=1.0)
    low = np.array(position) * (1.0 - share)
    length = 0.0
    for line in ax.lines:
        path = (line.get_transform() - ax.transAxes).transform_path(line.get_path())
        points = np.asarray(path.vertices, float)
        points = points[np.isfinite(points).all(axis=1)]
        for begin, end in itertools.pairwise(points):
            between = begin + _ALONG * (end - begin)
            covered = ((between >= low) & (between <= low + share)).all(axis=1).mean()
            length += covered * np.linalg.norm(end - begin)
    return length
