"""The table in a text of lines of values: below a header, below a row of rounds, or without either."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.tables import is_number
from replifed.errors import DataError, one_line
from replifed.logs.meanings import LINE, ROW, VALUE
from replifed.logs.values import floats, spoilt
from replifed.store import limits

# A longer line is no line of a log.
_LONGEST = 1 << 16
_SPACES = " "  # any number of blanks
_SEPARATORS = ",", "\t", ";"
_LEAST_ROUNDS = 3  # in a header of rounds
_WORDS = 100_000  # lines before a header, at most
_LINE_COST = 256  # bytes of memory for each line from its table to verdicts, with a few columns


class Table(NamedTuple):
    """The lines of a log, and in words what was done for them."""

    frame: pd.DataFrame
    said: list[str]


def check_lines(path: Path, count: int) -> None:
    """Refuse a log, or those of a folder, with more lines than can be judged within the limit."""
    given = limits.DEFAULT, "keep fewer lines"
    limits.check(path, _LINE_COST * count, f"judging its {count:,} lines takes", given)


def lines_of(path: Path, content: str) -> Table:
    """Table of a text's lines of values.

    Raises
    ------
    DataError
        There are none, or some are cut off, or too long or too many.
    """
    content = content.replace("\r\n", "\n").replace("\r", "\n")
    check_lines(path, content.count("\n"))
    lines = content.split("\n")
    if max(map(len, lines)) > _LONGEST:
        number, line = next((number, line) for number, line in enumerate(lines, 1) if len(line) > _LONGEST)
        raise DataError(f"{path} is no log: line {number} has {len(line):,} letters")
    found = _under_header(path, lines) or _under_rounds(lines) or _without_header(path, lines)
    if found is None:
        raise DataError(
            f"{path} is no log: no line is a header, with two names or more and numbers below them, and "
            "its lines are no table of numbers alone"
        )
    return found


def _under_header(path: Path, lines: list[str]) -> Table | None:
    """Of lines that could be a header, take that above most lines of as many fields."""
    counts = _Counts(lines)
    start, separator = max(_headers(lines), key=lambda one: counts.below(*one), default=(0, ""))
    if not separator:
        return None
    names = [name.strip() for name in _fields(lines[start].lstrip("# "), separator)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{path}, line {start + 1} names the column {twice[0]} twice; rename one")
    for number in np.flatnonzero(counts.by(separator)[start + 1 :] != len(names)) + start + 1:
        if lines[number].strip():
            raise DataError(
                f"{path}, line {number + 1} has not {len(names)} fields as its header; was it cut off?"
            )
    frame = _parsed(path, lines[start + 1 :], separator, len(names), start + 1)
    frame.columns = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    return Table(frame, [])


def _headers(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines that could be a header, with their separator: names, and as many fields below, one a number."""
    filled = (number for number, line in enumerate(lines) if line.strip())
    for number, below in islice(pairwise(filled), _WORDS):
        line = lines[number].lstrip("# ")
        separator = _separator(line)
        names, values = _fields(line, separator), _fields(lines[below], separator)
        if len(names) > 1 and not names[0].strip():
            names[0] = "index"  # as pandas writes it, without a name
        texts = len(names) > 1 and all(name.strip() and not is_number(name) for name in names)
        if texts and len(names) == len(values) and any(map(is_number, values)):
            yield number, separator


def _under_rounds(lines: list[str]) -> Table | None:
    """Take rows that are runs, below a row of rounds, with or without names in front of them."""
    first = next(filter(str.strip, lines), "")
    separator = _separator(first)
    header = _fields(first, separator)
    named = next((place for place, field in enumerate(header) if is_number(field)), len(header))
    rounds = header[named:]
    if not _rise(rounds, _LEAST_ROUNDS):
        return None
    rows = [_fields(line, separator) for line in lines if line.strip()][1:]
    if not rows or any(len(row) != len(header) for row in rows):
        return None
    if not named and _rise(rows[0], _LEAST_ROUNDS):
        return None
    columns = [name.strip() or ROW for name in header[:named]]
    if not all(is_number(field) or not field.strip() for row in rows for field in row[named:]):
        return None
    ids = pd.DataFrame([row[:named] for row in rows], columns=columns)
    if not named:
        ids[ROW] = np.arange(1, len(rows) + 1)
    frame = ids.loc[np.repeat(ids.index, len(rounds))].reset_index(drop=True)
    frame["round"] = np.tile([int(float(one)) for one in rounds], len(rows))
    frame[VALUE] = [field.strip() or np.nan for row in rows for field in row[named:]]
    return Table(frame, [f"the first row is of rounds, and each other row a run, by {frame.columns[0]}"])


def _rise(fields: Sequence[str], least: int) -> bool:
    """Return True if fields are whole numbers that rise, such as rounds."""
    if len(fields) < least or not all(map(is_number, fields)):
        return False
    numbers = np.array([float(field) for field in fields])
    return bool(np.isfinite(numbers).all() and (numbers % 1 == 0).all() and are_rounds(numbers))


def are_rounds(numbers: NDArray) -> bool:
    with np.errstate(invalid="ignore"):
        return bool((numbers >= 0).all() and (numbers % 1 == 0).all() and (np.diff(numbers) > 0).all())


def _without_header(path: Path, lines: list[str]) -> Table | None:
    """Lines of numbers alone, perhaps below one name or comments."""
    filled = [number for number, line in enumerate(lines) if line.strip() and line[:1] != "#"]
    name = VALUE
    if len(filled) > 1 and not is_number(lines[filled[0]]) and is_number(lines[filled[1]]):
        name, filled = lines[filled[0]].strip(), filled[1:]
    if not filled:
        return None
    kept = [lines[number] for number in filled]
    separator = _separator(kept[0])
    counts = _counted(kept, separator)
    alike = int((counts != counts[0]).argmax()) or len(kept)  # lines before one of other fields
    frame = _parsed(path, kept[:alike], separator, int(counts[0]), 0)
    if any(frame[name].dtype.kind == "b" or len(spoilt(frame[name])) for name in frame):
        return None
    if alike < len(kept):
        if not all(is_number(field) or not field.strip() for field in _fields(kept[alike], separator)):
            return None
        raise DataError(
            f"{path}, line {filled[alike] + 1} has not {counts[0]} fields as the first; was it cut off?"
        )
    return columns_of(frame.apply(floats).to_numpy(), name)


def columns_of(array: NDArray, name: str = VALUE) -> Table:
    """Columns (T, C) without names: the first is the round if it rises, and one other the value."""
    count = array.shape[1]
    if count == 1:
        said = f"no rounds: {LINE} numbers the values" + f", which are called {name}" * (name == VALUE)
        return Table(pd.DataFrame({LINE: np.arange(len(array)), name: array[:, 0]}), [said])
    names = [f"column_{place}" for place in range(1, count + 1)]
    if are_rounds(array[:, 0]):
        names[0] = "round"
        names[1:] = [VALUE] if count == 2 else names[1:]
    frame = pd.DataFrame(dict(zip(names, array.T, strict=True)))
    return Table(frame, [f"no header: columns are called {', '.join(names)}"])


class _Counts:
    """Numbers of fields of lines, by separator."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._by: dict[str, NDArray] = {}
        self._ends: dict[str, NDArray] = {}

    def by(self, separator: str) -> NDArray:
        if separator not in self._by:
            self._by[separator] = _counted(self._lines, separator)
            changes = np.flatnonzero(np.diff(self._by[separator])) + 1
            self._ends[separator] = np.append(changes, len(self._lines))
        return self._by[separator]

    def below(self, start: int, separator: str) -> int:
        """Return the number of lines from one on that have as many fields."""
        self.by(separator)
        ends = self._ends[separator]
        return int(ends[np.searchsorted(ends, start, side="right")]) - start


def _counted(lines: list[str], separator: str) -> NDArray:
    """Numbers of fields of lines; of most lines without taking them apart."""
    plain = separator != _SPACES
    counts = (
        line.count(separator) + 1 if plain and '"' not in line else len(_fields(line.lstrip("# "), separator))
        for line in lines
    )
    return np.fromiter(counts, np.int32, len(lines))


def _separator(line: str) -> str:
    best = max(_SEPARATORS, key=line.count)
    return best if best in line else _SPACES


def _fields(line: str, separator: str) -> list[str]:
    if separator == _SPACES:
        return line.split()
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return []


def _parsed(path: Path, lines: list[str], separator: str, count: int, below: int) -> pd.DataFrame:
    # A word such as None may be a method's name: it is no number in a column of numbers alone.
    options: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "low_memory": False}
    options |= {"header": None, "names": range(count), "index_col": False}
    options |= {"sep": r"\s+"} if separator == _SPACES else {"sep": separator, "skipinitialspace": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # that fields are lost
            return pd.read_csv(io.StringIO("\n".join(lines)), **options)
    except (ValueError, OverflowError, pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise DataError(f"{path}, below line {below}: {one_line(error)}") from error
