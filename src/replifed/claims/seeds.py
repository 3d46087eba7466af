"""Number of seeds that the claims on an experiment need, by a pilot that is not reported.

A claim needs as many as make its interval decide, or as narrow as the tolerance or the least effect. As in
Stein's two stages, the pilot's runs give the number and it stands before any run that is reported. Here they
are no part of what is reported either: nothing depends on the reported differences but the verdict, so that
the choice of a number of seeds does not change a test's level.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any

from replifed.claims.claim import Claim, Measured
from replifed.claims.multiplicity import LEVEL
from replifed.claims.units import COUNTED

# In this share of cases the interval of the requested number of seeds is narrow enough.
ASSURANCE = 0.8
_MOST = 100_000


def number_for(spread: float, half_width: float, pilot: int, level: float = LEVEL) -> int | None:
    """Minimum number of values of which the interval of the mean, at `level`, is narrow enough.

    None if `_MOST` are not enough.

    `spread` is the standard deviation of `pilot` values. The variance of n further values, over that of the
    pilot's, follows an F distribution; its `ASSURANCE` quantile is taken.
    """
    # Far lighter to import than scipy.stats.
    from scipy.special import fdtri, stdtrit

    def enough(n: int) -> bool:
        variance = spread**2 * fdtri(n - 1, pilot - 1, ASSURANCE)
        return bool(stdtrit(n - 1, 1 - level / 2) ** 2 * variance <= n * half_width**2)

    if not enough(_MOST):
        return None
    return 2 + bisect_left(range(2, _MOST), True, key=enough)


def needed(claim: Claim, measured: Measured, orders: int, seeds: int | None = None) -> int | None:
    """Number of seeds that a claim needs, by what was `measured` on some; None if it decides nothing.

    So it is where values are bounds or alternatives, where runs are sensitive to rounding, and of shapes and
    identities. A value far from the published number, or an order far from zero, needs a wider interval only:
    half of that distance is counted on. An order is one of `orders` of its family, and is judged after
    correction.
    """
    values, n = measured.values.astype(float), len(measured.values)
    of_value = claim.kind == "value"
    if claim.kind not in ("value", "order") or n < 2 or measured.alternatives:
        return None
    if measured.chaotic and (not of_value or claim.unit in COUNTED):
        return None
    mean, spread, within = values.mean(), values.std(ddof=1), claim.tolerance or 0.0
    beyond = mean - (claim.published or 0.0)
    against = measured.bounds.any() if of_value else (measured.bounds * beyond < 0).any()
    distance = abs(beyond) - (within if of_value else 0.0)
    half_width = max(within, distance / 2)
    if against or not half_width or half_width < measured.grid:
        return None
    number = number_for(spread, half_width, n, LEVEL if of_value else LEVEL / orders)
    if number is None:
        return None
    # Values may be several a seed, or exist on some seeds alone.
    return math.ceil(number * (seeds or measured.seeds or n) / n)


def families(claims: Sequence[Claim]) -> Counter[tuple[str, str, str]]:
    """Number of orders by family."""
    return Counter(claim.family for claim in claims if claim.is_measured_order)


def asked(claims: Sequence[Claim], measurements: Sequence[Measured | None], seeds: int) -> dict[str, int]:
    """Number of seeds that each claim asks for, by id; the measurements are on `seeds` of a pilot.

    Claims that do not depend on their number are left out.
    """
    orders = families(claims)
    numbers = {
        claim.id: needed(claim, measured, orders[claim.family], seeds)
        for claim, measured in zip(claims, measurements, strict=True)
        if measured is not None
    }
    return {name: number for name, number in numbers.items() if number is not None}


def record(pilot: int, most: int, asks: dict[str, int]) -> dict[str, Any]:
    """Number to run, the largest that a claim asks for, between the pilot's and `most`; with its reasons."""
    return {"seeds": min(max([pilot, *asks.values()]), most), "pilot": pilot, "most": most, "asked": asks}
