"""What the figures of this paper share."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from replifed.papers.fedplt.titles import PRINTED
from replifed.figures.style import Line


def band(ax: Axes, curve: pd.DataFrame, x: str, line: Line, every: int = 1) -> None:
    """Draw a mean with its 95 % interval; a gap where there is no number."""
    curve = curve.sort_values(x)
    ax.plot(
        curve[x],
        curve["mean"],
        color=line.color,
        linestyle=line.dashes,
        marker=line.marker,
        markevery=every,
        linewidth=line.width,
        label=line.label,
    )
    ax.fill_between(curve[x], curve["low"], curve["high"], color=line.color, alpha=0.18, linewidth=0)


def note_published(ax: Axes, at: float, text: str, *, left: bool = False) -> None:
    """Mark a place on the horizontal axis that the paper names, above on its right or below on its left."""
    ax.axvline(at, color=PRINTED, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    ax.annotate(
        text,
        (at, 0.04 if left else 0.98),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        xytext=(-4 if left else 4, 0),
        ha="right" if left else "left",
        va="bottom" if left else "top",
        fontsize=8,
    )
