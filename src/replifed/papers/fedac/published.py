"""The authors' published numbers: single runs, and the points of their figures.

`published/a9a_runs.csv.xz` has two thirds of the runs on a9a, `a9a_points.csv.xz` and `epsilon_points.csv.xz`
the least objective over the figures' steps.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


FOLDER = Path(__file__).with_name("published")
# Columns that name a run, and a point.
RUN = ["l2", "method", "eta", "M", "K"]
POINT = ["l2", "method", "M", "K"]


@cache
def runs() -> pd.DataFrame:
    """Runs on a9a: l2, method, eta, M, K, final_loss and best_loss."""
    return _read("a9a_runs")


@cache
def points(data: str = "a9a") -> pd.DataFrame:
    """Points of the figures on "a9a" or "epsilon": l2, method, M, K, eta and best_loss."""
    return _read(f"{data}_points")


def _read(name: str) -> pd.DataFrame:
    # As text first: some versions of pandas read numbers to the last digit but one.
    import pandas as pd

    frame = pd.read_csv(FOLDER / f"{name}.csv.xz", dtype=str)
    types = {column: int if column in ("M", "K") else float for column in frame if column != "method"}
    return frame.astype(types)


@cache
def best_steps(l2: float, method: str) -> dict[tuple[int, int], float]:
    """The eta of each published point (M, K) on a9a."""
    known = points()
    known = known[(known["l2"] == l2) & (known["method"] == method)]
    return dict(zip(zip(known["M"], known["K"], strict=True), known["eta"], strict=True))
