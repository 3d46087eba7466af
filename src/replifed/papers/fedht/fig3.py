"""Figure 3: the federated methods against Distributed-IHT on the simulations."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedht.panels import (
    collect,
    draw_methods,
    experiments_and_levels,
    minibatched,
    panel_name,
)
from replifed.papers.fedht.titles import ordered_levels

TITLE = "FedHT Figure 3: rounds and local iterations on the simulations"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Objective of each method against rounds, iterations and bits, at the mildest and strongest level."""

    def keep(history: pd.DataFrame) -> pd.Series:
        levels = ordered_levels(history["level"])
        return minibatched(history) & history["tuned"] & history["level"].isin([levels[0], levels[-1]])

    return collect(inputs, settings, keep, panel_name)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each simulation and level, columns for readings and axes."""
    return draw_methods(frame, TITLE, experiments_and_levels(frame))
