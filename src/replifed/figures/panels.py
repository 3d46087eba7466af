"""Panels of curves, declared once: which columns of a table they show, and against which axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from replifed.figures.curves import is_logarithmic, with_margin
from replifed.figures.lines import BLACK, Line, sequence_lines

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
        """Return the part of a panel's title that names a value."""
        if isinstance(self.labels, Mapping):
            return self.labels.get(value, str(value))
        return self.labels(value) if self.labels is not None else ""

    def lines(self, frame: pd.DataFrame) -> dict[Any, Line]:
        """Return a line for each value, if the column tells curves apart: a sequence, in order."""
        return sequence_lines({value: self.label(value) for value in self.order(frame[self.column].tolist())})


class X:
    """A panel for each horizontal axis, a column of the table; those that it lacks are left out."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns


class Strip(NamedTuple):
    """Lines of the table that one row, one column or one page of panels shows."""

    where: dict[str, Any]
    x: str | None
    label: str


class Reference(NamedTuple):
    """A number drawn across some panels, dotted or with other `dashes`: upright at `x`, level at `y`.

    A column as `y` stands for its first value in each panel. With the id of a claim it is a number of the
    paper, taken from where that claim takes it, and its label begins with "published".
    """

    label: str
    x: float | None = None  # on the first horizontal axis
    y: float | str | None = None
    where: Mapping[str, Any] = {}  # columns of the table, and their values in these panels
    claim: str = ""  # without the paper, and without the suffix of an interpretation
    dashes: tuple = (0, (1, 2))

    @property
    def line(self) -> Line:
        """Its entry in a legend."""
        return Line(self.label, BLACK, self.dashes, "", 0.9)

    def of(self, panel: pd.DataFrame) -> Reference:
        """Return the reference with the number that a panel has for a column."""
        return self._replace(y=float(panel[self.y].iloc[0])) if isinstance(self.y, str) else self

    def draw(self, ax: Axes) -> None:
        """Draw it into a panel, whose vertical axis is extended to show it."""
        look: dict[str, Any] = {"zorder": 1, **self.line.look}
        if self.x is not None:
            ax.axvline(self.x, **look)
        if isinstance(self.y, float | int):
            bottom, top = ax.get_ylim()
            if not bottom < self.y < top:
                ends = min(bottom, self.y), max(top, self.y)
                ax.set_ylim(with_margin(*ends, ax.get_yscale() == "log"))
            ax.axhline(self.y, **look)


class Panel(NamedTuple):
    """Curves of one panel, and the labels of all horizontal axes that it can be drawn on."""

    page: str  # label of its picture; the first one is the PNG
    title: str
    frame: pd.DataFrame
    x: dict[str, str]  # labels of the horizontal axes by column; the first is drawn
    log_x: dict[str, bool]
    y: str
    log_y: bool
    references: list[Reference]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Columns of a figure's table that are curves, and their panels: drawn in pictures and on web pages.

    A column `median` or `mean` of the table is the height of a curve; `low` and `high`, if it has them, are
    the ends of its band.
    """

    # The panels: rows and columns of them, a str being a column of the table without labels.
    rows: Sequence[str | By | X] = ()
    columns: Sequence[str | By | X] = ()
    pages: Sequence[str | By | X] = ()  # pictures of their own, pages of one PDF; the first is the PNG
    # The curves of a panel: the column that tells them apart, and the line of each of its values, or a
    # function that makes them from the table; a value that it lacks is drawn in black.
    series: str
    lines: Mapping[Any, Line] | Callable[[pd.DataFrame], Mapping[Any, Line]] = field(default_factory=dict)
    shown: Callable[[pd.DataFrame], pd.DataFrame] | None = None  # from the table to its curves
    metric: str | None = None  # column on which labels and scales depend, such as what a curve measures
    # Panels without curves, by value of `metric`, and the functions that draw them; web pages omit them.
    diagrams: Mapping[Any, Callable[[Axes, pd.DataFrame], object]] = field(default_factory=dict)
    # The axes: labels, by value of `metric` and by column, and whether they are logarithmic. By default the
    # curves' range decides on vertical axes; horizontal ones are logarithmic for all columns but rounds.
    # The first column of `x` is that of the horizontal axes where no part is an `X`.
    y: str | Mapping[str, str]
    x: Mapping[str, str | Mapping[str, str]]
    log_y: bool | Mapping[str, bool] | None = None
    log_x: bool | Mapping[str, bool] | None = None
    references: Sequence[Reference] = ()

    def panels(self, frame: pd.DataFrame) -> Iterator[Panel]:
        """Return the panels of the table, each once however many horizontal axes it is drawn on."""
        frame = self.with_curves(frame if self.shown is None else self.shown(frame))
        first = self.first_x()
        columns = [first, *(column for column in self.x if column != first and column in frame)]
        pages, panels = (
            strips([part for part in parts if not isinstance(part, X)], frame)
            for parts in (self.pages, (*self.rows, *self.columns))
        )
        for page, strip in itertools.product(pages, panels):
            panel = select(frame, {**page.where, **strip.where})
            if len(panel):
                yield Panel(
                    page.label,
                    strip.label,
                    panel,
                    {column: self.of_metric(self.x[column], panel) for column in columns},
                    {column: self.is_logarithmic_x(column, panel) for column in columns},
                    self.of_metric(self.y, panel) or "",
                    self.is_logarithmic_y(panel),
                    self.references_in(panel),
                )

    def lines_of(self, frame: pd.DataFrame) -> dict[Any, Line]:
        """Return the lines of the table's curves: those declared, in their order, then any others."""
        frame = self.with_curves(frame)
        known = self.lines(frame) if callable(self.lines) else self.lines
        present = dict.fromkeys(frame[self.series])
        others = {key: Line(str(key), BLACK) for key in present if key not in known}
        return {key: line for key, line in known.items() if key in present} | others

    def with_curves(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the lines of the table that are points of curves, not of diagrams."""
        return frame[~frame[self.metric].isin(list(self.diagrams))] if self.diagrams else frame

    def is_logarithmic_y(self, panel: pd.DataFrame) -> bool:
        """Return if the vertical axis of a panel is logarithmic."""
        given = self.of_metric(self.log_y, panel)
        return is_logarithmic(panel, self.series) if given is None else bool(given)

    def is_logarithmic_x(self, column: str, panel: pd.DataFrame) -> bool:
        """Return if a horizontal axis of a panel is logarithmic."""
        given = self.of_metric(self.log_x, panel)
        return column != "round" if given is None else bool(given)

    def references_in(self, frame: pd.DataFrame) -> list[Reference]:
        """Return the references that belong into some panel of a table.

        Those beyond the ends of a shorter run would squeeze its curves, and are omitted.
        """
        column, within = self.first_x(), []
        for one in self.references:
            panel = select(frame, one.where)
            if len(panel) and (one.x is None or panel[column].min() <= one.x <= panel[column].max()):
                within.append(one.of(panel))
        return within

    def of_metric(self, given: Any, panel: pd.DataFrame) -> Any:
        """Return the value given for the metric of a panel, or for all metrics."""
        if isinstance(given, Mapping):
            return given.get(panel[self.metric].iloc[0])
        return given

    def first_x(self) -> str:
        """Return the column of the first horizontal axis."""
        for part in (*self.pages, *self.rows, *self.columns):
            if isinstance(part, X):
                return part.columns[0]
        return next(iter(self.x))


def strips(parts: Sequence[str | By | X], frame: pd.DataFrame) -> list[Strip]:
    """Return the rows, columns or pages of panels: combinations of values that occur, and axes."""
    dimensions = [By(part) if isinstance(part, str) else part for part in parts]
    by = [part for part in dimensions if isinstance(part, By)]
    occurring = set(frame[[part.column for part in by]].itertuples(index=False, name=None))
    choices = [
        [column for column in part.columns if column in frame]
        if isinstance(part, X)
        else part.order(frame[part.column].tolist())
        for part in dimensions
    ]
    combinations = []
    for combination in itertools.product(*choices):
        pairs = list(zip(dimensions, combination, strict=True))
        values = [(part, value) for part, value in pairs if isinstance(part, By)]
        if by and tuple(value for _, value in values) not in occurring:
            continue
        x = next((value for part, value in pairs if isinstance(part, X)), None)
        label = ", ".join(filter(None, (part.label(value) for part, value in values)))
        combinations.append(Strip({part.column: value for part, value in values}, x, label))
    return combinations


def select(frame: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    """Return the lines of a table with these values of its columns."""
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame
