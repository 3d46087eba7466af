"""What every figure and table of a paper offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from replifed.figures.grid import Curves, Grid


class Made(NamedTuple):
    """An artefact of two functions, for what is no grid of curves."""

    name: str  # of its files
    title: str  # in the report
    caption: str  # what it shows; it doubles as the alternative text of a picture
    table: Callable[[Any], pd.DataFrame]  # its numbers, from `papers.inputs.Inputs`
    # These numbers, read back from their CSV, as a picture or as a table of texts.
    show: Callable[[pd.DataFrame], Any]
    stamped: bool = True  # whether its CSV says, in columns of its own, of which data and scale it is
    pages: Sequence[str] = ()  # columns of the table, a picture for each of whose values is a page of the PDF
    curves: Curves | None = None  # what of its table a page can draw anew as curves

    def pages_of(self, frame: pd.DataFrame) -> list[Any]:
        """Return the picture, or one for each page."""
        if not self.pages:
            return [self.show(frame)]
        return [self.show(page) for _, page in frame.groupby(list(self.pages), sort=False)]


Artefact = Made | Grid


def curves_of(artefact: Any) -> Curves | None:
    """Return which columns of an artefact's table are curves, if any are."""
    return artefact if isinstance(artefact, Curves) else getattr(artefact, "curves", None)


def by_name(*artefacts: Artefact) -> dict[str, Artefact]:
    """Return the artefacts of a paper by name, in order."""
    return {artefact.name: artefact for artefact in artefacts}
