"""Checkable sentences and cells of a paper: those with claims, and a list of those without, with the reason.

Sentences with claims are declared above the claims (`statements`). `sentences.yaml` in a paper's folder lists
the others: entries with the keys place, says and why.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from replifed.claims import tables
from replifed.errors import DataError, one_line
from replifed.store import documents

_KEYS = {"place", "says", "why"}
COLUMNS = ("paper", "place", "statement", "why")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a paper, in other words."""

    paper: str
    name: str  # id of the statement; empty without claims
    place: str  # section, equation, figure, cell
    says: str
    main: bool = False
    why: str = ""  # no claim tests it
    evidence: str = ""  # what it rests on, of `evidence.KINDS`
    question: str = ""  # to the authors, whose answer would settle it
    reply: str = ""  # theirs, after its date


def read(paper: str, path: str | os.PathLike[str]) -> list[Sentence]:
    """Sentences without claims from a paper's file, none if there is no file.

    Raises
    ------
    DataError
        It is no list of such entries.
    """
    if not Path(path).exists():
        return []
    try:
        entries = documents.load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"{os.fspath(path)}: {one_line(error)}") from error
    if not isinstance(entries, list):
        raise DataError(f"{os.fspath(path)} is no list of sentences")
    return [_sentence(paper, path, number, entry) for number, entry in enumerate(entries, 1)]


def _sentence(paper: str, path: str | os.PathLike[str], number: int, entry: Any) -> Sentence:
    def refuse(what: str) -> DataError:
        return DataError(f"{os.fspath(path)}: sentence {number} {what}")

    if isinstance(entry, dict) and "claims" in entry:
        raise refuse("has claims; it belongs above them in claims.py: `@CLAIM.sentence(NAME, PLACE, SAYS)`")
    if not isinstance(entry, dict) or set(entry) != _KEYS:
        raise refuse("needs the keys place, says and why, and no others")
    if not all(isinstance(text, str) for text in entry.values()):
        raise refuse("holds something that is no text; put it in quotes")
    return Sentence(paper, "", **entry)


def merged(claimed: Iterable[Sentence], others: Iterable[Sentence]) -> list[Sentence]:
    """Sentences with claims and those without, each list in the paper's order, in one.

    A sentence without claims comes after the last one with claims of its place, else of its section or
    artefact, which is the place up to the first comma; else after the one before it.
    """
    claimed = list(claimed)
    behind: list[list[Sentence]] = [[] for _ in range(len(claimed) + 1)]
    last = 0
    for other in others:
        for key in (lambda place: place, _section):
            found = [n for n, one in enumerate(claimed, 1) if key(one.place) == key(other.place)]
            if found:
                last = found[-1]
                break
        behind[last].append(other)
    return [*behind[0], *(one for n, own in enumerate(claimed, 1) for one in (own, *behind[n]))]


def _section(place: str) -> str:
    return place.partition(",")[0]


def not_claimed(sentences: Iterable[Sentence]) -> list[dict[str, str]]:
    """Return the sentences without a claim as rows, with the reason."""
    found = ((one.paper, one.place, one.says, one.why) for one in sentences if one.why)
    return [dict(zip(COLUMNS, row, strict=True)) for row in found]


def write_not_claimed(out: str | os.PathLike[str], sentences: Iterable[Sentence]) -> None:
    """Write the sentences without a claim as CSV."""
    tables.write(out, COLUMNS, not_claimed(sentences))
