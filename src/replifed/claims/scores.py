"""Status of each statement, from the verdicts of its claims in both accounts and all other readings.

`rules.of_statement` has the rules. A reading is as bad as the worst claim that the sentence makes; claims
that only inform do not count. It must answer each claim: where one was not run in it, it does not hold; what
could be tested in no reading, such as a panel on surrogate data, is left out. Which account answers is fixed
for the whole paper, so that no reading that is added can turn what holds in the printed account.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from replifed.claims import rules, tables
from replifed.claims.axes import SOURCES
from replifed.claims.claim import DATA_KINDS
from replifed.claims.multiplicity import LEVEL
from replifed.claims.rules import FAILS, HOLDS, OPEN, UNCHECKED
from replifed.errors import counted

# The status of a statement, and when it has it.
STATUSES = {rule.verdict: rule.reason for rule in rules.of_statement("", "", False, False)}
COLUMNS = (
    *("statement_id", "paper", "place", "main", "status", "robust", "hold", "readings", "fail_in"),
    *("printed", "explained", "fit", "options", "source", "data", "kinds", "claims", "statement"),
)
NOT_RUN = "not run"
VERBS = {HOLDS: "hold", FAILS: "fail", OPEN: OPEN, NOT_RUN: NOT_RUN}  # of several
_FITS = ("held out", "fitted on")  # of a sentence, from the choice of the explained account
# Of claims in one reading, from the worst on.
_WORST = (FAILS, OPEN, NOT_RUN, HOLDS)

Row = Mapping[str, str]
Options = frozenset[str]  # "axis: option"


class Reading(NamedTuple):
    """A statement in one reading."""

    options: Options
    kind: str  # of its departure from the printed account
    accounts: list[str]
    verdict: str  # of `_WORST`
    rows: list[Row]

    @property
    def in_words(self) -> str:
        """Its options, sorted."""
        return self.beside(frozenset())

    def beside(self, shared: Options) -> str:
        """Its options, sorted, but for those that it shares with the others."""
        return "; ".join(sorted(self.options - shared)) or "as it stands"


def statements(rows: Iterable[Row]) -> list[dict[str, str]]:
    """One row of `COLUMNS` for each statement, from lines of claims.csv, in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if not row["informs"]:
            groups.setdefault(row["statement_id"], []).append(row)
    return [_statement(name, group) for name, group in groups.items()]


def _statement(name: str, group: Sequence[Row]) -> dict[str, str]:
    found = readings(group)
    printed, explained = (_account(found, account) for account in "PE")
    others = [one for one in found if "P" not in one.accounts and one.kind != "different"]
    # As few as one of these is enough to depend on; all of them must hold to be robust.
    ran = [one for one in others if one.verdict != NOT_RUN]
    known = [one.options for one in found if one.verdict != NOT_RUN]
    shared = frozenset.intersection(*known) if known else frozenset()
    holding = [one for one in ran if one.verdict == HOLDS]
    once = next((one for one in holding if "E" not in one.accounts and _stands_once(one, len(ran))), None)
    in_printed, in_explained = (NOT_RUN if one is None else one.verdict for one in (printed, explained))
    measured = any(row["verdict"] != UNCHECKED for row in group)
    status, _ = rules.decide(rules.of_statement(in_printed, in_explained, once is not None, measured))
    deciding = {
        **{"reproduced": printed, "consistent": explained, "depends": once, "untestable": None},
        "deviates": printed if in_printed == FAILS else explained,
    }
    shown = deciding.get(status, printed or explained)
    shown_rows = list(group) if shown is None else shown.rows
    first = min(shown_rows, key=lambda row: _WORST.index(_verdict(row)))
    # As good as the worst of its data, and of its sources.
    data = max((row["data"] for row in shown_rows), key=("none", *DATA_KINDS).index)
    source = max((row["source"] for row in shown_rows), key=SOURCES.index)
    return {
        "statement_id": name,
        "paper": first["paper"],
        "place": first["place"],
        "main": first["main"],
        "status": status,
        "robust": "yes" if status == "reproduced" and len(holding) == len(ran) else "",
        "hold": f"{len(holding)}",
        "readings": f"{len(ran)}",
        "fail_in": " | ".join(one.beside(shared) for one in ran if one.verdict != HOLDS),
        "printed": in_printed,
        "explained": in_explained,
        "fit": "" if explained is None or "P" in explained.accounts else _FITS[bool(first["fitted_on"])],
        "options": "" if shown is None else shown.in_words,
        "source": source,
        "data": data,
        "kinds": " ".join(dict.fromkeys(row["kind"] for row in group)),
        "claims": " ".join(row["id"] for row in shown_rows),
        "statement": first["sentence"] or first["statement"],
    }


def readings(group: Sequence[Row]) -> list[Reading]:
    """The readings of a statement, in the order of its claims.

    Claims that name fewer axes are part of all readings that agree with them. What could be tested in no
    reading is left out, if anything could.
    """
    tested = {row["part"] for row in group if row["verdict"] != UNCHECKED}
    group = [row for row in group if row["part"] in tested] or group
    options = {id(row): _options(row) for row in group}
    points = dict.fromkeys(options.values())
    points = dict.fromkeys(one for one in points if not any(one < other for other in points))
    parts = {row["part"] for row in group}
    found = []
    for point in points:
        rows = [row for row in group if options[id(row)] <= point]
        verdicts = [_verdict(row) for row in rows]
        if {row["part"] for row in rows} != parts:
            verdicts.append(NOT_RUN)
        own = [row for row in rows if options[id(row)] == point]
        accounts = [name for name in "PE" if all(name in row["account"].split() for row in rows)]
        found.append(Reading(point, own[0]["departure"], accounts, min(verdicts, key=_WORST.index), rows))
    return found


def _account(found: Sequence[Reading], account: str) -> Reading | None:
    """The statement in an account; the worst of its readings there, if their claims name different axes."""
    there = [one for one in found if account in one.accounts and one.verdict != NOT_RUN]
    return min(there, key=lambda one: _WORST.index(one.verdict), default=None)


def _verdict(row: Row) -> str:
    return NOT_RUN if row["verdict"] == UNCHECKED else row["verdict"]


def _options(row: Row) -> Options:
    return frozenset(filter(None, row["options"].split("; ")))


def _stands_once(reading: Reading, tried: int) -> bool:
    """Whether its orders stand after a correction for the readings that were tried."""
    orders = (row["p_holm"] for row in reading.rows if row["kind"] == "order")
    return all(bool(p) and float(p) * tried <= LEVEL for p in orders)


def write(claims: Sequence[Row], out: str | os.PathLike[str]) -> None:
    """Write the statements of claims as CSV."""
    tables.write(out, COLUMNS, statements(claims))


def read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read statements that `write` wrote."""
    return tables.read(path, COLUMNS, "holds no statements; delete it and run the workflow again")


def is_main(statement: Row) -> bool:
    """True for a statement that title, abstract, contributions or conclusion promise."""
    return bool(statement["main"])


def by_status(statements: Iterable[Row]) -> Counter[str]:
    """Number of statements of each status."""
    return Counter(one["status"] for one in statements)


def in_words(count: Mapping[str, int]) -> str:
    """A score in words.

    >>> in_words({"reproduced": 2, "deviates": 1})
    '2 reproduced, 0 consistent, 0 depends, 1 deviates, 0 inconclusive, 0 untestable'
    """
    return ", ".join(f"{count.get(status, 0)} {status}" for status in STATUSES)


def printed_in_words(statements: Iterable[Row]) -> str:
    """Count of the printed account alone, which no added reading can change."""
    count = Counter(one["printed"] for one in statements)
    return f"in the printed account {', '.join(f'{count[name]} {word}' for name, word in VERBS.items())}"


class Met(NamedTuple):
    """Statements on printed outcomes of experiments, one for each independent fact."""

    printed: int  # those that hold in the printed account
    explained: int  # those that hold in the explained account
    held_out: int  # of these, those by which it was not chosen
    total: int  # those that could be tested

    @property
    def in_words(self) -> str:
        """Values met, in a phrase; of the explained account only where it meets others."""
        if not self.total:
            return "none tested"
        text = f"{self.printed} of {self.total}"
        explained = (
            f"; {self.explained} in the explained account, {self.held_out} of them held out of its fit"
        )
        return text + explained * ((self.explained, self.held_out) != (self.printed, self.printed))


def values_met(statements: Iterable[Row]) -> Met:
    """Count the statements on printed values that are met in either account."""
    on_values = [
        one for one in statements if "value" in one["kinds"].split() and one["status"] != "untestable"
    ]
    explained = [one for one in on_values if one["explained"] == "holds"]
    held_out = sum(one["fit"] != _FITS[True] for one in explained)
    return Met(sum(one["printed"] == "holds" for one in on_values), len(explained), held_out, len(on_values))


def in_lines(statements: Iterable[Row]) -> list[str]:
    """Score in lines: main claims, with the printed account's own count; values met; other statements."""
    statements = list(statements)
    main, others = [*filter(is_main, statements)], [one for one in statements if not is_main(one)]
    met, lines = values_met(statements), []
    if main:
        lines += [
            f"{counted(len(main), 'main claim')}: {in_words(by_status(main))}; {printed_in_words(main)}"
        ]
    if met.total:
        lines.append(f"values met: {met.in_words}")
    named = counted(len(others), "other statement" if main else "statement")
    return [*lines, f"{named}: {in_words(by_status(others))}"]


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
    families = {(row["paper"], row["family"]) for row in orders}
    held = sum(row["verdict"] == "holds" for row in orders)
    return held, len(orders) * LEVEL / 2, len(families) * LEVEL / 2


def chance_in_words(rows: Iterable[Row]) -> str:
    """Numbers of `by_chance` as a sentence."""
    orders = _orders(rows)
    held, single, corrected = by_chance(orders)
    return (
        f"of {len(orders)} orders {held} hold; if none existed, {single:.1f} would by chance one by one, and "
        f"after Holm's correction there would be a wrong one in {corrected:.1f} families"
    )
