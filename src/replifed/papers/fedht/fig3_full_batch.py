"""Figure 3 once more, with full local gradients instead of minibatches, one data set."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedht.panels import collect, draw_methods, experiments_and_levels, panel_name

TITLE = "FedHT Figure 3 with full local gradients"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Objective of each method against rounds, iterations and bits, with all samples in each gradient."""
    return collect(
        inputs, settings, lambda history: (history["batch"] == "full") & history["tuned"], panel_name
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    return draw_methods(frame, TITLE, experiments_and_levels(frame))
