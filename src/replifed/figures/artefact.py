"""What every figure and table of a paper offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import pandas as pd


class Artefact(Protocol):
    """A figure or a table: its CSV, and what a reader sees of it.

    Attributes
    ----------
    name : str
        Of its files.
    title : str
        In the report.
    caption : str
        What it shows; it doubles as the alternative text of a picture.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def caption(self) -> str: ...

    def table(self, inputs: Any, settings: dict) -> pd.DataFrame:
        """Return the numbers of the artefact.

        Parameters
        ----------
        inputs : papers.inputs.Inputs
        settings : dict
            Of the artefact.
        """
        ...

    def show(self, frame: pd.DataFrame) -> Any:
        """Return what `table` returned, read back from its CSV, as a picture or as a table of texts."""
        ...


class Made(NamedTuple):
    """An artefact of two functions, for what is no grid of curves."""

    name: str
    title: str
    caption: str
    table: Callable[[Any, dict], pd.DataFrame]
    show: Callable[[pd.DataFrame], Any]


def by_name(*artefacts: Artefact) -> dict[str, Artefact]:
    """Return the artefacts of a paper by name, in order."""
    return {artefact.name: artefact for artefact in artefacts}
