"""Logs of what claims are compared with and of how they are measured: neither is edited in silence.

One log, a CSV, has published number, tolerance and expression of each claim, the other the code of each
measure (see `fingerprint`). Both only grow: the last line on a claim, or on a measure, must say what holds
now; a change, or that one is gone, needs a new line, with the reason. Lines without code say that it is gone,
or are remarks, on a setting say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

from replifed.claims import fingerprint, tables
from replifed.claims.claim import Claim
from replifed.errors import ConfigError

COLUMNS = ("id", "published", "tolerance", "expression", "reason")
MEASURES = ("measure", "code", "reason")

Log = str | os.PathLike[str]
Lines = Mapping[str, Mapping[str, str]]  # current ones, by id
# (logged, current) by id; "" where there is no line, or no claim or measure.
Changed = dict[str, tuple[str, str]]


def differences(claims: Iterable[Claim], log: Log) -> Changed:
    """Claims that differ from the log's last line on them, as "published +- tolerance, expression"."""
    return _differences(log, COLUMNS, {claim.id: _line(claim) for claim in claims})


def measures_changed(claims: Iterable[Claim], log: Log) -> Changed:
    """Measures whose code differs from the log's last line on them."""
    return _differences(log, MEASURES, _codes(claims))


def record(claims: Iterable[Claim], log: Log, reason: str) -> Changed:
    """Add a line for every claim that is new, has changed or is gone.

    `reason` says why something was changed; a claim's first line has the reason of its tolerance instead.
    Returns what differed, as `differences` does.
    """
    claims = list(claims)
    firsts = {claim.id: claim.tolerance_reason or "as first set" for claim in claims}
    return _record(log, COLUMNS, {claim.id: _line(claim) for claim in claims}, firsts, reason)


def record_measures(claims: Iterable[Claim], log: Log, reason: str) -> Changed:
    """Add a line for every measure that is new, has changed or is gone."""
    lines = _codes(claims)
    return _record(log, MEASURES, lines, dict.fromkeys(lines, "as first set"), reason)


def _record(
    log: Log, columns: Sequence[str], lines: Lines, firsts: Mapping[str, str], reason: str
) -> Changed:
    """Add a line for each difference, with the reason, or that of a first line."""
    changed, known = _differences(log, columns, lines), {row[columns[0]] for row in _read(log, columns)}
    if known.intersection(changed) and not reason.strip():
        raise ConfigError("a changed tolerance, published number or measure needs --reason TEXT")
    key, *others, _ = columns
    gone, rows = dict.fromkeys(others, ""), _read(log, columns)
    for name in changed:
        rows.append({key: name, **lines.get(name, gone), "reason": reason if name in known else firsts[name]})
    tables.write(log, columns, sorted(rows, key=itemgetter(key)))
    return changed


def _differences(log: Log, columns: Sequence[str], lines: Lines) -> Changed:
    logged = {row[columns[0]]: _content(row) for row in _read(log, columns)}
    current = {name: _content(row) for name, row in lines.items()}
    both = {name: (logged.get(name, ""), current.get(name, "")) for name in sorted(logged | current)}
    return {name: (was, now) for name, (was, now) in both.items() if was != now}


def _read(log: Log, columns: Sequence[str]) -> list[dict[str, str]]:
    return tables.read(log, columns, "is no log of tolerances") if Path(log).is_file() else []


def _codes(claims: Iterable[Claim]) -> Lines:
    return {name: {"code": code} for name, code in fingerprint.of_measures(claims).items()}


def _line(claim: Claim) -> dict[str, str]:
    numbers = {"published": claim.published, "tolerance": claim.tolerance}
    texts = {name: "" if number is None else f"{number:.12g}" for name, number in numbers.items()}
    return {**texts, "expression": fingerprint.of_claim(claim)}


def _content(row: Mapping[str, str]) -> str:
    """Content of a line; "" of a remark, and of a line on something that is gone, which have no code."""
    if "code" in row:
        return row["code"]
    numbers = f"{row['published'] or 'no number'} +- {row['tolerance'] or 'no tolerance'}"
    return f"{numbers}, {row['expression']}" if row["expression"] else ""
