"""How much of the true support each method finds, on the data of Figures 3 and 4; not in the paper."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.panels import collect, draw_grid
from replifed.papers.fedgradmp.titles import EXPERIMENTS, LINES

TITLE = "FedGradMP: support recovery"
PANELS = {
    "precision": "precision: share of the model's non-zeros",
    "recall": "recall: share of the true ones",
}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Precision and recall of the server's support against rounds."""
    frames = [
        collect(inputs, settings, ["experiment", "series"], value, logarithmic=False).assign(panel=value)
        for value in PANELS
    ]
    return pd.concat(frames, ignore_index=True)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each data set, precision on the left, recall on the right."""
    return draw_grid(
        frame[frame["round"] > 0],
        [({"experiment": name}, EXPERIMENTS[name]) for name in dict.fromkeys(frame["experiment"])],
        [({"panel": name}, "round", text) for name, text in PANELS.items()],
        "series",
        LINES,
        title=TITLE,
        y_label="share",
        legend_lines=3,
        log_y=False,
    )
