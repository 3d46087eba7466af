"""Tests of orders, and Holm's correction over a family of orders, or of values, that was declared together.

Of m orders that do not exist some come out at 5 % each by chance. Holm's step-down procedure keeps the
chance that any order of a family is claimed wrongly at 5 %, whatever their dependence; likewise the chance
that any right value of a table is called wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Of the test of an order, or of a whole family of orders after correction.
LEVEL = 0.05
# Differences that Shapiro and Wilk's test rejects as normal at this level are compared by their signs alone.
_NOT_NORMAL = 0.01
# Fewer signs cannot reach 5 %, even if all are alike; nor do so few values show that they are not normal.
_FEWEST_SIGNS = 6


def p_value(differences: ArrayLike, grid: float = 0.0, of_mean: bool = False) -> float:
    """Two-sided p-value for paired differences (n,) with a mean of zero.

    Student's paired t-test; the sign test instead if Shapiro and Wilk's test rejects that the differences are
    normal. The t-test stays for fewer than six differences, for differences that lie within two steps of the
    grid, where rounding alone makes them look abnormal, and for those of which only the mean has a meaning.

    Parameters
    ----------
    differences : one a seed. A single one gives 1. If all are equal and there is no grid, they do not depend
        on the seed: 0, or 1 if they are zero.
    grid : step of the grid to which both numbers of a difference were rounded up, such as recorded rounds.
        The t-test's standard deviation is at least that of such rounding.
    of_mean : the differences stand for their mean (`Measured.of_mean`). Of skewed ones most lie on one side
        of it, so that their signs would mislead.
    """
    # Far more to load than all else here.
    from scipy.stats import shapiro, t

    values = np.asarray(differences, dtype=float)
    n, mean = len(values), float(values.mean())
    if n == 1:
        return 1.0
    spread_out = np.ptp(values) > max(2 * grid, 1e-12 * np.abs(values).max())
    if n >= _FEWEST_SIGNS and spread_out and not of_mean and shapiro(values).pvalue < _NOT_NORMAL:
        return sign_test(values)
    # The difference of two numbers, each anywhere within a step, has this standard deviation.
    deviation = max(float(values.std(ddof=1)), grid / np.sqrt(6.0))
    if deviation <= 1e-12 * np.abs(values).max():
        return 0.0 if mean else 1.0
    return float(2 * t.sf(abs(mean) * np.sqrt(n) / deviation, n - 1))


def sign_test(differences: NDArray) -> float:
    """Two-sided p-value of the number of positive differences; 1 if the mean has the sign of the minority."""
    from scipy.stats import binomtest

    above, below = int((differences > 0).sum()), int((differences < 0).sum())
    if (above - below) * differences.mean() <= 0:
        return 1.0
    return float(binomtest(above, above + below).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values after Holm's step-down correction; None, of an order that was not measured, counts as one.

    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    >>> holm([0.01, None])
    [0.02, None]
    """
    adjusted: list[float | None] = [None] * len(p_values)
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    highest = 0.0
    for rank, (p, index) in enumerate(known):
        highest = max(highest, min((len(p_values) - rank) * p, 1.0))
        adjusted[index] = highest
    return adjusted


def holm_levels(p_values: Sequence[float | None]) -> list[float]:
    """Level of the interval of each value, such that it excludes what Holm's procedure rejects.

    That of a rejected hypothesis is the level of its own step; of the others, that of the step that stopped.
    An interval at its level holds the tested number just if the hypothesis is not rejected.

    >>> [round(level, 4) for level in holm_levels([0.01, 0.04, 0.03])]
    [0.0167, 0.025, 0.025]
    """
    m = len(p_values)
    levels, stopped = [LEVEL / m] * m, 0.0
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    for rank, (p, index) in enumerate(known):
        step = LEVEL / (m - rank)
        if p > step and not stopped:
            stopped = step
        levels[index] = stopped or step
    return levels
