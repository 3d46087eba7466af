"""The logs of what claims are held against and of how they are measured: neither is edited in silence.

One log, a CSV, has published number, tolerance and expression of each claim, the other the code of each
measure (see `fingerprint`). Both only grow: the last line on a claim, or on a measure, must say what holds
now; a change needs a new line, with the reason. A line without code, on a setting say, is a remark.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

from replifed.claims import fingerprint, tables
from replifed.claims.verdicts import Claim
from replifed.errors import ConfigError

COLUMNS = ("id", "published", "tolerance", "expression", "reason")
MEASURES = ("measure", "code", "reason")

Log = str | os.PathLike[str]


def differences(claims: Iterable[Claim], log: Log) -> dict[str, tuple[str, str]]:
    """Claims of which the log's last line says something else.

    (logged, current) by id, each as "published +- tolerance, expression"; "" where there is no line, or no
    claim.
    """
    return _differences(_read(log, COLUMNS), {claim.id: _line(claim) for claim in claims}, "id", _said)


def measures_changed(claims: Iterable[Claim], log: Log) -> dict[str, tuple[str, str]]:
    """Measures whose code is not what the log's last line on them says; as `differences`."""
    current = {name: {"code": code} for name, code in fingerprint.of_measures(claims).items()}
    return _differences(_read(log, MEASURES), current, "measure", lambda row: row["code"])


def record(claims: Iterable[Claim], log: Log, reason: str) -> dict[str, tuple[str, str]]:
    """Add a line for every claim that is new or has changed; claims that are gone leave the log.

    `reason` says why something was changed; a claim's first line has the reason of its tolerance instead.
    Returns what differed, as `differences` does.
    """
    by_id = {claim.id: claim for claim in claims}
    changed = differences(by_id.values(), log)
    _need_reason(changed, reason)
    rows = [row for row in _read(log, COLUMNS) if row["id"] in by_id]
    for name, (before, now) in changed.items():
        if now:
            first = by_id[name].tolerance_reason or "as first set"
            rows.append({"id": name, **_line(by_id[name]), "reason": reason if before else first})
    tables.write(log, COLUMNS, sorted(rows, key=itemgetter("id")))
    return changed


def record_measures(claims: Iterable[Claim], log: Log, reason: str) -> dict[str, tuple[str, str]]:
    """The same for measures."""
    claims = list(claims)
    current = fingerprint.of_measures(claims)
    changed = measures_changed(claims, log)
    _need_reason(changed, reason)
    rows = [row for row in _read(log, MEASURES) if row["measure"] in current or not row["code"]]
    for name, (before, now) in changed.items():
        if now:
            rows.append({"measure": name, "code": now, "reason": reason if before else "as first set"})
    tables.write(log, MEASURES, sorted(rows, key=itemgetter("measure")))
    return changed


def _differences(
    rows: Sequence[Mapping[str, str]],
    current: Mapping[str, Mapping[str, str]],
    key: str,
    said: Callable[[Mapping[str, str]], str],
) -> dict[str, tuple[str, str]]:
    logged = {row[key]: said(row) for row in rows}
    holds = {name: said(row) for name, row in current.items()}
    both = {name: (logged.get(name, ""), holds.get(name, "")) for name in sorted(logged | holds)}
    return {name: (was, now) for name, (was, now) in both.items() if was != now}


def _need_reason(changed: Mapping[str, tuple[str, str]], reason: str) -> None:
    if any(before and now for before, now in changed.values()) and not reason.strip():
        raise ConfigError("a changed tolerance, published number or measure needs --reason TEXT")


def _read(log: Log, columns: Sequence[str]) -> list[dict[str, str]]:
    return tables.read(log, columns, "is no log of tolerances") if Path(log).is_file() else []


def _line(claim: Claim) -> dict[str, str]:
    numbers = {"published": _text(claim.published), "tolerance": _text(claim.tolerance)}
    return {**numbers, "expression": fingerprint.of_claim(claim)}


def _text(number: float | None) -> str:
    return "" if number is None else f"{number:.12g}"


def _said(row: Mapping[str, str]) -> str:
    numbers = f"{row['published'] or 'no number'} +- {row['tolerance'] or 'no tolerance'}"
    return f"{numbers}, {row['expression'] or 'not measured'}"
