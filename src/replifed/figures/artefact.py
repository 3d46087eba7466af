"""Figures and tables of a paper: their names, titles, numbers and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from replifed.figures.grid import Grid


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

    def pages_of(self, frame: pd.DataFrame) -> list[Any]:
        """Return the picture, or one for each page."""
        if not self.pages:
            return [self.show(frame)]
        return [self.show(page) for _, page in frame.groupby(list(self.pages), sort=False)]


Artefact = Made | Grid


def by_name(*artefacts: Artefact) -> dict[str, Artefact]:
    """Return the artefacts of a paper by name, in order."""
    return {artefact.name: artefact for artefact in artefacts}
