"""The searches behind the steps: the score of every step that was tried, and what the search cost."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from replifed.papers.fedmm.titles import EXPERIMENTS, METHODS


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Every step of every search; the score of a step that diverged is infinite.

    `edge`, `chaotic` and the cost (`runs`, `rounds`, `bits`) are the whole search's.
    """
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
                        "rejected": beta in found["rejected"],
                        "edge": found["edge"],
                        "chaotic": found["chaotic"],
                        **found["cost"],
                    }
                )
    return pd.DataFrame(rows)


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people: a line for each search, its steps in increasing order."""
    rows = []
    for (experiment, method), lines in frame.groupby(["experiment", "method"], sort=False):
        one = lines.iloc[0]
        rows.append(
            {
                "Data": EXPERIMENTS[experiment],
                "Method": METHODS[method].label,
                "β: mean objective": ", ".join(map(_told, lines.sort_values("beta").itertuples())),
                "best": "at the bound" if one["edge"] else "inside",
                "stable": "none" if one["chaotic"] else "yes",
                "runs": f"{one['runs']:,}",
                "rounds": f"{one['rounds']:,}",
                "bits": f"{one['bits']:.2g}",
            }
        )
    return pd.DataFrame(rows)


def _told(line: Any) -> str:
    score = "diverged" if math.isinf(line.score) else f"{line.score:.4g}"
    return f"{line.beta:g}: {score}" + (" *" if line.chosen else " †" if line.rejected else "")
