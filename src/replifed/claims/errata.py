"""Errata: formulas and statements of the papers that do not hold as printed.

Each record carries the statement as printed, a correction, and one executable check that both have to
face: it must fail for the one and pass for the other, or the erratum is not shown. Where the correction is
a guess at what was done instead, the check says only that the guess fits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from replifed.claims import tables
from replifed.errors import REMEDY

COLUMNS = ("id", "paper", "place", "printed", "corrected", "shown", "evidence")


class Outcome(NamedTuple):
    """Result of a check of one form of a formula, with the numbers behind it."""

    passes: bool
    evidence: str


# Of one form; deterministic, a few seconds at most.
Check = Callable[[Any], Outcome]


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """A fault of a paper."""

    id: str  # unique over all papers, "PAPER.name"
    paper: str
    place: str  # equation, table, figure or sentence
    # In words or in plain-text mathematics.
    printed: str
    corrected: str
    forms: tuple[Any, Any]  # the printed and the corrected form as the check takes them
    check: Check
    conjecture: bool = False  # the correction is a guess at what was run: that it fits does not prove it


class Errata(list[Erratum]):
    """Errata of one paper; each is added by a decorator of its check."""

    def __init__(self, paper: str) -> None:
        super().__init__()
        self.paper = paper

    def add(self, name: str, **fields: Any) -> Callable[[Check], Check]:
        """Decorate the check of an erratum, whose other `fields` these are."""

        def added(check: Check) -> Check:
            self.append(Erratum(id=f"{self.paper}.{name}", paper=self.paper, check=check, **fields))
            return check

        return added


def measure(errata: Sequence[Erratum]) -> list[dict[str, str]]:
    """Check every erratum; one row of `COLUMNS` each, `shown` being "yes", "conjecture" or "no"."""
    rows = []
    for erratum in errata:
        printed, corrected = (erratum.check(form) for form in erratum.forms)
        shown = "conjecture" if erratum.conjecture else "yes"
        rows.append(
            {column: getattr(erratum, column) for column in COLUMNS[:5]}
            | {
                "shown": shown if corrected.passes and not printed.passes else "no",
                "evidence": f"as printed: {printed.evidence}; corrected: {corrected.evidence}",
            }
        )
    return rows


def write(out: str | os.PathLike[str], rows: Iterable[dict[str, str]]) -> None:
    """Write rows of `measure` as CSV."""
    tables.write(out, COLUMNS, rows)


def read(file: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read rows that `write` wrote."""
    return tables.read(file, COLUMNS, f"is no list of errata; {REMEDY}")
