"""Means over data sets with their intervals, for tables and figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from replifed.figures.summaries import mean_interval


def over_data_sets(history: pd.DataFrame, by: Sequence[str], value: str = "rate") -> pd.DataFrame:
    """Average `value` over the data sets, for each combination of the columns `by`.

    Returns
    -------
    DataFrame
        Columns `by`, then mean, low, high (95 % t interval, the mean itself over one data set), sets, and
        diverged: data sets without a finite value, which stay out of the mean (it is 1 where none is left).
    """
    rows = []
    for key, group in history.groupby(list(by), sort=False):
        values = group[value].to_numpy(dtype=float)
        finite = values[np.isfinite(values)]
        mean, low, high = mean_interval(finite) if len(finite) else (1.0, 1.0, 1.0)
        one = len(finite) < 2
        rows.append(
            {
                **dict(zip(by, key, strict=True)),
                "mean": mean,
                "low": mean if one else low,
                "high": mean if one else high,
                "sets": len(values),
                "diverged": len(values) - len(finite),
            }
        )
    return pd.DataFrame(rows)


def with_interval(row: pd.Series, digits: int = 3) -> str:
    """ "0.531 ± 0.004" and, where some did, how many runs diverged; where most did, that alone."""
    if 2 * row["diverged"] > row["sets"]:
        return f"diverges ({row['diverged']} of {row['sets']})"
    text = f"{row['mean']:.{digits}f} ± {(row['high'] - row['low']) / 2:.{digits}f}"
    return f"{text} ({row['diverged']} of {row['sets']} diverge)" if row["diverged"] else text
