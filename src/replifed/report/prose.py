"""Texts of a paper's folder, captions and notes, with the numbers that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from replifed.claims import prose, tables
from replifed.claims.prose import Numbers, Row
from replifed.claims.rules import NOT_YET
from replifed.parts import folder_of, part, text_of


def declared(paper: str) -> Sequence[Any]:
    """Claims that a paper makes."""
    return getattr(import_module(part(paper, "claims")), "CLAIMS", ())


def numbers_of(
    paper: str,
    claims: Iterable[Any],
    rows: Iterable[Row],
    table: Callable[[str, str], Sequence[Row] | None],
) -> Numbers:
    """What a paper's prose takes its numbers from: claims, a reader of tables, and its numbers.yaml.

    Claims that `rows` of claims.csv lack, as in a run of some papers, are not run yet.
    """
    rows = list(rows)
    by_id = {one.id: {"reason": NOT_YET} for one in claims} | {row["id"]: row for row in rows}
    file = folder_of(paper) / "numbers.yaml"
    whole = all(row.get("scale", "paper") == "paper" for row in rows)
    return Numbers(by_id, table, prose.allowed(text_of(file), f"{paper}/{file.name}"), whole)


def text_with_numbers(paper: str, file: Path, numbers: Numbers) -> str:
    """Text of a file in a paper's folder, "" if it is missing."""
    return prose.filled(text_of(file), f"{paper}/{file.name}", numbers)


def tables_in(figures: Path) -> Callable[[str, str], Sequence[Row] | None]:
    """Reader of the tables that a run has made."""

    def read(paper: str, name: str) -> Sequence[Row] | None:
        file = figures / paper / f"{name}.csv"
        return tables.rows(file) if file.is_file() else None

    return read
