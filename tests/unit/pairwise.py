"""Few combinations of values in which each two values meet: tests of pairs in place of the full product."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

Row = TypeVar("Row", bound=Sequence[Hashable])


def pairs(*rows: Sequence[Hashable]) -> set[tuple]:
    """Each two values that meet in a row, with their places in it."""
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


def covering(rows: Iterable[Row]) -> list[Row]:
    """Few of the rows, in their order, in which all pairs of values meet that meet in any row.

    Greedy: next comes the row that has the most pairs which none so far has; the first of these, so that the
    same rows give the same choice. Rows that cannot be, such as a method on a problem that it refuses, are
    left out by the caller.

    >>> covering([(a, b, c) for a in "xy" for b in "xy" for c in "xy"])
    [('x', 'x', 'x'), ('x', 'y', 'y'), ('y', 'x', 'y'), ('y', 'y', 'x')]
    """
    rows = list(rows)
    own = [pairs(row) for row in rows]
    missing, chosen = set().union(*own), set()
    while missing:
        best = max(range(len(rows)), key=lambda place: len(missing & own[place]))
        missing -= own[best]
        chosen.add(best)
    return [rows[place] for place in sorted(chosen)]
