"""Figure 1: linear convergence at several levels of heterogeneity, without and with noise."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.panels import ERROR, collect, draw_grid
from replifed.figures.style import sequence_lines

TITLE = "FedGradMP Figure 1: relative error at several levels of heterogeneity"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Relative error against rounds; panels by noise, curves by alpha."""
    return collect(inputs, settings, ["experiment", "noise", "alpha"], "error")


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: noiseless on the left, noisy on the right."""
    return draw_grid(
        frame,
        [({}, "")],
        [({"noise": noise}, "round", noise_name(noise)) for noise in sorted(frame["noise"].unique())],
        "alpha",
        sequence_lines({alpha: f"α = {alpha:g}" for alpha in sorted(frame["alpha"].unique())}),
        title=TITLE,
        y_label=ERROR,
    )


def noise_name(noise: float) -> str:
    """Name of a panel by the variance of its noise."""
    return "noiseless" if noise == 0 else f"noise of variance {noise:.3g}"
