"""Scores by statements: of all claims that test one sentence or cell of a paper, those nearest to its text.

A statement's status comes from the reading nearest to the text of those that could be measured: where all
settings are stated, else where they were chosen beforehand, else where one was fitted; never from the best of
several. Where that reading has several claims, the worst of them counts.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from replifed.claims import tables
from replifed.claims.claim import BASES
from replifed.claims.multiplicity import LEVEL
from replifed.claims.verdicts import HOLDS, VERDICTS

COLUMNS = ("statement_id", "paper", "basis", "reading", "status", "data", "claims", "statement")
# From the worst on; what could not be measured says nothing if other claims could be.
_WORST = ("deviates", "inconclusive", "consistent", "reproduced", "unchecked")

Row = Mapping[str, str]


def statements(rows: Iterable[Row]) -> list[dict[str, str]]:
    """One row of `COLUMNS` for each statement, from lines of claims.csv, in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["statement_id"], []).append(row)
    return [_statement(name, group) for name, group in groups.items()]


def _statement(name: str, group: list[Row]) -> dict[str, str]:
    measured = [row for row in group if row["verdict"] != "unchecked"] or group
    nearest = min(_distance(row) for row in measured)
    judged = [row for row in measured if _distance(row) == nearest]
    worst = min(judged, key=lambda row: _WORST.index(row["verdict"]))
    return {
        "statement_id": name,
        "paper": worst["paper"],
        "basis": worst["basis"],
        "reading": worst["reading"],
        "status": worst["verdict"],
        "data": worst["data"],
        "claims": " ".join(row["id"] for row in judged),
        "statement": worst["statement"],
    }


def otherwise(rows: Iterable[Row], statements: Iterable[Row]) -> dict[str, dict[str, list[str]]]:
    """Readings of each statement in which its verdict differs from its status, by verdict."""
    worst: dict[tuple[str, str], str] = {}
    for row in rows:
        if row["verdict"] != "unchecked":
            key = row["statement_id"], row["reading"]
            worst[key] = min(worst.get(key, row["verdict"]), row["verdict"], key=_WORST.index)
    status = {one["statement_id"]: one["status"] for one in statements}
    others: dict[str, dict[str, list[str]]] = {name: {} for name in status}
    for (name, reading), verdict in worst.items():
        if verdict != status[name]:
            others[name].setdefault(verdict, []).append(reading)
    return others


def _distance(row: Row) -> tuple[int, int]:
    return BASES.index(row["basis"]), int(row["nearness"])


def write(claims: Sequence[Row], out: str | os.PathLike[str]) -> None:
    """Write the statements of claims as CSV."""
    tables.write(out, COLUMNS, statements(claims))


def read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read statements that `write` wrote."""
    return tables.read(path, COLUMNS, "holds no statements; delete it and run the workflow again")


def in_words(count: Mapping[str, int]) -> str:
    """A score in words.

    >>> in_words({"reproduced": 2, "deviates": 1})
    '2 reproduced, 0 consistent, 1 deviates, 0 inconclusive, 0 unchecked'
    """
    return ", ".join(f"{count.get(verdict, 0)} {verdict}" for verdict in VERDICTS)


def total_in_words(statements: Iterable[Row]) -> str:
    """Number of statements, with their score."""
    count = Counter(one["status"] for one in statements)
    return f"{count.total()} statements: {in_words(count)}"


def _orders(rows: Iterable[Row]) -> list[Row]:
    """Orders with a p-value; two readings in which one statement is measured on the same runs are one."""
    measured = ("statement_id", "measured", "ci_low", "ci_high", "p_value")
    orders: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if row["kind"] == "order" and row["p_value"]:
            orders.setdefault(tuple(row[name] for name in measured), row)
    return list(orders.values())


def by_chance(rows: Iterable[Row]) -> tuple[int, float, float]:
    """Number of orders that hold, and that would if none existed: each by itself, and corrected.

    Half of the level is on the claimed side. Corrected, at most one family in twenty errs at all; what is
    returned is the number of families times the half level.
    """
    orders = _orders(rows)
    families = {(row["paper"], row["artefact"], row["reading"]) for row in orders}
    held = sum(row["verdict"] in HOLDS for row in orders)
    return held, len(orders) * LEVEL / 2, len(families) * LEVEL / 2


def chance_in_words(rows: Iterable[Row]) -> str:
    """Numbers of `by_chance` as a sentence."""
    orders = _orders(rows)
    held, single, corrected = by_chance(orders)
    return (
        f"of {len(orders)} orders {held} hold; if none existed, {single:.1f} would by chance one by one, and "
        f"after Holm's correction there would be a wrong one in {corrected:.1f} families"
    )
