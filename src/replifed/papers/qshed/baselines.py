"""Further methods without fading: SHED, variants of FedNL, GIANT, distributed Newton, gradient descent."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.qshed.panels import collect, draw_panels
from replifed.papers.qshed.titles import LINES


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Medians and ranges over seeds."""
    return collect(inputs, settings, tuple(LINES), ("constant",))


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    panels = [(experiment, "constant") for experiment in dict.fromkeys(frame["experiment"])]
    return draw_panels(frame, "Q-SHED and further methods", "round", panels)
