"""How many seeds the claims on an experiment need, told by a pilot that is not reported.

A claim needs so many that its interval tells, or is as narrow as the tolerance or the least effect. As in
Stein's two stages, the pilot's runs give the number and it stands before any run that is reported. Here they
are no part of what is reported either: nothing depends on the reported differences but the verdict, so that
looking for a number of seeds does not change a test's level.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from replifed.claims.multiplicity import LEVEL
from replifed.claims.units import COUNTED

if TYPE_CHECKING:
    from replifed.claims.verdicts import Claim, Measured

# In this share of cases the interval of as many seeds as were asked for is narrow enough.
ASSURANCE = 0.8
_MOST = 100_000


def number_for(spread: float, half_width: float, pilot: int, level: float = LEVEL) -> int | None:
    """The least number of values of which the interval of the mean, at `level`, is narrow enough.

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
    """The seeds that a claim needs, by what was `measured` on some; None if their number decides nothing.

    So it is where numbers are bounds or no numbers of seeds, where runs depend on rounding, and of shapes and
    identities. What is farther from the published number, or from zero, need not be known as well; half of
    that distance is counted on. An order is one of `orders` of its family, and must be told after correction.
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
    # Values may be several a seed, or there on some seeds alone.
    return math.ceil(number * (seeds or measured.seeds or n) / n)


def families(claims: Sequence[Claim]) -> Counter[tuple[str, str, str]]:
    """How many orders are corrected together."""
    return Counter(claim.family for claim in claims if claim.kind == "order" and claim.measure is not None)


def asked(claims: Sequence[Claim], found: Sequence[Measured | None], seeds: int) -> dict[str, int]:
    """The number that each claim which depends on it asks for, by id; `found` is on `seeds` of a pilot."""
    orders = families(claims)
    each = {
        claim.id: needed(claim, measured, orders[claim.family], seeds)
        for claim, measured in zip(claims, found, strict=True)
        if measured is not None
    }
    return {name: number for name, number in each.items() if number is not None}


def record(pilot: int, most: int, asks: dict[str, int]) -> dict[str, Any]:
    """What is run: the largest number that a claim asks for, but no fewer than the pilot's, or `most`."""
    return {"seeds": min(max([pilot, *asks.values()]), most), "pilot": pilot, "most": most, "asked": asks}
