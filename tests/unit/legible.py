"""What makes a picture hard to read: small text, labels on one another, bands beyond their axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from replifed.figures.style import PRINT_WIDTH

LEAST = 7.0  # points, in print
# Pixels by which boxes of text may touch.
_TOUCH = 1.0
# Text that is fainter marks a panel, and lies on what it marks.
_WATERMARK = 0.5


def faults(made: Figure, print_width: float | None = PRINT_WIDTH) -> list[str]:
    """Return what is hard to read in a figure, a line each; none if all is well.

    Text under 7 points at `print_width` inches (as drawn if None), texts that lie on one another, remarks
    and titles that stand on a panel's frame, and bands of which no edge is left within their axes or that
    reach to where a logarithmic axis cannot show them.
    """
    made.draw_without_rendering()
    shrunk = 1.0 if print_width is None else min(1.0, print_width / made.get_size_inches()[0])
    beyond = {label for axes in made.axes for label in _beyond_the_ends(axes)}
    texts = [text for text in made.findobj(Text) if _is_seen(text) and text not in beyond]
    small = [
        f"{_said(text)}: {float(text.get_fontsize()) * shrunk:.1f} points"
        for text in texts
        if float(text.get_fontsize()) * shrunk < LEAST - 1e-9
    ]
    boxes = [(text, text.get_window_extent().padded(-_TOUCH)) for text in texts]
    on_another = [
        f"{_said(one)} lies on {_said(other)}"
        for (one, box), (other, its) in itertools.combinations(boxes, 2)
        if box.width > 0 and its.width > 0 and box.overlaps(its)
    ]
    return [
        *small,
        *on_another,
        *(fault for axes in made.axes for check in (_bands, _on_frame) for fault in check(axes)),
    ]


def _on_frame(axes: Axes) -> Iterator[str]:
    """Say what is written above a panel and stands on its frame."""
    top = axes.get_window_extent().y1
    above = [text for text in axes.texts if text.get_gid() == "notes"]
    for text in (axes.title, axes._left_title, *above):
        if text.get_text() and text.get_window_extent().y0 < top + _TOUCH:
            yield f"{_said(text)} stands on the frame"


def _is_seen(text: Text) -> bool:
    if (text.get_alpha() or 1.0) < _WATERMARK:
        return False
    return bool(text.get_text().strip()) and text.get_visible() and (text.axes is None or text.axes.axison)


def _beyond_the_ends(axes: Axes) -> Iterator[Text]:
    """Labels of ticks outside an axis's range, which are kept but not drawn."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)


def _said(text: Text) -> str:
    return repr(text.get_text().splitlines()[0])


def _bands(axes: Axes) -> list[str]:
    """Say which bands leave the axes."""
    bottom, top = axes.get_ylim()
    told = []
    for band in axes.collections:
        if isinstance(band, PolyCollection):
            heights = [float(y) for path in band.get_paths() for y in np.asarray(path.vertices)[:, 1]]
            if heights and (
                max(heights) > top * (1 + 1e-6)
                or (axes.get_yscale() == "log" and min(heights) < bottom * (1 - 1e-6))
            ):
                told.append(f"a band of {axes.get_title(loc='left')!r} leaves its axes")
    return told
