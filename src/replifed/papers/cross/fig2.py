"""Relative gap of methods that send curvature against rounds, bits and sample gradients."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.cross import panels
from replifed.papers.cross.families import SECOND_ORDER

TITLE = "All methods on one problem: methods that send curvature"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """See `panels.table`."""
    return panels.table(inputs)


def draw(frame: pd.DataFrame) -> Figure:
    """See `panels.draw`."""
    return panels.draw(frame, SECOND_ORDER, TITLE)
