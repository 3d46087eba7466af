"""Histories -> the medians and ranges over seeds that figures draw, and rounds to a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.papers.qshed.titles import curve_name
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


def medians(history: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Median and range of the gap over seeds, round by round.

    A seed's run ends once it has converged; it stays there while others go on. Seeds that diverge are
    left out, and counted.

    Returns
    -------
    DataFrame
        Columns `by`, then curve, round, megabits (median of what all devices have sent), median, low, high,
        seeds, diverged.
    """
    rows = []
    for key, curve in history.groupby(list(by), sort=False):
        gaps = _unstacked(curve, "gap")
        megabits = _unstacked(curve, "bits_up") / 1e6
        lost = ~np.isfinite(gaps.to_numpy()).all(axis=0)
        kept = gaps.to_numpy()[:, ~lost] if not lost.all() else gaps.to_numpy()
        bits = megabits.to_numpy()[:, ~lost] if not lost.all() else megabits.to_numpy()
        labels = dict(zip(by, key, strict=True))
        for place, t in enumerate(gaps.index):
            values = kept[place][np.isfinite(kept[place])]
            if not len(values):
                break
            rows.append(
                {
                    **labels,
                    "curve": curve_name(labels["method"], labels["variant"]),
                    "round": int(t),
                    "megabits": float(np.median(bits[place])),
                    "median": float(np.median(values)),
                    "low": float(values.min()),
                    "high": float(values.max()),
                    "seeds": gaps.shape[1],
                    "diverged": int(lost.sum()),
                }
            )
    return pd.DataFrame(rows)


def _unstacked(curve: pd.DataFrame, column: str) -> pd.DataFrame:
    table = curve.set_index(["round", "replicate"])[column].sort_index().unstack()  # noqa: PD010
    return table.ffill()
