"""Figure 8: FedIterHT with each of the printed learning rates."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.panels import ERROR, collect, draw_grid
from replifed.papers.fedgradmp.titles import READINGS
from replifed.figures.style import sequence_lines

TITLE = "FedGradMP Figure 8: FedIterHT with each learning rate"
# The text's left panel has these and larger ones, its right panel the smaller ones.
LARGE = 0.004


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Relative error and loss against rounds; panels as in the paper, rows by reading."""
    by = ["experiment", "variant", "step"]
    error = collect(inputs, settings, by, "error")
    loss = collect(inputs, settings, by, "objective")
    return pd.concat(
        [
            error[error["step"] >= LARGE].assign(panel="large"),
            error[error["step"] < LARGE].assign(panel="small"),
            loss[loss["step"] < LARGE].assign(panel="loss"),
        ],
        ignore_index=True,
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each reading; large steps, small steps, and the latter's loss."""
    # The left column shows how errors grow: there, runs that diverge set the range as well.
    shown = frame.assign(diverged=frame["diverged"].where(frame["panel"] != "large", 0))
    return draw_grid(
        shown,
        [({"variant": name}, text) for name, text in READINGS.items() if (frame["variant"] == name).any()],
        [
            ({"panel": "large"}, "round", "large steps"),
            ({"panel": "small"}, "round", "small steps"),
            ({"panel": "loss"}, "round", "small steps"),
        ],
        "step",
        sequence_lines({step: f"{step:g}" for step in sorted(frame["step"].unique())}),
        title=TITLE,
        y_label=[ERROR, ERROR, "loss"],
        width=4.0,
    )
