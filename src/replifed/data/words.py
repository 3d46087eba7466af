"""Columns of texts: labels in words, and ids of clients; each text is kept once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Texts that stand for no value, in small letters; "" is one that is blank.
MISSING = {"", "na", "n/a", "#n/a", "nan", "nat", "none", "null", "nil", "<na>"}
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Words(NamedTuple):
    """A column of texts: row i has the text ``kinds[number[i]]``."""

    number: NDArray[np.int64]
    kinds: list[str]

    def missing(self) -> int | None:
        """Return the first row without a text, or with one that stands for no value."""
        none = [k for k, kind in enumerate(self.kinds) if kind.lower() in MISSING]
        return next(iter(np.flatnonzero(np.isin(self.number, none)).tolist()), None) if none else None

    def numbers(self) -> NDArray | None:
        """Return the texts as numbers, or None if one is not."""
        if not all(map(NUMBER.fullmatch, self.kinds)):
            return None
        return np.array([float(kind) for kind in self.kinds])[self.number]


def words(values: Iterable[Any]) -> Words:
    """Column of the texts that values stand for, without blanks around them."""
    known: dict[Any, int] = {}
    number = [known.setdefault(value, len(known)) for value in values]
    return renamed(np.array(number, dtype=np.int64), known)


def renamed(number: NDArray, values: Iterable[Any]) -> Words:
    """Column whose row i stands for the value of number ``number[i]``; several may be one text."""
    kinds: dict[str, int] = {}
    places = np.array([kinds.setdefault(_text(value), len(kinds)) for value in values], dtype=np.int64)
    return Words(places[number], [*kinds])


def _text(value: Any) -> str:
    """Return a value as a text; whole numbers of a column of floats are written without point."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="backslashreplace")
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
