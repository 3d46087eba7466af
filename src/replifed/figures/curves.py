"""Curves with bands over repetitions drawn from a tidy table, also those of runs that diverge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.font_manager import FontProperties
from matplotlib.text import Annotation
from matplotlib.textpath import text_to_path
from matplotlib.ticker import EngFormatter, LogFormatterSciNotation, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from replifed.figures.lines import GREY, Line

# Beyond this ratio of largest to smallest value a linear axis hides the small ones.
_LOG_FROM = 20.0
_MARKERS = 6
# Of an axis's height: curves nearer than this everywhere are one line to the eye.
_LINE_WIDTH = 0.01
# A band of more than this share of a panel hides what lies behind it: its ends are drawn instead.
_FILLS = 0.2
_NOTES = "notes"  # id of a panel's remarks
# Points: the size of remarks, a line of them, and what stays free below them and below a title.
_SIZE, _LINE, _FREE, _BELOW_TITLE = 7.0, 8.4, 3.0, 6.0
_LABELS = 0.55  # inches left of a panel, for the numbers and the label of its vertical axis
ENDS = Line("ends of wide bands", GREY, "-", "", 0.6)  # for a legend
# Marks at the end of a curve that stops before others, and why it does.
_AT_THE_FLOOR, _ALL_RUN = "1", "|"


class Scale(NamedTuple):
    """A vertical axis: its ends, and if it is logarithmic."""

    bottom: float
    top: float
    log: bool

    def height(self, values: NDArray) -> NDArray:
        """Return the share of the axis at which values are drawn; those beyond its ends at these."""
        inside = np.clip(values, self.bottom, self.top)
        if self.log:
            return np.log(inside / self.bottom) / np.log(self.top / self.bottom)
        return (inside - self.bottom) / (self.top - self.bottom)


def plot_curves(
    axes: Axes,
    frame: pd.DataFrame,
    series: str,
    lines: Mapping[Any, Line],
    *,
    x: str = "round",
    log_x: bool = False,
    log_y: bool | None = None,
    limits: tuple[float, float] | None = None,
    notes: bool = True,
) -> bool:
    """Draw a curve for each value of column `series`: its centre, its band, and a cross where seeds diverged.

    The frame is one panel from `summaries.summarise`; or without column round, and then without divergence;
    or without columns low and high, and then without bands. Lines are by value of `series`, in the order of
    drawing. With `log_x` points at 0 of column `x` are omitted; `log_y` and `limits` of the vertical axis
    follow from the range of the values if not given. `notes` name curves that diverged, and those that lie on
    others. Returns if a band is drawn by its ends, `ENDS`, since it would fill the panel.
    """
    log_y = is_logarithmic(frame, series) if log_y is None else log_y
    scale = Scale(*(limits or with_margin(*visible_range(frame, series), log_y)), log_y)
    remarks: list[str] = []
    wide_band = False
    for position, (key, line) in enumerate(lines.items()):
        curve = frame[frame[series] == key].sort_values("round" if "round" in frame else x)
        if log_x:
            curve = curve[curve[x] > 0]
        if len(curve):
            _plot_centre(axes, curve, line, x, position, scale)
            wide_band |= "low" in curve and not _plot_band(axes, curve, line, x, scale)
            remarks += _divergence(axes, curve, line, x, scale)
    # Points alone hide nothing.
    drawn = [key for key, line in lines.items() if line.dashes]
    pairs = coinciding(frame, series, drawn, x, scale)
    remarks += _coincidence([(lines[upper].label, lines[lower].label) for upper, lower in pairs])
    _set_axes(axes, frame[x], log_x, scale)
    if notes:
        for remark in remarks:
            note(axes, remark)
    return wide_band


def _set_axes(axes: Axes, at: pd.Series, log_x: bool, scale: Scale) -> None:
    """Set scales, limits and readable ticks of the axes of curves whose points lie `at`."""
    axes.set_yscale("log" if scale.log else "linear")
    axes.set_ylim(scale.bottom, scale.top)
    if scale.log:
        readable_log_axis(axes.yaxis, scale.bottom, scale.top)
    if log_x:
        axes.set_xscale("log")
        readable_log_axis(axes.xaxis, *axes.get_xlim(), most=int(2.2 * panel_inches(axes)[0]))
    else:
        whole = bool((at % 1 == 0).all())
        axes.xaxis.set_major_locator(MaxNLocator(6 if panel_inches(axes)[0] > 3 else 4, integer=whole))
        if at.max() >= 1e4:
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _coincidence(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return remarks on pairs of curves, of which the first lies on the second."""
    uppers: dict[str, list[str]] = {}
    for upper, lower in pairs:
        uppers.setdefault(lower, []).append(upper)
    remarks = []
    for lower, names in uppers.items():
        verb = "lies" if len(names) == 1 else "lie"
        text = f"{', '.join(names)} {verb} on {lower}"
        # Names would cover the curves where there are many.
        short = len(text) < 60 or len(names) == 1
        remarks.append(text if short else f"{len(names)} others {verb} on {lower}")
    return remarks


def note(axes: Axes, remark: str) -> None:
    """Write a remark above a panel, below its title and earlier remarks."""
    remarks = _remarks(axes)
    if remarks is None:
        remarks = axes.annotate(
            *("", (0, 1)),
            xycoords="axes fraction",
            xytext=(0, _FREE),
            textcoords="offset points",
            verticalalignment="bottom",
            fontsize=_SIZE,
            color="#444444",
            linespacing=_LINE / _SIZE,
            gid=_NOTES,
        )
    lines = _broken(remark, panel_inches(axes)[0] - _LABELS)
    remarks.set_text("\n".join(filter(None, (remarks.get_text(), *lines))))
    align_titles([axes])


def entitle(axes: Axes, title: str) -> None:
    """Write the title of a panel, above its remarks."""
    axes.set_title(title, loc="left")
    align_titles([axes])


def align_titles(panels: Sequence[Axes]) -> None:
    """Move the titles of panels side by side to the same height, above the remarks of all."""
    remarks = {axes: text for axes in panels if (text := _remarks(axes))}
    lines = max((text.get_text().count("\n") + 1 for text in remarks.values()), default=0)
    for axes in panels:
        title = axes.get_title(loc="left")
        axes.set_title(title, loc="left", pad=_BELOW_TITLE + _LINE * lines)
        if axes in remarks:
            remarks[axes].set_in_layout(not title)  # a title makes room


def _remarks(axes: Axes) -> Annotation | None:
    found = (text for text in axes.texts if isinstance(text, Annotation) and text.get_gid() == _NOTES)
    return next(found, None)


def _broken(remark: str, inches: float) -> list[str]:
    """Break a remark into lines of at most `inches` each, or of one word."""
    font, lines = FontProperties(size=_SIZE), [""]
    for word in remark.split():
        longer = f"{lines[-1]} {word}".strip()
        width, _, _ = text_to_path.get_text_width_height_descent(longer, font, is_math_text(longer))
        if lines[-1] and width > 72 * inches:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def panel_inches(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of a panel, labels included."""
    spec, figure = axes.get_subplotspec(), axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    rows, columns = spec.get_gridspec().get_geometry() if spec else (1, 1)
    return width / columns, height / rows


def coinciding(
    frame: pd.DataFrame, series: str, keys: Sequence[Any], x: str, scale: Scale
) -> list[tuple[Any, Any]]:
    """Return pairs of curves of a panel that look the same: a key, and the first key on whose curve it lies.

    Curves coincide if they end at the same point of the horizontal axis, and differ nowhere by more than a
    line's width on the vertical axis.
    """
    apart: dict[Any, tuple[NDArray, NDArray]] = {}  # curves that lie on none before them
    pairs = []
    for key in keys:
        curve = frame[(frame[series] == key) & frame[x].notna()].sort_values(x)
        curve = curve[curve[centre_of(curve)].notna()]
        if len(curve) < 2:
            continue
        at, height = curve[x].to_numpy(float), scale.height(curve[centre_of(curve)].to_numpy(float))
        for other, (other_at, other_height) in apart.items():
            equal_ends = np.isclose(at[[0, -1]], other_at[[0, -1]], rtol=_LINE_WIDTH).all()
            if equal_ends and np.abs(np.interp(other_at, at, height) - other_height).max() < _LINE_WIDTH:
                pairs.append((key, other))
                break
        else:
            apart[key] = (at, height)
    return pairs


def centre_of(frame: pd.DataFrame) -> str:
    """Return the column of a summary that holds the centres of its bands."""
    return "median" if "median" in frame else "mean"


def is_logarithmic(frame: pd.DataFrame, series: str) -> bool:
    """Return if the values of a panel range so widely that a linear axis would hide the small ones."""
    low, high = visible_range(frame, series)
    return low > 0 and high / low > _LOG_FROM


def visible_range(frame: pd.DataFrame, series: str) -> tuple[float, float]:
    """Return the smallest and the largest value to show.

    Of curves that diverge on all seeds only the start counts: their later values would squeeze the other
    curves into one line.
    """
    lowest, highest = np.inf, -np.inf
    for _, curve in frame.groupby(series, sort=False):
        if "round" in curve:
            curve = curve.sort_values("round")
        values = curve[centre_of(frame)].dropna().to_numpy()
        if not len(values):
            continue
        counted = {"seeds", "diverged"} <= set(curve)
        all_diverged = counted and curve["diverged"].iloc[0] == curve["seeds"].iloc[0]
        lowest = min(lowest, values.min())
        highest = max(highest, (values[:1] if all_diverged else values).max())
    return float(lowest), float(highest)


def with_margin(low: float, high: float, log_y: bool) -> tuple[float, float]:
    """Return the ends of an axis on which values from `low` to `high` keep off the edges."""
    if log_y:
        bottom, top = low / (high / low) ** 0.06, high * (high / low) ** 0.06
    else:
        bottom, top = low - 0.06 * (high - low), high + 0.06 * (high - low)
    if top > bottom:
        return bottom, top
    return (low * 0.9, low * 1.1) if log_y and low > 0 else (low - 0.5, low + 0.5)


def readable_log_axis(axis: Any, low: float, high: float, most: int = 6) -> None:
    """Label a logarithmic axis so that at least two numbers stand on it, and about `most`."""
    if np.log10(high / low) >= 3:
        axis.set_major_locator(LogLocator(numticks=min(most, 7)))
        axis.set_major_formatter(LogFormatterSciNotation())
    else:
        decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.log10(high) + 1)
        for subs in ((1, 2, 3, 4, 6, 8), (1, 2, 5), (1, 3), (1,)):
            at = np.outer(decades, subs)
            shown = np.count_nonzero((at >= low) & (at <= high))
            if shown <= most:
                break
        # Over less than a factor of two hardly a number of one digit is left.
        axis.set_major_locator(LogLocator(subs=subs, numticks=12) if shown > 1 else MaxNLocator(most - 1))
        # 200k and 1M, not 2e+05 and 1e+06.
        axis.set_major_formatter(EngFormatter(sep="") if high >= 1e4 else lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def _plot_centre(axes: Axes, curve: pd.DataFrame, line: Line, x: str, position: int, scale: Scale) -> None:
    centre = curve[centre_of(curve)].to_numpy()
    every: tuple[int, int] | None = None
    if line.dashes:
        # Markers divide the visible part, and those of different curves are apart, or would hide each other.
        visible = max(int(np.count_nonzero(centre >= scale.bottom)), 1)
        step = max(visible // _MARKERS, 1)
        every = (position * step // 4 % step, step)
    axes.plot(curve[x].to_numpy(), centre, **line.look, markevery=every, zorder=3)


def _plot_band(axes: Axes, curve: pd.DataFrame, line: Line, x: str, scale: Scale) -> bool:
    """Draw the band of one curve; return if it is filled, or else drawn by its ends."""
    at = curve[x].to_numpy()
    floor = scale.bottom if scale.log else -np.inf
    low, high = (curve[end].to_numpy().clip(min=floor, max=scale.top) for end in ("low", "high"))
    share = scale.height(high) - scale.height(low)
    span = at[-1] - at[0]
    if span > 0 and np.trapezoid(np.nan_to_num(share), at) / span > _FILLS:
        # One run that lags, or two that fail, would cover all else.
        for end in (low, high):
            axes.plot(at, end, color=line.color, linestyle=line.dashes, linewidth=0.6, alpha=0.7, zorder=2)
        return False
    axes.fill_between(at, low, high, color=line.color, alpha=0.16, linewidth=0, zorder=2)
    return True


def mark_ends(
    axes: Axes, frame: pd.DataFrame, series: str, lines: Mapping[Any, Line], x: str, floor: float
) -> dict[str, Line]:
    """Mark curves that stop before the end of a panel, but for those that diverged, which have a cross.

    Return the entries of a legend that say why, by mark: they ended at the `floor`, or their rounds are over.
    """
    far, marks = frame[x].max(), {}
    for key, line in lines.items():
        curve = frame[frame[series] == key].sort_values("round" if "round" in frame else x)
        if not len(curve) or ("alive" in curve and curve["diverged"].iloc[0] == curve["seeds"].iloc[0]):
            continue
        end = curve.iloc[-1]
        value = end[centre_of(curve)]
        if value > floor and end[x] > 0.99 * far:
            continue
        mark = _AT_THE_FLOOR if value <= floor else _ALL_RUN
        height = max(value, axes.get_ylim()[0])
        axes.plot(
            end[x], height, mark, color=line.color, markersize=7, markeredgewidth=1.6, clip_on=False, zorder=5
        )
        said = f"stops at {floor:g} (rounding)" if mark == _AT_THE_FLOOR else "all rounds are run"
        marks[mark] = Line(said, GREY, "none", mark, 1.6, 6.0)
    return marks


def _divergence(axes: Axes, curve: pd.DataFrame, line: Line, x: str, scale: Scale) -> list[str]:
    """Cross the rounds at which seeds were lost; return a remark on them."""
    if "alive" not in curve:
        return []
    lost, seeds = int(curve["diverged"].iloc[0]), int(curve["seeds"].iloc[0])
    if not lost:
        return []
    alive = curve["alive"].to_numpy()
    # The last round before a loss; a curve that lost all seeds ends with one.
    before = np.flatnonzero(np.diff(alive) < 0).tolist()
    if lost == seeds:
        before.append(len(alive) - 1)
    height = np.clip(curve[centre_of(curve)].to_numpy()[before], scale.bottom, scale.top)
    axes.plot(
        curve[x].to_numpy()[before],
        height,
        "X",
        color=line.color,
        markersize=8,
        markeredgecolor="white",
        clip_on=False,
        zorder=5,
    )
    return [f"✕ {line.label}: {lost} of {seeds} seeds diverged"]
