"""Columns of strings, such as text labels and client ids; each distinct string is stored once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Texts that stand for no value, in small letters; "" is one that is blank.
MISSING = {"", "na", "n/a", "#n/a", "nan", "nat", "none", "null", "nil", "<na>"}
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Strings(NamedTuple):
    """A column of strings: row i has the string ``kinds[number[i]]``."""

    number: NDArray[np.int64]
    kinds: list[str]

    def missing(self) -> int | None:
        """Return the first row without a value: empty, or with a string such as NA."""
        none = [k for k, kind in enumerate(self.kinds) if kind.lower() in MISSING]
        return next(iter(np.flatnonzero(np.isin(self.number, none)).tolist()), None) if none else None

    def lacks(self, name: str, where: Callable[[int], str]) -> str:
        """Say in which row, at a place, there is no value; "" if all are there."""
        row = self.missing()
        return "" if row is None else f"{where(row)}: the {name} is missing; give it, or remove the row"

    def numbers(self) -> NDArray | None:
        """Return the strings as numbers, or None if one is not a number."""
        if not all(map(NUMBER.fullmatch, self.kinds)):
            return None
        return np.array([float(kind) for kind in self.kinds])[self.number]


def strings(values: Iterable[Any]) -> Strings:
    """Column with each value as a string, without surrounding blanks."""
    known: dict[Any, int] = {}
    number = [known.setdefault(value, len(known)) for value in values]
    return renamed(np.array(number, dtype=np.int64), known)


def renamed(number: NDArray, values: Iterable[Any]) -> Strings:
    """Column with the string of ``values[number[i]]`` in row i; several values may give one string."""
    kinds: dict[str, int] = {}
    places = np.array([kinds.setdefault(_text(value), len(kinds)) for value in values], dtype=np.int64)
    return Strings(places[number], [*kinds])


def _text(value: Any) -> str:
    """Return a value as a string; whole numbers of a column of floats are written without a decimal point."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="backslashreplace")
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
