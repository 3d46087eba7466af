"""Table III: Fed-PLT's rate with one to all agents active."""

from __future__ import annotations

from typing import Any

import pandas as pd

from replifed.papers.fedplt.published import TABLE3
from replifed.papers.fedplt.summaries import over_data_sets, with_interval


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Mean rates; 1 - p (1 - r), with r the rate of all agents, beside them."""
    found = over_data_sets(inputs.run("participation", "fedplt"), ("active",))
    found["published"] = [TABLE3[active - 1] for active in found["active"]]
    agents = settings["experiments"]["participation"]["agents"]
    full = found.loc[found["active"] == agents, "mean"]
    if len(full):
        found["interpolated"] = 1 - found["active"] / agents * (1 - full.iloc[0])
    return found


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """The table to read."""
    return pd.DataFrame(
        {
            "Num. active agents": frame["active"].astype(str),
            "Convergence rate": [with_interval(row) for _, row in frame.iterrows()],
            "Published": frame["published"].map("{:.3f}".format),
            **(
                {"1 - p (1 - r)": frame["interpolated"].map("{:.3f}".format)}
                if "interpolated" in frame
                else {}
            ),
        }
    )
