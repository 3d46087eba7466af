"""Figure 2: relative cost on w8a, without and with fading."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.qshed.panels import collect, draw_panels

CURVES = ("ideal_shed", "qshed", "nqshed", "fednl.rank1_ls", "fednl.projected")


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Medians and ranges over seeds, of the methods that the paper compares."""
    return collect(inputs, settings, CURVES, ("constant", "rayleigh"))


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    panels = [("w8a", channel) for channel in ("constant", "rayleigh")]
    return draw_panels(frame, "Q-SHED: convergence on w8a, against rounds", "round", panels)
