"""Accuracies on digits, as Figures 6 and 7 show them."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.panels import collect, draw_grid
from replifed.papers.fedgradmp.titles import DIGIT_LINES

PANELS = {"train_accuracy": "training writers", "test_accuracy": "test writers"}


def accuracies(inputs: Any, settings: dict) -> pd.DataFrame:
    """Mean accuracies of each method at its best step; methods without a sparsity level have tau = 0."""
    by = ["experiment", "method", "variant"]
    frames = [
        collect(inputs, settings, by, value, logarithmic=False, keep=_at_best_step).assign(panel=value)
        for value in PANELS
    ]
    frame = pd.concat(frames, ignore_index=True)
    sparse = frame["method"].isin(["fedgradmp", "fediterht"])
    frame["tau"] = pd.to_numeric(frame["variant"].where(sparse, "0")).astype(int)
    return frame.drop(columns="variant")


def _at_best_step(history: pd.DataFrame) -> pd.Series:
    return history["reading"] == "own"


def draw_accuracies(frame: pd.DataFrame, x: str, title: str) -> Figure:
    """Draw a row for each tau, with the methods that have none in every row."""
    dense, sparse = frame[frame["tau"] == 0], frame[frame["tau"] > 0]
    taus = sorted(sparse["tau"].unique())
    shown = pd.concat([sparse, *(dense.assign(tau=tau) for tau in taus)], ignore_index=True)
    shown = shown[shown["round"] > 0]
    return draw_grid(
        shown,
        [({"tau": tau}, f"τ = {tau}") for tau in taus],
        [({"panel": name}, x, text) for name, text in PANELS.items()],
        "method",
        DIGIT_LINES,
        title=title,
        y_label="accuracy",
        height=2.3,
        log_y=False,
    )
