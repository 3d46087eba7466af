"""What each method that is compared uses, and who needs less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from replifed.claims.pairs import matrix
from replifed.comparison.paper import lines
from replifed.figures.artefact import Made, by_name
from replifed.papers.cross.figures import TABLES as CROSS
from replifed.papers.cross.figures import USED, render_used
from replifed.papers.cross.paper import FAIR


def _labels() -> dict[str, str]:
    return {name: line.label for name, line in lines().items()}


def _shown(name: str, show: Callable[[pd.DataFrame], Any], caption: str) -> Made:
    """A table of `cross`, with the names of one's own methods too."""
    made = CROSS[name]
    return Made(name, made.title, caption, made.table, show)


TABLES = by_name(
    _shown("table1", lambda frame: render_used(frame, _labels()), f"{USED} {FAIR}"),
    _shown("pairs", lambda frame: matrix(frame, _labels()), CROSS["pairs"].caption),
)
