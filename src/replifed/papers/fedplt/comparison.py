"""What both versions of Table II share."""

from __future__ import annotations

from typing import Any

import pandas as pd

from replifed.papers.fedplt.methods import PARTIAL
from replifed.papers.fedplt.published import COLUMNS, TABLE2
from replifed.papers.fedplt.summaries import over_data_sets, with_interval
from replifed.papers.fedplt.titles import COLUMNS as COLUMN_NAMES
from replifed.papers.fedplt.titles import METHODS, READINGS, participation
from replifed.tune import Spent

COSTS = ["tuning_runs", "tuning_rounds", "tuning_bits"]


def collect(inputs: Any, settings: dict, readings: tuple[str, ...]) -> pd.DataFrame:
    """Mean rates of every cell, one line each, with the published ones and what its search cost."""
    agents = settings["experiments"]["comparison"]["agents"]
    frames = []
    for method in settings["artefact"]["runs"]["comparison"]:
        history = inputs.run("comparison", method)
        chosen = history[history["reading"].isin(readings)]
        if method == "fedavg" or chosen.empty:
            continue
        cells = over_data_sets(chosen, ("reading", "solver", "cohort"))
        per_exchange = chosen.assign(rate=chosen["rate"] ** (1 / chosen["exchanges"]))
        cells["per_exchange"] = over_data_sets(per_exchange, ("reading", "solver", "cohort"))["mean"]
        cells[COSTS] = chosen.groupby(["reading", "solver", "cohort"], sort=False)[COSTS].first().to_numpy()
        cells.insert(0, "method", method)
        cells["participation"] = [participation(cohort, agents) for cohort in cells["cohort"]]
        printed = dict(zip(COLUMNS, TABLE2[method], strict=True))
        cells["published"] = [
            printed[pair] for pair in zip(cells["solver"], cells["participation"], strict=True)
        ]
        frames.append(cells)
    return pd.concat(frames, ignore_index=True)


def biased(inputs: Any) -> pd.DataFrame:
    """FedAvg's line: it converges, but to another point; its last relative error."""
    found = over_data_sets(inputs.run("comparison", "fedavg"), ("reading", "solver", "cohort"), "error")
    return found.assign(method="fedavg", participation="all", **dict.fromkeys(COSTS, 0))


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """The table to read: a line for each method and reading."""
    rows = []
    for (method, reading), cells in frame.groupby(["method", "reading"], sort=False):
        row = {"Algorithm": METHODS[method], "Parameters": READINGS.get(reading, reading)}
        for pair, name in COLUMN_NAMES.items():
            cell = cells[(cells["solver"] == pair[0]) & (cells["participation"] == pair[1])]
            if cell.empty:
                designed = method in (*PARTIAL, "fedavg") or pair[1] == "all"
                row[name] = "not run" if designed else "N/A"
            elif method == "fedavg":
                row[name] = f"stops at a relative error of {cell.iloc[0]['mean']:.2f}"
            else:
                row[name] = f"{with_interval(cell.iloc[0])} [{float(cell.iloc[0]['published']):.3f}]"
        if frame["tuning_runs"].any():
            row["Its searches"] = str(Spent(*cells[COSTS].sum()))
        rows.append(row)
    return pd.DataFrame(rows).rename(columns={name: f"{name} [published]" for name in COLUMN_NAMES.values()})
