"""Figure 2: FedMM with and without control variates, all local samples, no quantisation."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedmm.panels import collect, draw_metrics
from replifed.papers.fedmm.titles import lines

TITLE = "FedMM Figure 2: control variates"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """The three metrics for each step of the control variates and each share of active clients."""
    frame = collect(inputs, settings, lambda *_: slice(None))
    frame["setting"] = [
        f"{alpha:g},{share:g}" for alpha, share in zip(frame["alpha"], frame["participation"], strict=True)
    ]
    return frame


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    settings = frame[["participation", "alpha", "setting"]].drop_duplicates()
    settings = settings.sort_values(["participation", "alpha"], ascending=[False, True])
    labels = {
        row.setting: f"α = {row.alpha:g}, {100 * row.participation:.0f} % of the clients"
        for row in settings.itertuples()
    }
    return draw_metrics(frame, "setting", lines(labels), title=TITLE, columns=3)
