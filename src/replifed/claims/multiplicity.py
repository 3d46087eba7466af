"""How sure an order is: a paired test, and Holm's correction over the orders that were declared together.

Of m orders that do not exist some come out at 5 % each by chance. Holm's step-down procedure keeps the
chance that any order of a family is claimed wrongly at 5 %, whatever their dependence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Of the test of an order, or of a whole family of orders after correction.
LEVEL = 0.05
# Differences that Shapiro and Wilk's test rejects as normal at this level are compared by their signs alone.
_NOT_NORMAL = 0.01
# Fewer signs tell nothing at 5 %, even if all are alike; nor do so few values show that they are not normal.
_FEWEST_SIGNS = 6


def p_value(differences: ArrayLike, grid: float = 0.0, of_mean: bool = False) -> float:
    """Two-sided p-value of paired differences (n,), by Student's paired t-test.

    Values that are read on a `grid`, both sides rounded up, have at least the spread of rounding. Where they
    are farther apart than that and not normal, it is the sign test's, which tells nothing if most of them are
    on the other side than their mean. Always the t-test of fewer than six values, and where only the mean
    says something (`of_mean`), since of skewed values most are on one side of it. One seed tells nothing;
    differences that are the same on every seed, and on no grid, do not depend on the seed.
    """
    # Far more to load than all else here.
    from scipy.stats import shapiro, t

    values = np.asarray(differences, dtype=float)
    n, mean = len(values), float(values.mean())
    if n == 1:
        return 1.0
    apart = np.ptp(values) > max(2 * grid, 1e-12 * np.abs(values).max())
    if n >= _FEWEST_SIGNS and apart and not of_mean and shapiro(values).pvalue < _NOT_NORMAL:
        return sign_test(values)
    # The difference of two numbers, each anywhere within a step, has this standard deviation.
    spread = max(float(values.std(ddof=1)), grid / np.sqrt(6.0))
    if spread <= 1e-12 * np.abs(values).max():
        return 0.0 if mean else 1.0
    return float(2 * t.sf(abs(mean) * np.sqrt(n) / spread, n - 1))


def sign_test(differences: NDArray) -> float:
    """Two-sided p-value of how many are above zero; 1 if most are on the other side than their mean."""
    from scipy.stats import binomtest

    above, below = int((differences > 0).sum()), int((differences < 0).sum())
    if (above - below) * differences.mean() <= 0:
        return 1.0
    return float(binomtest(above, above + below).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values after Holm's step-down correction; None, of what was not measured, counts in the number.

    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    >>> holm([0.01, None])
    [0.02, None]
    """
    adjusted: list[float | None] = [None] * len(p_values)
    known = sorted((p, number) for number, p in enumerate(p_values) if p is not None)
    highest = 0.0
    for rank, (p, number) in enumerate(known):
        highest = max(highest, min((len(p_values) - rank) * p, 1.0))
        adjusted[number] = highest
    return adjusted
