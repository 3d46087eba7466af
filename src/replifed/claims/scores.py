"""Status of each statement, from the verdicts of its claims in all settings.

`rules.of_statement` has the rules. Settings are as bad as the worst claim that the sentence makes; claims
that only inform do not count. They must answer each claim: where one was not run in them, it does not hold;
what could be tested in no settings, such as a panel on surrogate data, is left out. What the printed settings
are is fixed for the whole paper, so that no settings that are added can turn what holds in them.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from replifed.claims import evidence, rules, tables
from replifed.claims.axes import INFERRED, PRINTED, SOURCES
from replifed.claims.claim import DATA_KINDS, FITTED_ELSEWHERE, FITTED_ON_IT
from replifed.claims.multiplicity import LEVEL
from replifed.claims.rules import AGAINST, FAILS, FILLS, HOLDS, NOT_RUN, NOT_YET, OPEN, UNCHECKED, Found
from replifed.errors import counted

STATUSES = ("reproduced", "conditional", "deviates", "inconclusive", "untestable")
COLUMNS = (
    *("statement_id", "paper", "place", "main", "status", "reason", "gap", "replaces"),
    *("robust", "hold", "others", "fail_in", "also", "printed", "inferred", "fit"),
    *("options", "source", "evidence", "data", "kinds", "claims", "question", "reply", "statement"),
)
VERBS = {HOLDS: "hold", FAILS: "fail", OPEN: "open", NOT_RUN: NOT_RUN}  # of several
_FITS = ("held out", "fitted on")  # of a sentence, from the choice of the inferred settings
# Of claims in one choice of settings, from the worst on.
_WORST = (FAILS, OPEN, NOT_RUN, HOLDS)

Row = Mapping[str, str]
Options = frozenset[str]  # "axis: option"


class Settings(NamedTuple):
    """A statement in one choice of settings."""

    options: Options
    kind: str  # of its departure from the printed settings
    names: list[str]  # PRINTED, INFERRED, both or neither
    verdict: str  # of `_WORST`
    rows: list[Row]

    @property
    def in_words(self) -> str:
        """Its options, sorted."""
        return self.beside(frozenset())

    def beside(self, shared: Options) -> str:
        """Its options, sorted, but for those that it shares with the others."""
        return "; ".join(sorted(self.options - shared)) or "the only settings"

    @property
    def replaces(self) -> list[str]:
        """Printed options in the place of which it has others."""
        return _united(row["replaces"] for row in self.rows)

    @property
    def gap(self) -> str:
        """Whether it fills gaps of the text, or goes against it."""
        return AGAINST if self.replaces else FILLS

    @property
    def fitted(self) -> str:
        """Of which statements the numbers chose options of it; "" if none did."""
        found = {row["fitted_on"] for row in self.rows}
        return next((one for one in (FITTED_ON_IT, FITTED_ELSEWHERE) if one in found), "")

    @property
    def fitted_on_it(self) -> bool:
        """Whether it was chosen by the numbers of this very statement."""
        return self.fitted == FITTED_ON_IT


def _united(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(one for text in texts for one in text.split("; ") if one))


def statements(rows: Iterable[Row]) -> list[dict[str, str]]:
    """One row of `COLUMNS` for each statement, from lines of claims.csv, in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if not row["informs"]:
            groups.setdefault(row["statement_id"], []).append(row)
    return [_statement(name, group) for name, group in groups.items()]


def _statement(name: str, group: Sequence[Row]) -> dict[str, str]:
    found = by_settings(group)
    printed, inferred = (_named(found, one) for one in (PRINTED, INFERRED))
    others = [one for one in found if PRINTED not in one.names and one.kind != "different"]
    ran = [one for one in others if one.verdict != NOT_RUN]
    holding = [one for one in ran if one.verdict == HOLDS]
    # Those that fill gaps come first: they depart the least from the text.
    free = sorted((one for one in holding if not one.fitted_on_it), key=lambda one: one.gap != FILLS)
    held_out = next((one for one in free if INFERRED in one.names), None)
    once = next((one for one in free if INFERRED not in one.names and _stands_once(one, len(ran))), None)
    decided = held_out or once
    in_printed, in_inferred = (NOT_RUN if one is None else one.verdict for one in (printed, inferred))
    fits = sorted((one for one in ran if one.fitted), key=lambda one: INFERRED not in one.names)
    missing = next((one for one in fits[:1] if one.verdict == FAILS), None)
    came = Found(
        measured=any(row["verdict"] != UNCHECKED for row in group),
        printed=in_printed,
        inferred=held_out is not None,
        other=once is not None,
        unfitted=frozenset(one.verdict for one in ran if not one.fitted),
        algebra_fails=group[0]["evidence"] == evidence.FORMULA and any(one.verdict == FAILS for one in ran),
        only_fitted=any(one.fitted_on_it for one in holding),
        gap=decided.gap if decided else FILLS,
        replaces=" and ".join(f'"{one}"' for one in decided.replaces) if decided else "",
        miss=_miss(missing) if missing else "",
    )
    status, reason = rules.decide(rules.of_statement(came))
    if any(row.get("reason") == NOT_YET for row in group):
        status, reason = NOT_YET, "the reference has not run all its claims"
    conditional = decided if status == "conditional" else None
    unfitted = next((one for one in ran if not one.fitted), None)
    shown = {
        **{"conditional": decided, "untestable": None, NOT_YET: None},
        "inconclusive": printed or unfitted or missing or inferred,
    }.get(status, printed or unfitted)
    shown_rows = list(group) if shown is None else shown.rows
    first = min(shown_rows, key=lambda row: _WORST.index(_verdict(row)))
    known = [one.options for one in found if one.verdict != NOT_RUN]
    shared = frozenset.intersection(*known) if known else frozenset()
    also = [one for one in holding if one is not conditional] * (status != "reproduced")
    # As good as the worst of its data, and of its sources.
    data = max((row["data"] for row in shown_rows), key=("none", *DATA_KINDS).index)
    source = max((row["source"] for row in shown_rows), key=SOURCES.index)
    return {
        "statement_id": name,
        "paper": first["paper"],
        "place": first["place"],
        "main": first["main"],
        "status": status,
        "reason": reason,
        "gap": conditional.gap if conditional else "",
        "replaces": "; ".join(conditional.replaces) if conditional else "",
        "robust": "yes" if status == "reproduced" and len(holding) == len(ran) else "",
        "hold": f"{len(holding)}",
        "others": f"{len(ran)}",
        "fail_in": " | ".join(one.beside(shared) for one in ran if one.verdict != HOLDS),
        "also": " | ".join(f"{one.beside(shared)}{_fit_in_words(one)}" for one in also),
        "printed": in_printed,
        "inferred": in_inferred,
        "fit": "" if inferred is None or PRINTED in inferred.names else _FITS[inferred.fitted_on_it],
        "options": "" if shown is None else shown.in_words,
        "source": source,
        "evidence": evidence.in_full(first["evidence"], data),
        "data": data,
        "kinds": " ".join(dict.fromkeys(row["kind"] for row in group)),
        "claims": " ".join(row["id"] for row in shown_rows),
        "question": first["question"],
        "reply": first["reply"],
        "statement": first["sentence"] or first["statement"],
    }


def _fit_in_words(one: Settings) -> str:
    """What settings were fitted on, in brackets; "" of what was not fitted."""
    return f" ({'inferred, ' * (INFERRED in one.names)}fitted on {one.fitted})" if one.fitted else ""


def _miss(one: Settings) -> str:
    """What settings give for the first claim that fails in them, and what it asks."""
    row = next(row for row in one.rows if row["verdict"] == FAILS)
    measured, published, tolerance = (
        float(row[name] or 0.0) for name in ("measured", "published", "tolerance")
    )
    unit = f" {row['unit']}" * (row["unit"] in ("rounds", "bits", "decades"))
    if row["kind"] == "value":
        return f"{measured:.3g}{unit}, and {published:.4g} is printed"
    if row["kind"] == "near":
        ends = f"{published - tolerance:.3g} to {published + tolerance:.3g}"
        return f"{measured:.3g}{unit}, where {ends} is required"
    if row["kind"] == "order" and row["unit"] == "e-folds":
        return f"{math.exp(measured):.3g} times, where more than {math.exp(published):.3g} is claimed"
    if row["kind"] == "order":
        return f"{measured:.3g}{unit}, where more than {published:.3g} is claimed"
    return f"it holds in {100 * measured:.3g} % of the cases"


def by_settings(group: Sequence[Row]) -> list[Settings]:
    """A statement in each of its settings, in the order of its claims.

    Claims that name fewer axes are part of all settings that agree with them. What could be tested in no
    settings is left out, if anything could.
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
        names = [name for name in (PRINTED, INFERRED) if all(name in row["settings"].split() for row in rows)]
        found.append(Settings(point, own[0]["departure"], names, min(verdicts, key=_WORST.index), rows))
    return found


def worst(rows: Iterable[Row]) -> list[Row]:
    """Claims of the worst verdict among these."""
    rows = list(rows)
    verdict = min(map(_verdict, rows), key=_WORST.index, default=HOLDS)
    return [row for row in rows if _verdict(row) == verdict]


def _named(found: Sequence[Settings], name: str) -> Settings | None:
    """The statement in the printed or inferred settings; the worst, if its claims name different axes."""
    there = [one for one in found if name in one.names and one.verdict != NOT_RUN]
    return min(there, key=lambda one: _WORST.index(one.verdict), default=None)


def _verdict(row: Row) -> str:
    return NOT_RUN if row["verdict"] == UNCHECKED else row["verdict"]


def _options(row: Row) -> Options:
    return frozenset(filter(None, row["options"].split("; ")))


def _stands_once(one: Settings, tried: int) -> bool:
    """Whether its orders stand after a correction for the settings that were tried."""
    orders = (row["p_holm"] for row in one.rows if row["kind"] == "order")
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


def in_words(statements: Iterable[Row], zeros: bool = True) -> str:
    """Statements by status; of reproduced ones by their evidence, of conditional ones the two kinds apart.

    >>> one = {"status": "reproduced", "evidence": "formula", "gap": ""}
    >>> in_words([one, one], zeros=False)
    '2 reproduced (2 formula)'
    """
    statements = list(statements)
    count, parts = by_status(statements), []
    for status in (*STATUSES, *([NOT_YET] if count[NOT_YET] else [])):
        if count[status] or zeros:
            key = {"reproduced": "evidence", "conditional": "gap"}.get(status)
            of = Counter(one[key] for one in statements if one["status"] == status) if key else {}
            apart = ", ".join(f"{number} {name}" for name, number in sorted(of.items()))
            parts.append(f"{count[status]} {status}{f' ({apart})' * bool(apart)}")
    return ", ".join(parts)


def printed_in_words(statements: Iterable[Row]) -> str:
    """Count of the printed settings alone, which no added settings can change."""
    count = Counter(one["printed"] for one in statements)
    return f"in the printed settings {', '.join(f'{count[name]} {word}' for name, word in VERBS.items())}"


class Met(NamedTuple):
    """Statements on printed outcomes of experiments, one for each independent fact."""

    printed: int  # those that hold in the printed settings
    inferred: int  # those that hold in the inferred settings
    held_out: int  # of these, those by which it was not chosen
    total: int  # those that could be tested

    @property
    def in_words(self) -> str:
        """Values met, in a phrase; of the inferred settings only where they meet others."""
        if not self.total:
            return "none tested"
        text = f"{self.printed} of {self.total}"
        inferred = f"; {self.inferred} in the inferred settings, {self.held_out} of them not used in the fit"
        return text + inferred * ((self.inferred, self.held_out) != (self.printed, self.printed))


def values_met(statements: Iterable[Row]) -> Met:
    """Count the statements on printed values that are met in the printed or in the inferred settings."""
    on_values = [
        one
        for one in statements
        if "value" in one["kinds"].split() and one["status"] not in ("untestable", NOT_YET)
    ]
    inferred = [one for one in on_values if one["inferred"] == "holds"]
    held_out = sum(one["fit"] != _FITS[True] for one in inferred)
    return Met(sum(one["printed"] == "holds" for one in on_values), len(inferred), held_out, len(on_values))


def in_lines(statements: Iterable[Row]) -> list[str]:
    """Score in lines: main claims, with the printed settings' own count; values met; other statements."""
    statements = list(statements)
    main, others = [*filter(is_main, statements)], [one for one in statements if not is_main(one)]
    met, lines = values_met(statements), []
    if main:
        lines += [f"{counted(len(main), 'main claim')}: {in_words(main)}; {printed_in_words(main)}"]
    if met.total:
        lines.append(f"printed values matched: {met.in_words}")
    if main and not others:
        return lines
    named = counted(len(others), "other statement" if main else "statement")
    return [*lines, f"{named}: {in_words(others)}"]


def _orders(rows: Iterable[Row]) -> list[Row]:
    """Orders with a p-value; two settings in which one statement is measured on the same runs are one."""
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
        f"of {len(orders)} orders {held} hold; if no method were better, {single:.1f} would hold by chance; "
        f"after Holm's correction, a wrong one would be in {corrected:.1f} tables or figures"
    )
