"""Figure 6: the federated methods against Distributed-IHT on real data."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedht.panels import collect, draw_methods, minibatched, panel_name
from replifed.papers.fedht.titles import EXPERIMENTS, REAL_READINGS

TITLE = "FedHT Figure 6: rounds, local iterations and bits on real data"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Objective of each method against rounds, iterations and bits on each data set."""
    return collect(
        inputs,
        settings,
        lambda history: minibatched(history) & history["tuned"],
        panel_name,
        readings=REAL_READINGS,
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each data set, columns for readings and axes."""
    rows = [{"experiment": name} for name in EXPERIMENTS if (frame["experiment"] == name).any()]
    return draw_methods(frame, TITLE, rows, REAL_READINGS, ("round", "iterations", "bits"))
