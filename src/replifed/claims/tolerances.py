"""The log of published numbers and tolerances: what a claim is compared with is never edited in silence.

The log is a CSV that only grows. A claim's last line must say what the claim says now; a changed number
needs a new line, with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from replifed.claims import tables
from replifed.claims.verdicts import Claim
from replifed.errors import ConfigError

COLUMNS = ("id", "published", "tolerance", "reason")


def differences(claims: Iterable[Claim], log: str | os.PathLike[str]) -> dict[str, tuple[str, str]]:
    """Claims whose numbers are not what the log's last line on them says.

    (logged, current) by id, each as "published +- tolerance"; "" where there is no line, or no claim.
    """
    logged = {row["id"]: _said(row["published"], row["tolerance"]) for row in _read(log)}
    current = {claim.id: _said(_text(claim.published), _text(claim.tolerance)) for claim in claims}
    both = {name: (logged.get(name, ""), current.get(name, "")) for name in sorted(logged | current)}
    return {name: (was, now) for name, (was, now) in both.items() if was != now}


def record(claims: Iterable[Claim], log: str | os.PathLike[str], reason: str) -> dict[str, tuple[str, str]]:
    """Add a line for every claim that is new or has changed; claims that are gone leave the log.

    `reason` says why a number was changed; a claim's first line has the reason of its tolerance instead.
    Returns what differed, as `differences` does.
    """
    by_id = {claim.id: claim for claim in claims}
    changed = differences(by_id.values(), log)
    if any(before and now for before, now in changed.values()) and not reason.strip():
        raise ConfigError("a changed tolerance or published number needs --reason TEXT")
    rows = [row for row in _read(log) if row["id"] in by_id]
    for name, (before, now) in changed.items():
        if now:
            claim = by_id[name]
            rows.append(
                {
                    "id": name,
                    "published": _text(claim.published),
                    "tolerance": _text(claim.tolerance),
                    "reason": reason if before else claim.tolerance_reason or "as first set",
                }
            )
    tables.write(log, COLUMNS, sorted(rows, key=lambda row: str(row["id"])))
    return changed


def _read(log: str | os.PathLike[str]) -> list[dict[str, str]]:
    return tables.read(log, COLUMNS, "is no log of tolerances") if Path(log).is_file() else []


def _text(number: float | None) -> str:
    return "" if number is None else f"{number:.12g}"


def _said(published: str, tolerance: str) -> str:
    return f"{published or 'no number'} +- {tolerance or 'no tolerance'}"
