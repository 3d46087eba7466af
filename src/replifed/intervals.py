"""Intervals of means over repetitions: of our mean, and of another mean that was drawn as ours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Mean of independent finite values (n,) and its Student-t interval, as (mean, low, high).

    One value alone says nothing of its spread: its interval is the whole line.
    """
    values = _finite(values)
    n, mean = len(values), float(values.mean())
    if n == 1:
        return mean, -math.inf, math.inf
    half = _t_quantile(n - 1, 0.5 + confidence / 2) * math.sqrt(_variance(values) / n)
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class Prediction:
    """Where another mean lies that was drawn as ours: Student's t around our mean."""

    mean: float
    deviation: float  # of the difference of the two means; infinite where one repetition says nothing of it
    degrees: float  # of freedom
    widened: float = 0.0  # by which it is wider to either side, such as half a printed digit

    def p_value(self, other: float) -> float:
        """Two-sided p-value of a mean as far off as the other one, or further."""
        from scipy.special import stdtr

        distance = max(abs(other - self.mean) - self.widened, 0.0)
        if not distance:
            return 1.0
        return float(2 * stdtr(self.degrees, -distance / self.deviation)) if self.deviation else 0.0

    def interval(self, level: float) -> tuple[float, float]:
        """Ends of the prediction interval at a level such as .05."""
        half = _t_quantile(self.degrees, 1 - level / 2) * self.deviation + self.widened
        return self.mean - half, self.mean + half


def prediction(
    values: ArrayLike,
    repetitions: int = 1,
    *,
    data_sets: ArrayLike | None = None,
    spread: float | None = None,
    widened: float = 0.0,
) -> Prediction:
    """Prediction of a published mean over `repetitions` from our values (n,), one a repetition.

    The variance of the difference is s^2 / n + s^2 / m, with m repetitions in theirs.

    Parameters
    ----------
    data_sets : array (n,), optional
        Data set of each value, where several runs share one. The published number is then a mean over
        `repetitions` runs on one data set of its own. Both components of the variance enter, with
        Satterthwaite's degrees of freedom; of unequal numbers of runs the means of the data sets count.
    spread : float, optional
        Standard deviation of a repetition that is printed beside the number: theirs instead of ours.
    widened : float
        As of `Prediction`.
    """
    values = _finite(values)
    n, m, mean = len(values), repetitions, float(values.mean())
    if data_sets is not None and len(np.unique(data_sets)) < n:
        return _nested(values, np.asarray(data_sets), m, widened)
    if n == 1:
        return Prediction(mean, math.inf, 1.0, widened)
    variance = _variance(values)
    theirs = variance if spread is None else spread**2
    return Prediction(mean, math.sqrt(variance / n + theirs / m), n - 1, widened)


def _nested(values: NDArray, data_sets: NDArray, m: int, widened: float) -> Prediction:
    """Prediction of a mean over m runs on one new data set, from r runs on each of D.

    With the mean squares B between and W within data sets, the variance of our mean is B / (D r), and of
    theirs B / r + W (1 / m - 1 / r), since B / r estimates the variance between data sets plus W / r.
    """
    names = np.unique(data_sets)
    runs = [values[data_sets == name] for name in names]
    D, n = len(names), len(values)
    if D == 1:
        return Prediction(float(values.mean()), math.inf, 1.0, widened)
    r = 1 / np.mean([1 / len(one) for one in runs])  # the harmonic mean, where numbers differ
    means = np.array([one.mean() for one in runs])
    B = r * _variance(means)
    W = sum(((one - one.mean()) ** 2).sum() for one in runs) / (n - D)
    parts = (B * (1 / (D * r) + 1 / r), D - 1), (W * (1 / m - 1 / r), n - D)
    variance = max(sum(part for part, _ in parts), 0.0)
    if not variance:
        return Prediction(float(means.mean()), 0.0, float(D - 1), widened)
    degrees = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    return Prediction(float(means.mean()), math.sqrt(variance), float(degrees), widened)


def _finite(values: ArrayLike) -> NDArray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"expected a list of finite numbers, got {values}")
    return values


def _variance(values: NDArray) -> float:
    # Equal values have no spread, whatever rounding makes of their mean.
    return 0.0 if np.ptp(values) == 0 else float(values.var(ddof=1))


def _t_quantile(degrees: float, p: float) -> float:
    # Far lighter to import than scipy.stats.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, p))
