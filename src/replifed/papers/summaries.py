"""Run histories -> the few numbers of each curve that a figure draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from replifed.claims.intervals import mean_interval

BITS = ("bits_up", "bits_down")


def summarise(
    history: pd.DataFrame, by: Sequence[str], value: str = "objective", deviation: bool = False
) -> pd.DataFrame:
    """Average each curve over its repetitions, round by round.

    Repetitions that diverge at some time stay out of the average altogether, or it would blow up with
    them and then fall to what the others show; where all of them diverge, the average is over those
    still alive, and the curve ends with the last. So every number in the summary is finite.

    Parameters
    ----------
    history : DataFrame
        With columns `by`, replicate, round, `value`, iterations, bits_up, bits_down and diverged.
    by : sequence of str
        Columns that tell the curves apart.
    value : str
        The column to average.
    deviation : bool
        Make low and high one standard deviation off the mean instead of its interval.

    Returns
    -------
    DataFrame
        Columns `by`, then round, iterations, bits (up and down, all clients, so far), mean, low, high
        (95 % t interval; the mean itself where it is over one repetition), alive (repetitions at that
        round), seeds (repetitions in all) and diverged (repetitions lost by the end of the run).
    """
    curves = []
    for key, curve in history.groupby(list(by), sort=False):
        table = curve.assign(bits=curve[list(BITS)].sum(axis=1)).set_index(["round", "replicate"])
        # Not pivot_table: that would average doubled lines away instead of refusing them.
        table = table[[value, "iterations", "bits", "diverged"]].sort_index().unstack()  # noqa: PD010
        lost = table["diverged"].to_numpy(dtype=bool)
        numbers = {name: table[name].to_numpy(dtype=float) for name in (value, "iterations", "bits")}
        lost = np.maximum.accumulate(lost | ~np.isfinite(numbers[value]), axis=0)
        survived = ~lost[-1]
        for t, number in enumerate(table.index):
            alive = ~lost[t]
            if not alive.any():
                break
            used = survived if survived.any() else alive
            mean, low, high = mean_interval(numbers[value][t, used])
            one = used.sum() == 1
            if deviation and not one:
                spread = float(np.std(numbers[value][t, used], ddof=1))
                low, high = mean - spread, mean + spread
            curves.append(
                {
                    **dict(zip(by, key, strict=True)),
                    "round": int(number),
                    "iterations": numbers["iterations"][t, used].mean(),
                    "bits": numbers["bits"][t, used].mean(),
                    "mean": mean,
                    "low": mean if one else low,
                    "high": mean if one else high,
                    "alive": int(alive.sum()),
                    "seeds": lost.shape[1],
                    "diverged": int(lost[-1].sum()),
                }
            )
    return pd.DataFrame(curves)


def median_and_range(row: Any, form: str, seeds: str = "") -> str:
    """What it took to get somewhere: "120 [80, …] (2 of 3)", or "not reached" where no seed got there.

    Parameters
    ----------
    row : with median, low and high, infinite where so few seeds got there, and the numbers reached and seeds
    form : str
        Format of the numbers.
    seeds : str
        What to say behind the number of seeds.
    """
    if not row.reached:
        return "not reached"
    median = f"{row.median:{form}}" if np.isfinite(row.median) else "–"
    high = f"{row.high:{form}}" if np.isfinite(row.high) else "…"
    some = "" if row.reached == row.seeds else f" ({row.reached} of {row.seeds}{seeds})"
    return f"{median} [{row.low:{form}}, {high}]{some}"
