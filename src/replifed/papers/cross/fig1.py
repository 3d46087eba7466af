"""Relative gap of first-order methods against rounds, bits and sample gradients."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.cross import panels
from replifed.papers.cross.families import FIRST_ORDER

TITLE = "All methods on one problem: first-order methods"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """See `panels.table`."""
    return panels.table(inputs)


def draw(frame: pd.DataFrame) -> Figure:
    """See `panels.draw`."""
    return panels.draw(frame, FIRST_ORDER, TITLE)
