"""Figures and tables of a paper: their names, titles, numbers and pictures.

A picture of curves is a page laid out in panels, their curves drawn, and lines explained.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replifed.figures.curves import ENDS, align_titles, entitle, mark_ends, panel_inches, plot_curves
from replifed.figures.lines import Line
from replifed.figures.panels import By, Curves, Panel, Reference, Strip, X, select, strips
from replifed.figures.style import canvas, legend, of_seeds, panel_width, styled
from replifed.figures.summaries import on_log_scale

__all__ = ["By", "Curves", "Grid", "Made", "Panel", "Reference", "X", "by_name"]

_LETTERS = 15  # of titles and labels, to an inch
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


class Made(NamedTuple):
    """A table, or a figure that is no grid of curves, made by two functions."""

    name: str  # of its files
    title: str  # in the report
    caption: str  # also the alternative text of a picture
    table: Callable[[Any], pd.DataFrame]  # its numbers, from `papers.inputs.Inputs`
    # These numbers, read back from their CSV, as a picture or as a table of texts.
    show: Callable[[pd.DataFrame], Any]
    stamped: bool = True  # whether its CSV has columns that name the data and the scale
    pages: Sequence[str] = ()  # columns of the table: each combination of their values is a page of the PDF
    texts: Sequence[str] = ()  # columns that hold texts, even where these look like numbers: 007 is not 7
    # These numbers, and a remark on the data, as LaTeX; by default its tables as they are.
    latex: Callable[[pd.DataFrame, str], str] | None = None

    def pages_of(self, frame: pd.DataFrame) -> list[Any]:
        """Return the picture, or one for each page."""
        if not self.pages:
            return [self.show(frame)]
        return [self.show(page) for _, page in frame.groupby(list(self.pages), sort=False)]


class _Cell(NamedTuple):
    """A panel on a page."""

    ax: Axes
    frame: pd.DataFrame
    x: str  # column of its horizontal axis
    line: int  # number of the line of panels that it stands in
    notes: bool  # whether remarks stand in it, which are the same on all horizontal axes of a page


@dataclass(frozen=True)
class Grid(Curves):
    """A figure of curves in a grid of panels, drawn from a table with a line for each curve and point."""

    name: str
    _: KW_ONLY
    title: str
    caption: str
    source: Callable[[Any], pd.DataFrame]  # from `papers.inputs.Inputs` to the table
    prefix: str  # stands before the title
    wrap: int | None = None  # panels side by side, after which a row goes on below
    # Ends of the vertical axes, or a function that computes them from the curves of a panel; None: automatic.
    limits: tuple[float, float] | Callable[[pd.DataFrame], tuple[float, float] | None] | None = None
    # Columns of settings, such as the step, and their symbols. What each curve has in all panels of a page
    # stands in the legend, the rest in the panels, the first of those side by side with the same.
    settings: Mapping[str, str] = field(default_factory=dict)
    panel_legends: bool = False  # whether each panel has a legend of its own curves, beside it
    # Called with the axes of a panel, its curves, the lines, and the column that tells the curves apart.
    annotate: Callable[[Axes, pd.DataFrame, Mapping[Any, Line], str], object] | None = None
    others: Sequence[Line] = ()  # further entries of the legend
    floor: float | None = None  # a value at which curves stop: marks at their ends say so
    headed: bool = True  # whether the title stands above; in a paper the caption has it
    width: float = 4.6  # of a panel, in inches
    height: float = 2.6
    legend_columns: int = 4
    # Whether bands of means are computed on the scale of logarithms in panels with a logarithmic axis.
    log_bands: bool = False
    stamped: ClassVar[bool] = True  # see `Made`

    def table(self, inputs: Any) -> pd.DataFrame:
        """Return its numbers, a line for each curve and point."""
        frame = self.source(inputs)
        if not self.log_bands:
            return frame
        columns = [
            part.column if isinstance(part, By) else part
            for part in (*self.pages, *self.rows, *self.columns)
            if not isinstance(part, X)
        ]
        by = [column for column in columns if column in frame]  # `shown` adds others
        panels = [panel for _, panel in frame.groupby(by, sort=False)] if by else [frame]
        scaled = [on_log_scale(panel) if self.is_logarithmic_y(panel) else panel for panel in panels]
        return pd.concat(scaled).sort_index()

    def show(self, frame: pd.DataFrame) -> Figure:
        """Draw the table; where it has several pages, the first."""
        return self.pages_of(frame)[0]

    def pages_of(self, frame: pd.DataFrame) -> list[Figure]:
        """Draw the table, a picture a page."""
        frame = frame if self.shown is None else self.shown(frame)
        return [self._page(select(frame, page.where), page) for page in strips(self.pages, frame)]

    @styled
    def _page(self, frame: pd.DataFrame, page: Strip) -> Figure:
        made, cells = self._lay_out(frame, page)
        lines = self.lines_of(frame)
        wide_bands = [self._draw(cell, lines) for cell in cells]
        marks: dict[str, Line] = {}
        if self.floor is not None:
            for cell in cells:
                marks |= mark_ends(cell.ax, cell.frame, self.series, lines, cell.x, self.floor)
        fixed, varying = self._settings(frame)
        if not self.panel_legends:
            self._explain_settings(cells, lines, varying)
        for _, group in itertools.groupby(cells, key=attrgetter("line")):
            align_titles([cell.ax for cell in group])
        entries = []
        if not self.panel_legends:
            for key, line in lines.items():
                if line.explained:
                    entries.append(line._replace(label=", ".join([line.label, *fixed.get(key, [])])))
        entries += [*self.others, *(one.line for one in self.references_in(frame))]
        entries += [*[ENDS] * any(wide_bands), *marks.values()]
        if entries:
            legend(made, entries, columns=self.legend_columns, compact=not self.headed)
        return made

    # -- Layout ------------------------------------------------------------------------------------------

    def _lay_out(self, frame: pd.DataFrame, page: Strip) -> tuple[Figure, list[_Cell]]:
        """Make a page with titles and labels of its panels; return it with the panels that have data."""
        rows, columns = strips(self.rows, frame), strips(self.columns, frame)
        across = min(self.wrap or len(columns), len(columns))
        down = -(-len(columns) // across)  # lines of panels that a row takes
        said = (self.prefix, self.title, page.label, of_seeds(frame))
        made, axes = canvas(
            len(rows) * down,
            across,
            title=" · ".join(filter(None, said)) if self.headed else "",
            width=self.width,
            height=self.height,
        )
        cells = []
        for i, row in enumerate(rows):
            of_row = [ax for line in axes[i * down : (i + 1) * down] for ax in line]
            for ax in of_row[len(columns) :]:
                ax.set_axis_off()
            for j, (ax, column) in enumerate(zip(of_row, columns, strict=False)):
                x = row.x or column.x or page.x or next(iter(self.x))
                panel = select(frame, {**row.where, **column.where})
                cell = _Cell(ax, panel, x, i * down + j // across, notes=x == (page.x or self.first_x()))
                self._label(
                    cell,
                    ", ".join(filter(None, (row.label, column.label))),
                    inches=panel_width(self.width, across),
                    with_x=i == len(rows) - 1 or row.x is not None,
                    with_y=j % across == 0 or not isinstance(self.y, str),
                )
                if len(cell.frame):
                    cells.append(cell)
        return made, cells

    def _label(self, cell: _Cell, title: str, *, inches: float, with_x: bool, with_y: bool) -> None:
        """Write the title of a panel and the labels of its axes."""
        entitle(cell.ax, textwrap.fill(title, int(_LETTERS * (inches - 0.4))))
        if with_x:
            label = self.of_metric(self.x[cell.x], cell.frame)
            cell.ax.set_xlabel(textwrap.fill(label, int(_LETTERS * (inches - 0.3))))
        if cell.frame.empty:
            middle: dict[str, Any] = {"transform": cell.ax.transAxes, "ha": "center"}
            cell.ax.text(0.5, 0.5, "not run", **middle, color="#767676")
        elif with_y:
            label = self.of_metric(self.y, cell.frame) or ""
            cell.ax.set_ylabel(textwrap.fill(label, int(13 * self.height)))

    # -- Panels ------------------------------------------------------------------------------------------

    def _draw(self, cell: _Cell, lines: Mapping[Any, Line]) -> bool:
        """Draw the curves of a panel; return if a band is drawn by its ends."""
        ax, panel, x = cell.ax, cell.frame, cell.x
        diagram = self.of_metric(self.diagrams, panel) if self.diagrams else None
        if diagram is not None:
            diagram(ax, panel)
            return False
        wide = plot_curves(
            ax,
            panel,
            self.series,
            lines,
            x=x,
            log_x=self.is_logarithmic_x(x, panel),
            log_y=self.of_metric(self.log_y, panel),
            limits=self.limits(panel) if callable(self.limits) else self.limits,
            notes=cell.notes,
        )
        for one in self.references_in(panel):
            (one if x == self.first_x() else one._replace(x=None)).draw(ax)
        if self.annotate is not None:
            self.annotate(ax, panel, lines, self.series)
        if self.panel_legends:
            own = [line for line in self.lines_of(panel).values() if line.explained]
            explain(ax, own, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return wide

    # -- Legend and settings -----------------------------------------------------------------------------

    def _settings(self, frame: pd.DataFrame) -> tuple[dict[Any, list[str]], list[str]]:
        """Return each curve's settings that no curve changes between panels, and names of the others."""
        if not self.settings:
            return {}, []
        curves = self.with_curves(frame).groupby(self.series)[list(self.settings)]
        first, constant = curves.first(), (curves.min() == curves.max()).all()
        fixed = {key: self._texts(values) for key, values in first.loc[:, constant].iterrows()}
        return fixed, [name for name in self.settings if not constant[name]]

    def _explain_settings(
        self, cells: Sequence[_Cell], lines: Mapping[Any, Line], varying: Sequence[str]
    ) -> None:
        """Write settings that vary into panels: once for panels side by side with the same ones."""
        if not varying:
            return
        texts = []  # of each curve of a panel, in the order of the lines
        for cell in cells:
            settings = cell.frame.groupby(self.series)[list(varying)].first()
            known = [key for key in lines if key in settings.index]
            texts.append((cell.line, {key: ", ".join(self._texts(settings.loc[key])) for key in known}))
        pairs = zip(cells, texts, strict=True)
        for (_, by_key), group in itertools.groupby(pairs, key=itemgetter(1)):
            panels = [cell.ax for cell, _ in group]
            if len(set(by_key.values())) == 1:
                text = next(iter(by_key.values()))  # of all curves: the title names it
                entitle(panels[0], f"{panels[0].get_title(loc='left')}, {text}")
            else:
                explain_where_free(panels, [lines[key]._replace(label=by_key[key]) for key in by_key])

    def _texts(self, values: pd.Series) -> list[str]:
        """Return settings as texts, with two digits."""
        rounded = partial(np.format_float_positional, precision=2, fractional=False, trim="-")
        return [f"{self.settings[name]} = {rounded(value)}" for name, value in values.items()]


Artefact = Made | Grid


def by_name(*artefacts: Artefact) -> dict[str, Artefact]:
    """Return the artefacts of a paper by name, in order."""
    return {artefact.name: artefact for artefact in artefacts}


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
    _, ax, name = min(covered, key=itemgetter(0))
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
