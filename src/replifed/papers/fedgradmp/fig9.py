"""Figure 9: FedGradMP on the data of Figure 8, down to rounding errors."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.panels import ERROR, collect, draw_grid
from replifed.papers.fedgradmp.titles import LINES

TITLE = "FedGradMP Figure 9: exact recovery"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Relative error and loss against rounds."""
    frames = [
        collect(inputs, settings, ["experiment", "series"], value).assign(panel=value)
        for value in ("error", "objective")
    ]
    return pd.concat(frames, ignore_index=True)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: the error, and the loss."""
    return draw_grid(
        frame,
        [({}, "")],
        [({"panel": "error"}, "round", ""), ({"panel": "objective"}, "round", "")],
        "series",
        LINES,
        title=TITLE,
        y_label=[ERROR, "loss"],
        width=3.8,
    )
