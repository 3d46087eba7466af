"""Checkable sentences and cells of a paper, in its order, with the claims that test them or why none does.

`sentences.yaml` in a paper's folder is a list of entries with the keys place, says, and either claims (ids of
statements, without the paper's name) or why.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from replifed.claims import tables
from replifed.errors import REMEDY, DataError

_KEYS = {"place", "says", "claims", "why"}
_COLUMNS = ("paper", "place", "statement", "why")


@dataclass(frozen=True)
class Sentence:
    """A statement of a paper, in other words."""

    paper: str
    place: str  # section, equation, figure, cell
    says: str
    statements: tuple[str, ...] = ()  # ids of those that test it
    why: str = ""  # no claim tests it


def read(paper: str, path: str | os.PathLike[str]) -> list[Sentence]:
    """Sentences of a paper from its file, none if there is no file.

    Raises
    ------
    DataError
        It is no list of such entries.
    """
    if not Path(path).exists():
        return []
    try:
        entries = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"{os.fspath(path)}: {' '.join(str(error).split())}") from error
    if not isinstance(entries, list):
        raise DataError(f"{os.fspath(path)} is no list of sentences")
    return [_sentence(paper, path, number, entry) for number, entry in enumerate(entries, 1)]


def _sentence(paper: str, path: str | os.PathLike[str], number: int, entry: Any) -> Sentence:
    def refuse(what: str) -> DataError:
        return DataError(f"{os.fspath(path)}: sentence {number} {what}")

    if not isinstance(entry, dict) or not set(entry) <= _KEYS or not {"place", "says"} <= set(entry):
        raise refuse("needs the keys place, says, and claims or why, and no others")
    if ("claims" in entry) == ("why" in entry):
        raise refuse("needs either claims or why")
    claims = entry.get("claims", [])
    if not isinstance(claims, list) or ("claims" in entry and not claims):
        raise refuse("needs a list of statements as claims")
    texts = {key: entry.get(key, "") for key in ("place", "says", "why")}
    if not all(isinstance(text, str) for text in (*claims, *texts.values())):
        raise refuse("holds something that is no text; put it in quotes")
    return Sentence(paper, statements=tuple(f"{paper}.{name}" for name in claims), **texts)


def write_not_claimed(out: str | os.PathLike[str], sentences: Iterable[Sentence]) -> None:
    """Write the sentences without a claim as CSV."""
    rows = ((one.paper, one.place, one.says, one.why) for one in sentences if one.why)
    tables.write(out, _COLUMNS, (dict(zip(_COLUMNS, row, strict=True)) for row in rows))


def read_not_claimed(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read sentences that `write_not_claimed` wrote."""
    return tables.read(path, _COLUMNS, f"is no list of statements; {REMEDY}")
