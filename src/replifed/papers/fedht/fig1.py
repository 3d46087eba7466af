"""Figure 1: FedHT and FedIterHT with different numbers of local steps K."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedht.panels import collect, draw_grid, first_level, minibatched, panel_name
from replifed.papers.fedht.titles import EXPERIMENTS, METHODS, READINGS
from replifed.figures.style import local_steps_lines

TITLE = "FedHT Figure 1: effect of the number of local steps K"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Objective against rounds for each K, on both simulations at their mildest heterogeneity."""
    return collect(
        inputs,
        settings,
        lambda history: minibatched(history) & first_level(history),
        lambda curve: panel_name(curve, method=METHODS[curve["method"]]),
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each simulation and reading, a column for each method."""
    rows = [
        {"experiment": experiment, "reading": reading}
        for experiment in EXPERIMENTS
        if (frame["experiment"] == experiment).any()
        for reading in READINGS
    ]
    columns = [({"method": method}, "round") for method in ("fedht", "fediterht")]
    return draw_grid(
        frame,
        columns,
        rows,
        "local_steps",
        local_steps_lines(frame["local_steps"].unique()),
        title=TITLE,
        width=4.6,
        row_title=lambda row: f"{EXPERIMENTS[row['experiment']]}, {READINGS[row['reading']]}",
        column_title=lambda column: METHODS[column["method"]],
    )
