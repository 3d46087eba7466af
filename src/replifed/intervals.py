"""Confidence intervals of means over repetitions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Mean of independent finite values (n,) and its Student-t interval, as (mean, low, high).

    One value alone says nothing of its spread: its interval is the whole line.
    """
    # Far lighter to import than scipy.stats.
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"expected a list of finite numbers, got {values}")
    n, mean = len(values), float(values.mean())
    if n == 1:
        return mean, -math.inf, math.inf
    # Equal values have no spread, whatever rounding makes of their mean.
    spread = 0.0 if np.ptp(values) == 0 else float(values.std(ddof=1))
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * spread / math.sqrt(n)
    return mean, mean - half, mean + half
