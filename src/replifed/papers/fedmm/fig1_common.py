"""Figure 1 with one step for both methods: the one tuned for FedMM."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedmm.experiments import tuned_betas
from replifed.papers.fedmm.panels import collect, draw_metrics
from replifed.papers.fedmm.titles import METHODS

TITLE = "FedMM Figure 1: space of aggregation, both methods at FedMM's step"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """The three metrics of both methods on the three data sets."""

    def at_step(experiment: str, method: str, history: pd.DataFrame) -> pd.Series:
        return history["beta"] == tuned_betas(inputs.tuned(experiment, method))["common"]

    return collect(inputs, settings, at_step)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    return draw_metrics(frame, "method", METHODS, title=TITLE)
