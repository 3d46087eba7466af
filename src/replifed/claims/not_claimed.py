"""Statements of the papers that are not held against anything, each with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from replifed.claims import tables


class NotClaimed(NamedTuple):
    """A statement without a claim, since no run can tell, or none could come out otherwise."""

    paper: str
    place: str  # section, figure or table
    statement: str
    why: str


def write(out: str | os.PathLike[str], rows: Iterable[NotClaimed]) -> None:
    """Write statements as CSV."""
    tables.write(out, NotClaimed._fields, (row._asdict() for row in rows))


def read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read what `write` wrote."""
    return tables.read(
        path, NotClaimed._fields, "is no list of statements; delete it and run the workflow again"
    )
