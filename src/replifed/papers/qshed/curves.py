"""Histories -> rounds to a threshold."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.papers.verdicts import NotMeasurableError


class Reached(NamedTuple):
    """Rounds to a threshold.

    Attributes
    ----------
    seeds : int array, shape (R,)
    rounds : array, shape (R,)
        The last round of the run where the threshold was not reached.
    censored : boolean array, shape (R,)
        Whether it was not reached.
    """

    seeds: NDArray
    rounds: NDArray
    censored: NDArray

    def median(self) -> float:
        """Median over seeds; infinite where half of them or more did not get there."""
        return float(np.median(np.where(self.censored, np.inf, self.rounds)))


def chosen(history: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """Lines of a history whose columns hold the values `where`."""
    for column, wanted in where.items():
        history = history[history[column] == wanted]
    if history.empty:
        said = ", ".join(f"{column} = {wanted}" for column, wanted in where.items())
        raise NotMeasurableError(f"there is no run with {said}")
    return history


def reached(
    history: pd.DataFrame, threshold: float, column: str = "round", limit: int | None = None
) -> Reached:
    """When each seed of one curve first had a gap of at most `threshold`.

    Parameters
    ----------
    history : DataFrame
        One curve of each seed.
    threshold : float
    column : str
        What is counted: "round", or a total such as "bits_up".
    limit : int, optional
        Count as not reached what took more rounds.
    """
    if history.duplicated(["replicate", "round"]).any():
        raise ValueError("more than one curve")
    seeds, counts, censored = [], [], []
    for seed, curve in history.groupby("replicate"):
        if limit is not None:
            curve = curve[curve["round"] <= limit]
        curve = curve.sort_values("round")
        below = curve["gap"].to_numpy() <= threshold
        place = below.argmax() if below.any() else len(below) - 1
        seeds.append(seed)
        counts.append(float(curve[column].iloc[place]))
        censored.append(not below.any())
    return Reached(np.array(seeds), np.array(counts), np.array(censored))
