"""Figure 11: the size of the cohort, without and with noise, at both dimensions."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.fig1 import noise_name
from replifed.papers.fedgradmp.panels import ERROR, collect, draw_grid
from replifed.papers.fedgradmp.titles import EXPERIMENTS
from replifed.figures.style import sequence_lines

TITLE = "FedGradMP Figure 11: cohort size"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Relative error against rounds; panels by dimension and noise, curves by cohort."""
    return collect(inputs, settings, ["experiment", "noise", "cohort"], "error")


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each dimension; noiseless on the left, noisy on the right."""
    return draw_grid(
        frame,
        [({"experiment": name}, EXPERIMENTS[name]) for name in dict.fromkeys(frame["experiment"])],
        [({"noise": noise}, "round", noise_name(noise)) for noise in sorted(frame["noise"].unique())],
        "cohort",
        sequence_lines({L: f"{L} clients" for L in sorted(frame["cohort"].unique())}),
        title=TITLE,
        y_label=ERROR,
    )
