"""Remarks 2 and 3: errors that are left with any number of local steps, and without a warm start."""

from __future__ import annotations

from typing import Any

import pandas as pd


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Largest relative error left over the data sets."""
    history = inputs.run("exactness", "fedplt")
    found = history.groupby(["steps", "participation", "start"], sort=False)["error"].agg(["max", "count"])
    return found.rename(columns={"max": "error", "count": "sets"}).reset_index()


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """The table to read."""
    columns = {"Local epochs": [str(steps) for steps in dict.fromkeys(frame["steps"])]}
    names = {
        ("all", "warm"): "all agents",
        ("half", "warm"): "half of them",
        ("all", "cold"): "all, local steps from v instead of x (against Remark 2)",
    }
    for (who, start), name in names.items():
        part = frame[(frame["participation"] == who) & (frame["start"] == start)].set_index("steps")["error"]
        columns[f"Relative error left, {name}"] = [
            "diverges" if part[steps] == float("inf") else f"{part[steps]:.2g}" for steps in part.index
        ]
    return pd.DataFrame(columns)
