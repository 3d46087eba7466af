"""A grid of panels of curves, declared once: its table and its picture follow."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.figures.boxes import explain, explain_where_free
from replifed.figures.curves import ENDS, entitle, is_logarithmic, plot_curves
from replifed.figures.style import BLACK, Line, canvas, legend, of_seeds, panel_width, sequence_lines, styled
from replifed.figures.summaries import Band, Centre, on_log_scale, summarise

Labels = Mapping[Any, str] | Callable[[Any], str]


@dataclass(frozen=True)
class By:
    """Panels by the values of a column."""

    column: str
    labels: Labels | None = None  # from a value to its part of the titles; a mapping gives the order, too
    # From a value to what it is sorted by. Without it numbers are sorted, others in order of appearance.
    key: Callable[[Any], Any] | None = None

    def order(self, values: Sequence[Any]) -> list[Any]:
        """Return the distinct values in the order of their panels."""
        distinct = list(dict.fromkeys(values))
        if isinstance(self.labels, Mapping):
            known = [value for value in self.labels if value in distinct]
            return known + [value for value in distinct if value not in known]
        if self.key is not None:
            return sorted(distinct, key=self.key)
        numbers = all(isinstance(value, int | float | np.number) for value in distinct)
        return sorted(distinct) if numbers else distinct

    def label(self, value: Any) -> str:
        """Return what a panel's title says of a value."""
        if isinstance(self.labels, Mapping):
            return self.labels.get(value, str(value))
        return self.labels(value) if self.labels is not None else ""

    def lines(self, frame: pd.DataFrame) -> dict[Any, Line]:
        """Return a line for each value, if the column tells curves apart: a sequence, in order."""
        return sequence_lines({value: self.label(value) for value in self.order(frame[self.column].tolist())})


class X:
    """A panel for each horizontal axis, which is a column of the table."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns


class _Strip(NamedTuple):
    """What one row, or one column, of panels shows."""

    where: dict[str, Any]
    x: str | None
    label: str


class Published(NamedTuple):
    """A number of the paper that lies on the axes of some panels: dotted, across them at `x`, along at `y`.

    It is one that a claim holds a measurement against, taken from where the claim takes it.
    """

    said: str  # begins with "published"
    claim: str  # id of the claim, without the paper and what its reading adds
    x: float | None = None  # on the first horizontal axis
    y: float | None = None
    where: Mapping[str, Any] = {}  # columns of the table, and their values in these panels

    @property
    def line(self) -> Line:
        """What a legend shows for it."""
        return Line(self.said, BLACK, (0, (1, 2)), "", 0.9)

    def draw(self, ax: Axes) -> None:
        """Draw it into a panel, which makes room for it."""
        look: dict[str, Any] = {"linewidth": self.line.width, "zorder": 1, **self.line.look}
        if self.x is not None:
            ax.axvline(self.x, **look)
        if self.y is not None:
            bottom, top = ax.get_ylim()
            ax.set_ylim(min(bottom, self.y), max(top, self.y))
            ax.axhline(self.y, **look)


class Panel(NamedTuple):
    """What one panel shows, on whichever of its horizontal axes."""

    page: str  # label of the picture that it is on; the first one is the PNG
    title: str
    frame: pd.DataFrame
    x: dict[str, str]  # labels of the horizontal axes by column; the first is drawn
    log_x: dict[str, bool]
    y: str
    log_y: bool
    published: list[Published]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Which columns of a figure's table are curves, in which panels: what a picture or a page draws.

    A column `median` or `mean` of the table is the height of a curve, `low` and `high` are its band.
    """

    # The panels: rows and columns of them, a str being a column of the table without labels.
    rows: Sequence[str | By | X] = ()
    columns: Sequence[str | By | X] = ()
    pages: Sequence[str | By | X] = ()  # pictures of their own, pages of one PDF; the first is the PNG
    # The curves of a panel: the column that tells them apart, and the line of each of its values, or what
    # makes that of the table; a value that it lacks is drawn in black.
    series: str
    lines: Mapping[Any, Line] | Callable[[pd.DataFrame], Mapping[Any, Line]] = field(default_factory=dict)
    shown: Callable[[pd.DataFrame], pd.DataFrame] | None = None  # the table to what is drawn of it
    metric: str | None = None  # column on which labels and scales depend, such as what a curve shows
    # The axes: labels, by value of `metric` and by column, and whether they are logarithmic. Without a word
    # the curves' range decides on vertical axes; horizontal ones are logarithmic for all but rounds.
    y: str | Mapping[str, str]
    x: Mapping[str, str | Mapping[str, str]]
    x_column: str = "round"  # of the horizontal axes, where no part is an `X`
    log_y: bool | Mapping[str, bool] | None = None
    log_x: bool | Mapping[str, bool] | None = None
    published: Sequence[Published] = ()  # what the paper prints that lies on these axes

    def panels(self, frame: pd.DataFrame) -> Iterator[Panel]:
        """Return the panels of the table, each once however many horizontal axes it is drawn on."""
        frame = frame if self.shown is None else self.shown(frame)
        first = self._first_x()
        columns = [first, *(column for column in self.x if column != first and column in frame)]
        pages, strips = (
            _strips([part for part in _dimensions(parts) if isinstance(part, By)], frame)
            for parts in (self.pages, (*self.rows, *self.columns))
        )
        for page, strip in itertools.product(pages, strips):
            panel = _where(frame, {**page.where, **strip.where})
            if len(panel):
                yield Panel(
                    page.label,
                    strip.label,
                    panel,
                    {column: self._of_metric(self.x[column], panel) for column in columns},
                    {column: self._is_logarithmic_x(column, panel) for column in columns},
                    self._of_metric(self.y, panel) or "",
                    self._is_logarithmic(panel),
                    self._published(panel),
                )

    def lines_of(self, frame: pd.DataFrame) -> dict[Any, Line]:
        """Return the lines of the curves drawn: those declared, in their order, then any others."""
        known = self.lines(frame) if callable(self.lines) else self.lines
        present = dict.fromkeys(frame[self.series])
        others = {key: Line(str(key), BLACK) for key in present if key not in known}
        return {key: line for key, line in known.items() if key in present} | others

    def _is_logarithmic(self, panel: pd.DataFrame) -> bool:
        given = self._of_metric(self.log_y, panel)
        return is_logarithmic(panel, self.series) if given is None else bool(given)

    def _is_logarithmic_x(self, column: str, panel: pd.DataFrame) -> bool:
        given = self._of_metric(self.log_x, panel)
        return column != "round" if given is None else bool(given)

    def _published(self, frame: pd.DataFrame) -> list[Published]:
        """Return the paper's numbers that belong into some panel of a table.

        What lies beyond the ends of a shorter run would squeeze its curves, and is left out.
        """
        at, found = self._first_x(), []
        for one in self.published:
            panel = _where(frame, one.where)
            within = one.x is None or panel[at].min() <= one.x <= panel[at].max()
            found += [one] * bool(len(panel) and within)
        return found

    def _of_metric(self, given: Any, panel: pd.DataFrame) -> Any:
        """Return what is given for the metric of a panel, or for all."""
        if isinstance(given, Mapping):
            return given.get(panel[self.metric].iloc[0])
        return given

    def _dimensions(self) -> list[By | X]:
        return _dimensions((*self.pages, *self.rows, *self.columns))

    def _first_x(self) -> str:
        """Return the column of the first horizontal axis."""
        return next((part.columns[0] for part in self._dimensions() if isinstance(part, X)), self.x_column)


@dataclass(frozen=True)
class Grid(Curves):
    """Curves over repetitions, a grid of panels; name, `table` and `show` as in `figures.artefact.Made`.

    Every run of the artefact's settings goes through `prepare`, and `summarise` makes a curve of each
    combination of the columns `by`. On a logarithmic axis a band is computed on the scale of logarithms.
    """

    name: str
    _: KW_ONLY
    title: str
    caption: str
    prefix: str  # what the picture says before its title
    wrap: int | None = None  # panels side by side, after which a row goes on below
    # The table: columns that tell curves apart, columns of the histories that are averaged, what maps a
    # history (with a column experiment) and the inputs to the lines that are averaged, and `summarise`'s own.
    by: Sequence[str] = ()
    values: Sequence[str] = ("objective",)
    prepare: Callable[[pd.DataFrame, Any], pd.DataFrame] | None = None
    first: Mapping[str, int] = field(default_factory=dict)  # first round that has a number, by value
    centre: Centre = "mean"
    band: Band = "ci"
    axes: Sequence[str] = ("iterations", "bits")
    # The inputs to the summary, where it is no average of histories round by round.
    source: Callable[[Any], pd.DataFrame] | None = None
    finish: Callable[[pd.DataFrame], pd.DataFrame] | None = None  # the summary to the table
    limits: tuple[float, float] | None = None  # of the vertical axes
    # Columns of settings, such as the step, and their symbols. What each curve has in all panels of a page
    # stands in the legend, the rest in the panels, the first of those side by side with the same.
    settings: Mapping[str, str] = field(default_factory=dict)
    panel_legends: bool = False  # whether each panel has a legend of its own curves, beside it
    # Called with the axes of a panel, its curves, the lines and the column of the horizontal axis.
    annotate: Callable[[Axes, pd.DataFrame, Mapping[Any, Line], str], object] | None = None
    others: Sequence[Line] = ()  # what else the legend explains
    width: float = 4.6  # of a panel, in inches
    height: float = 2.6
    legend_columns: int = 4
    stamped: ClassVar[bool] = True  # see `figures.artefact.Made`

    def table(self, inputs: Any) -> pd.DataFrame:
        """Return a line for each curve and round."""
        frame = (self.source or self._summaries)(inputs)
        if self.finish is not None:
            frame = self.finish(frame)
        return self._scaled(frame) if self.centre == "mean" and self.band != "range" else frame

    def _summaries(self, inputs: Any) -> pd.DataFrame:
        frames = []
        for experiment, method in inputs.runs():
            history = inputs.run(experiment, method).assign(experiment=experiment)
            if self.prepare is not None:
                history = self.prepare(history, inputs)
            frames += [self._summary(history, value) for value in self.values if len(history)]
        return pd.concat(frames, ignore_index=True)

    def _summary(self, history: pd.DataFrame, value: str) -> pd.DataFrame:
        history = history[history["round"] >= self.first.get(value, 0)]
        frame = summarise(history, self.by, value, centre=self.centre, band=self.band, axes=self.axes)
        if self.metric is not None:
            frame.insert(0, self.metric, value)
        return frame

    def _scaled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Compute the bands of logarithmic panels on the scale of logarithms."""
        # Without those that `shown` adds.
        by = [part.column for part in self._dimensions() if isinstance(part, By) and part.column in frame]
        panels = [panel for _, panel in frame.groupby(by, sort=False)] if by else [frame]
        scaled = [on_log_scale(panel) if self._is_logarithmic(panel) else panel for panel in panels]
        return pd.concat(scaled).sort_index()

    def show(self, frame: pd.DataFrame) -> Figure:
        """Draw the table; where it has several pages, the first."""
        return self.pages_of(frame)[0]

    def pages_of(self, frame: pd.DataFrame) -> list[Figure]:
        """Draw the table, a picture a page."""
        frame = frame if self.shown is None else self.shown(frame)
        return [self._page(_where(frame, page.where), page) for page in _strips(self.pages, frame)]

    @styled
    def _page(self, frame: pd.DataFrame, page: _Strip) -> Figure:
        lines = self.lines_of(frame)
        explained, varying = self._with_settings(frame, lines)
        # Panels side by side whose curves have the same settings, of those that vary, and these.
        alike: list[tuple[list[Axes], pd.DataFrame]] = []
        rows, columns = _strips(self.rows, frame), _strips(self.columns, frame)
        first_x = page.x or self._first_x()
        entries = [*(() if self.panel_legends else explained), *self.others]
        entries += [one.line for one in self._published(frame)]
        wide = False
        across = len(columns) if self.wrap is None else min(self.wrap, len(columns))
        down = -(-len(columns) // across)  # lines of panels that a row takes
        made, axes = canvas(
            len(rows) * down,
            across,
            title=" · ".join(filter(None, (self.prefix, self.title, page.label))),
            width=self.width,
            height=self.height,
        )
        inches = panel_width(self.width, across)
        for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
            ax, x = axes[i * down + j // across][j % across], row.x or column.x or page.x or self.x_column
            panel = _where(frame, {**row.where, **column.where})
            title = ", ".join(filter(None, (row.label, column.label)))
            # About 15 characters to an inch.
            entitle(ax, textwrap.fill(title, int(15 * (inches - 0.4))))
            if i == len(rows) - 1 or row.x is not None:
                ax.set_xlabel(textwrap.fill(self._of_metric(self.x[x], panel), int(15 * (inches - 0.3))))
            if panel.empty:
                ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", color="#767676")
                continue
            if j % across == 0 or not isinstance(self.y, str):
                ax.set_ylabel(textwrap.fill(self._of_metric(self.y, panel), int(13 * self.height)))
            wide |= plot_curves(
                ax,
                panel,
                self.series,
                lines,
                x=x,
                log_x=self._is_logarithmic_x(x, panel),
                log_y=self._of_metric(self.log_y, panel),
                limits=self.limits,
                notes=x == first_x,
            )
            for one in self._published(panel):
                (one if x == self._first_x() else one._replace(x=None)).draw(ax)
            if self.annotate is not None:
                self.annotate(ax, panel, lines, x)
            if self.panel_legends:
                own = list(self.lines_of(panel).values())
                explain(ax, own, loc="center left", bbox_to_anchor=(1.0, 0.5))
            elif varying:
                told = panel.groupby(self.series)[varying].first()
                told = told.loc[[key for key in lines if key in told.index]]
                if j % across and alike and told.equals(alike[-1][1]):
                    alike[-1][0].append(ax)
                else:
                    alike.append(([ax], told))
        for ax in axes[-1][(len(columns) - 1) % across + 1 :]:
            ax.set_axis_off()
        for some, told in alike:
            own = [lines[key]._replace(label=", ".join(self._said(row))) for key, row in told.iterrows()]
            if len(told.drop_duplicates()) == 1:  # the title says it of all curves
                entitle(some[0], f"{some[0].get_title(loc='left')}, {own[0].label}")
            else:
                explain_where_free(some, own)
        entries += [*[ENDS] * wide, *of_seeds(frame)]
        if entries:
            legend(made, entries, columns=self.legend_columns)
        return made

    def _with_settings(self, frame: pd.DataFrame, lines: dict[Any, Line]) -> tuple[list[Line], list[str]]:
        """Return the legend's lines, with the settings that each has in all panels, and those that vary."""
        if not self.settings:
            return list(lines.values()), []
        runs = frame.groupby(self.series)[list(self.settings)]
        first, constant = runs.first(), (runs.min() == runs.max()).all()
        told = [
            line._replace(label=", ".join([line.label, *self._said(first.loc[key, constant])]))
            for key, line in lines.items()
        ]
        return told, [name for name in self.settings if not constant[name]]

    def _said(self, values: pd.Series) -> list[str]:
        return [f"{self.settings[name]} = {_rounded(value)}" for name, value in values.items()]


def _rounded(value: Any) -> str:
    return np.format_float_positional(value, precision=2, fractional=False, trim="-")


def _dimensions(parts: Sequence[str | By | X]) -> list[By | X]:
    return [By(part) if isinstance(part, str) else part for part in parts]


def _strips(parts: Sequence[str | By | X], frame: pd.DataFrame) -> list[_Strip]:
    """Return the rows, or the columns, of panels: combinations of values that occur, and axes."""
    dimensions = _dimensions(parts)
    by = [part for part in dimensions if isinstance(part, By)]
    occurring = set(frame[[part.column for part in by]].itertuples(index=False, name=None))
    choices = [
        part.columns if isinstance(part, X) else part.order(frame[part.column].tolist())
        for part in dimensions
    ]
    strips = []
    for chosen in itertools.product(*choices):
        pairs = list(zip(dimensions, chosen, strict=True))
        values = [(part, value) for part, value in pairs if isinstance(part, By)]
        if by and tuple(value for _, value in values) not in occurring:
            continue
        x = next((value for part, value in pairs if isinstance(part, X)), None)
        label = ", ".join(filter(None, (part.label(value) for part, value in values)))
        strips.append(_Strip({part.column: value for part, value in values}, x, label))
    return strips


def _where(frame: pd.DataFrame, conditions: Mapping[str, Any]) -> pd.DataFrame:
    for column, value in conditions.items():
        frame = frame[frame[column] == value]
    return frame
