"""Histories -> the medians and ranges over seeds that figures draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from replifed.papers.qshed.titles import curve_name


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
