"""Figure 2: FedHT and FedIterHT at three degrees of heterogeneity."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedht.panels import collect, draw_grid, minibatched, panel_name
from replifed.papers.fedht.titles import EXPERIMENTS, LEVEL_READINGS, METHODS, level_name, ordered_levels
from replifed.figures.style import sequence_lines

TITLE = "FedHT Figure 2: effect of the degree of heterogeneity (α, β)"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Objective, as a share of the initial one, at each level and at the K that the reading prescribes."""
    return collect(
        inputs,
        settings,
        lambda history: minibatched(history) & history["tuned"],
        lambda curve: panel_name({**curve, "level": ""}, method=METHODS[curve["method"]]),
        readings=LEVEL_READINGS,
        relative=True,  # the levels' objectives begin decades apart
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each simulation and reading, a column for each method."""
    levels = {level: f"(α, β) = {level_name(level)}" for level in ordered_levels(frame["level"])}
    rows = [
        {"experiment": experiment, "reading": reading}
        for experiment in EXPERIMENTS
        if (frame["experiment"] == experiment).any()
        for reading in LEVEL_READINGS
    ]
    columns = [({"method": method}, "round") for method in ("fedht", "fediterht")]
    return draw_grid(
        frame,
        columns,
        rows,
        "level",
        sequence_lines(levels),
        title=TITLE,
        width=4.6,
        row_title=lambda row: f"{EXPERIMENTS[row['experiment']]}, {LEVEL_READINGS[row['reading']]}",
        column_title=lambda column: METHODS[column["method"]],
        y_label="objective / initial objective",
    )
