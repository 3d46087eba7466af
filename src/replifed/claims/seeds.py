"""Number of seeds that a claim needs, by the spread of those that it has.

A claim needs as many as make its interval decide, or as narrow as the tolerance or the least effect.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from replifed.claims.claim import NUMBERS, Claim, Measured
from replifed.claims.multiplicity import LEVEL

# In this share of cases the interval of the requested number of seeds is narrow enough.
ASSURANCE = 0.8
_MOST = 100_000


def number_for(
    spread: float, half_width: float, known: int, level: float = LEVEL, theirs: float = 0.0
) -> int | None:
    """Minimum number of values of which the interval of the mean, at `level`, is narrow enough.

    None if `_MOST` are not enough. With `theirs`, one over the repetitions of another mean, the interval is
    that of a prediction of it.

    `spread` is the standard deviation of `known` values. The variance of n further values, over that of the
    known ones, follows an F distribution; its `ASSURANCE` quantile is taken.
    """
    # Far lighter to import than scipy.stats.
    from scipy.special import fdtri, stdtrit

    def enough(n: int) -> bool:
        variance = spread**2 * fdtri(n - 1, known - 1, ASSURANCE)
        return bool(stdtrit(n - 1, 1 - level / 2) ** 2 * variance * (1 / n + theirs) <= half_width**2)

    if not enough(_MOST):
        return None
    return 2 + bisect_left(range(2, _MOST), True, key=enough)


def needed(claim: Claim, measured: Measured, tests: int) -> int | None:
    """Number of seeds that a claim needs, by what was `measured` on some; None if it decides nothing.

    So it is where values are bounds or alternatives, where runs are sensitive to rounding, and of shapes and
    identities. A number far from the published one, or an order far from zero, needs a wider interval only:
    half of that distance is counted on. A prediction interval needs to exclude the rival; more seeds do not
    make it narrower than the paper's own repetitions allow. An order or a value is one of `tests` of its
    family, and is judged after correction.
    """
    values, n = measured.values.astype(float), len(measured.values)
    if claim.kind not in NUMBERS or n < 2 or measured.alternatives:
        return None
    if measured.chaotic and claim.hangs_on_rounding:
        return None
    mean, spread, within = values.mean(), values.std(ddof=1), claim.tolerance or 0.0
    level = LEVEL if claim.kind == "near" else LEVEL / tests
    beyond = mean - (claim.published or 0.0)
    if claim.kind == "value":
        allowed = within if claim.rival is None else abs(mean - claim.rival)
        half_width = allowed - claim.precision
        against, theirs = measured.bounds.any(), 1 / claim.repetitions
    else:
        of_value = claim.kind == "near"
        against = measured.bounds.any() if of_value else (measured.bounds * beyond < 0).any()
        half_width, theirs = max(within, (abs(beyond) - (within if of_value else 0.0)) / 2), 0.0
    if against or half_width <= 0 or half_width < measured.grid:
        return None
    number = number_for(spread, half_width, n, level, theirs)
    if number is None:
        return None
    # Values may be several a seed, or exist on some seeds alone.
    asked = math.ceil(number * (measured.seeds or n) / n)
    return max(asked, claim.fewest) if claim.kind == "order" else asked


def families(claims: Sequence[Claim]) -> Counter[tuple[str, ...]]:
    """Number of tests by family."""
    return Counter(claim.family for claim in claims if claim.is_tested)
