"""Figure 10: the number of local iterations, without and with noise."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.fig1 import noise_name
from replifed.papers.fedgradmp.panels import ERROR, collect, draw_grid
from replifed.figures.style import sequence_lines

TITLE = "FedGradMP Figure 10: number of local iterations"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Relative error against rounds; panels by noise, curves by K."""
    return collect(inputs, settings, ["experiment", "noise", "local_steps"], "error")


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: noiseless on the left, noisy on the right."""
    return draw_grid(
        frame,
        [({}, "")],
        [({"noise": noise}, "round", noise_name(noise)) for noise in sorted(frame["noise"].unique())],
        "local_steps",
        sequence_lines({K: f"K = {K}" for K in sorted(frame["local_steps"].unique())}),
        title=TITLE,
        y_label=ERROR,
    )
