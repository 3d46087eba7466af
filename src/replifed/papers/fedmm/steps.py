"""The searches behind the steps: final objective of every step of the range."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from replifed.papers.fedmm.titles import EXPERIMENTS, METHODS


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Every step of every search; the score of a step that diverged is infinite."""
    rows = []
    for experiment, methods in settings["artefact"]["tuned"].items():
        for method in methods:
            found = inputs.tuned(experiment, method)
            for beta, score in zip(found["betas"], found["scores"], strict=True):
                rows.append(
                    {
                        "experiment": experiment,
                        "method": method,
                        "beta": beta,
                        "score": math.inf if score is None else score,
                        "chosen": beta == found["beta"],
                    }
                )
    return pd.DataFrame(rows)


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people: a line for each search, the chosen step marked by a star."""
    rows = []
    for (experiment, method), lines in frame.groupby(["experiment", "method"], sort=False):
        cells = {
            f"β = {line.beta:g}": ("diverged" if math.isinf(line.score) else f"{line.score:.4g}")
            + (" *" if line.chosen else "")
            for line in lines.itertuples()
        }
        rows.append({"Data": EXPERIMENTS[experiment], "Method": METHODS[method].label, **cells})
    return pd.DataFrame(rows)
