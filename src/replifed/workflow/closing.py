"""The last lines of a call: the score of the statements, the kinds of data, and where the report is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from replifed.errors import DataError


def score_lines(paths: Mapping[str, str], papers: Iterable[str]) -> list[str]:
    """Return the score of the statements of papers whose claims have been measured."""
    from replifed.claims import files, scores

    try:
        judged = (Path(paths["results"], paper, "claims.csv") for paper in papers)
        rows = [row for file in judged if file.is_file() for row in files.read(file)]
    except DataError as error:  # a file is damaged
        return [str(error)]
    return scores.in_lines(scores.statements(rows)) if rows else []


def data_line(paths: Mapping[str, str], used: Iterable[str], pages: Iterable[str]) -> str:
    """Say how many of the `used` data sets are not the papers', and where the report's `pages` are."""
    from replifed.data.records import not_original, status_rows

    raw = Path(paths["data"], "raw")
    known = [name for name in used if (raw / f"{name}.json").is_file()]
    try:
        parts = [not_original(status_rows(raw, known))] if known else []
    except DataError as error:  # a record is damaged
        parts = [str(error)]
    return "; ".join([*parts, *(f"report: {page}" for page in pages)])
