"""Figures and tables of a paper: their names, titles, numbers and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from replifed.figures.panels import By, Curves, Panel, Reference, X
from replifed.figures.picture import Picture
from replifed.figures.summaries import on_log_scale

__all__ = ["By", "Curves", "Grid", "Made", "Panel", "Reference", "X", "by_name"]


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


@dataclass(frozen=True)
class Grid(Picture):
    """A figure of curves in a grid of panels, drawn from a table with a line for each curve and point."""

    name: str
    _: KW_ONLY
    caption: str
    source: Callable[[Any], pd.DataFrame]  # from `papers.inputs.Inputs` to the table
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


Artefact = Made | Grid


def by_name(*artefacts: Artefact) -> dict[str, Artefact]:
    """Return the artefacts of a paper by name, in order."""
    return {artefact.name: artefact for artefact in artefacts}
