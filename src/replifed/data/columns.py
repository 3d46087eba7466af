"""Tables with columns by name, and CSV; parquet is beside it.

pyarrow reads it, and refuses what does not fit its types; a slow reader then finds the place.
"""

from __future__ import annotations

import csv
import itertools
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.data.streams import unpacked
from replifed.data.strings import MISSING, NUMBER, Strings, renamed
from replifed.data.table import Stack
from replifed.errors import DataError, counted, one_line, unknown_name

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_matrix

_SEPARATORS = ",;\t|"
_BLOCK = 32 << 20  # bytes of CSV that are parsed at a time, and the longest line
_MOST_COLUMNS = 100_000
_CSV_ERRORS = {"unexpected end": "a quote is not closed", "new-line": "lines end with CR alone, not with LF"}
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
# Names that programs give a column that counts the rows.
_INDEX = re.compile(
    r"unnamed: ?\d+|index|level_\d+|row_?(id|names|number)?|id|__index_level_\d+__", re.IGNORECASE
)


# Most kinds of words of a column of categories, and most columns that a message names.
_MOST_KINDS, NAMED = 1000, 8


class Columns(NamedTuple):
    """What a table holds; labels are numbers or words. Where features have errors there are none."""

    X: csr_matrix | None
    label: NDArray | Strings
    client: Strings | None
    names: list[str] | None = None  # of the features
    errors: Sequence[str] = ()


class Asked(NamedTuple):
    """Columns that the settings name; by default the last is the label, and all others are features."""

    label: str | None = None
    client: str | None = None
    drop: Sequence[str] = ()
    categories: Sequence[str] = ()  # words, each kind of which becomes a feature of zeros and ones

    def roles(self) -> list[tuple[str, str]]:
        """Return each role with the column that it names."""
        single = [(role, name) for role in ("label", "client") if (name := getattr(self, role)) is not None]
        return [*single, *((role, name) for role in ("drop", "categories") for name in getattr(self, role))]


class Roles(NamedTuple):
    """Places of a table's columns."""

    names: list[str]
    features: list[int]  # that hold numbers
    label: int
    client: int | None
    categories: list[int]

    def texts(self) -> list[int]:
        """Return the places of columns that are read as words."""
        return [self.label, *([] if self.client is None else [self.client]), *self.categories]


def roles_of(path: str, names: list[str], asked: Asked) -> Roles:
    errors = []
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        errors.append(f"the column {twice} stands twice; remove or rename one")
    role_of: dict[str, str] = {}
    for role, name in asked.roles():
        if name not in names:
            errors.append(unknown_name("column", name, names))
        elif (other := role_of.setdefault(name, role)) != role:
            errors.append(f"the column {name} cannot be both {other} and {role}")
    if errors:
        raise DataError(joined(path, errors))
    places = [k for k, name in enumerate(names) if role_of.get(name) not in ("client", "drop")]
    if len(places) < 2:
        known = ", ".join(map(repr, names))
        raise DataError(
            f"{path}: no column is left for features (its columns: {known}); "
            "separate columns by a comma, semicolon, tab or bar"
        )
    label = places[-1] if asked.label is None else names.index(asked.label)
    if names[label] in asked.categories:
        raise DataError(f"{path}: the column {names[label]} cannot be both label and categories")
    words = [names.index(name) for name in asked.categories]
    client = None if asked.client is None else names.index(asked.client)
    return Roles(names, [k for k in places if k != label and k not in words], label, client, words)


def assembled(path: str, roles: Roles, numbers: csr_matrix, texts: dict[int, Strings], where: Any) -> Columns:
    """Return the columns of a table; `where` names the place of a row."""
    parts, names = [numbers], [roles.names[k] for k in roles.features]
    errors = [error] if (error := _index_error(roles, numbers)) else []
    for place in roles.categories:
        words, name = texts[place], roles.names[place]
        if error := words.lacks(name, where):
            errors.append(error)
        elif len(words.kinds) > _MOST_KINDS:
            errors.append(
                f"the column {name} holds {len(words.kinds)} kinds of words, more than {_MOST_KINDS}, as ids "
                "do; name it in drop, not in categories"
            )
        else:
            kinds, number = np.unique(words.kinds, return_inverse=True)
            parts.append(_one_hot(number[words.number], len(kinds)))
            names += [f"{name}={kind}" for kind in kinds]
    X = None
    if not errors:
        stack = Stack(path)
        stack.add(_side_by_side(parts), np.empty(0))
        X = stack.whole(len(names))
    client = None if roles.client is None else texts[roles.client]
    return Columns(X, texts[roles.label], client, names, errors)


def _one_hot(number: NDArray, kinds: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    rows = len(number)
    return csr_matrix((np.ones(rows), number, np.arange(rows + 1)), shape=(rows, kinds))


def _side_by_side(parts: list[csr_matrix]) -> csr_matrix:
    from scipy.sparse import hstack

    return parts[0] if len(parts) == 1 else hstack(parts, format="csr")


# --- CSV ---


class _Head(NamedTuple):
    """First line of a CSV file, and what follows from it."""

    names: list[str]
    separator: str
    lines: int  # down to the names
    first: list[str]  # row


def line_of(path: str, row: int) -> int:
    """Return the line of a CSV file on which its data row `row` (from 0) begins."""
    rows = _rows(path, _separator(path))
    return next(itertools.islice(rows, row + 1, None))[0]


def read_csv(path: str, asked: Asked) -> Columns:
    """Read a CSV file in UTF-8: separated by commas, semicolons, tabs or bars, with names in its first line.

    Cells that are no numbers are listed in `errors`, with line and column.

    Raises
    ------
    DataError
        With file, line and column: the file has another form, or a column is missing or stands twice.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow

    head = _head(path)
    roles = roles_of(path, head.names, asked)
    texts = roles.texts()
    truths = {k for k in roles.features if head.first[k : k + 1] and head.first[k].strip() in _TRUE + _FALSE}
    kinds = {k: pa.bool_() if k in truths else pa.float64() for k in roles.features}
    kinds |= dict.fromkeys(texts, pa.string())
    stack = Stack(path)
    found: dict[int, list[Any]] = {place: [] for place in texts}
    names = [f"f{k}" for k in range(len(head.names))]
    try:
        with unpacked(Path(path)) as stream:
            batches = arrow.open_csv(
                stream,
                arrow.ReadOptions(block_size=_BLOCK, skip_rows=head.lines, column_names=names),
                arrow.ParseOptions(
                    delimiter=head.separator,
                    newlines_in_values=True,
                    invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
                ),
                arrow.ConvertOptions(
                    column_types={names[k]: kind for k, kind in kinds.items()},
                    include_columns=[names[k] for k in sorted(kinds)],
                    **{"null_values": [], "true_values": _TRUE, "false_values": _FALSE},
                ),
            )
            for batch in batches:
                for place in texts:
                    column = pc.utf8_trim_whitespace(batch.column(names[place]))
                    found[place].append(pc.dictionary_encode(column))
                X = _features(batch, [names[k] for k in roles.features])
                if not np.isfinite(X).all():
                    raise pa.ArrowInvalid("a value is not finite")
                stack.add(X, np.empty(len(X)))
            cut = stream.last not in b"\r\n"
    except pa.ArrowException as error:
        return _with_errors(path, head, roles, truths) or _raise(f"{path}: {one_line(error)}", error)
    if cut:
        raise DataError(
            f"{path}, line {sum(1 for _ in _lines(path))}: no line end here, so the last value may be cut; "
            "add one if it is whole"
        )
    columns = {place: strings_of(chunks) for place, chunks in found.items()}
    for place, column in columns.items():
        if faulty := _check_texts(path, head, place, column, roles, truths):
            return faulty
    numbers = stack.whole(len(roles.features))
    return assembled(path, roles, numbers, columns, lambda row: f"line {line_of(path, row)}")


def _raise(text: str, cause: Exception) -> Any:
    raise DataError(text) from cause


def _check_texts(
    path: str, head: _Head, place: int, column: Strings, roles: Roles, truths: set[int]
) -> Columns | None:
    """Refuse texts that show a missing line of names, or a quote that took in the rows behind it."""
    name = head.names[place]
    if name in column.kinds:
        raise DataError(
            f"{path}, line 1: {name} is the name of a column and one of its values; "
            "give a first line with names"
        )
    doubtful = any('"' in kind or "\n" in kind for kind in column.kinds)
    if doubtful and (faulty := _with_errors(path, head, roles, truths)):
        return faulty
    for k, kind in enumerate(column.kinds):
        if "\n" in kind and head.separator in kind:
            row = int(np.flatnonzero(column.number == k)[0])
            raise DataError(
                f"{path}, line {line_of(path, row)}, column {name}: a text in quotes goes over several rows; "
                "correct the quotes, or write it in one line"
            )
    return None


def _features(batch: pa.RecordBatch, names: list[str]) -> NDArray:
    X = np.empty((batch.num_rows, len(names)))
    for k, name in enumerate(names):
        X[:, k] = batch.column(name).to_numpy(zero_copy_only=False)
    return X


def strings_of(chunks: list[Any]) -> Strings:
    """Column of dictionary-encoded texts."""
    import pyarrow as pa

    whole = pa.chunked_array(chunks).unify_dictionaries().combine_chunks()
    return renamed(whole.indices.to_numpy().astype(np.int64), whole.dictionary.to_pylist())


def _lines(path: str) -> Iterator[str]:
    """Yield the lines of a text in UTF-8, with their ends."""
    with unpacked(Path(path)) as stream:
        for number in itertools.count(1):
            line = stream.readline(_BLOCK)
            if not line:
                return
            if len(line) == _BLOCK:
                raise DataError(
                    f"{path}, line {number}: longer than {_BLOCK >> 20} MiB; correct its line ends"
                )
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise DataError(f"{path}, line {number}: not text in UTF-8; save the file as UTF-8") from None


def _separator(path: str) -> str:
    first = next((line for line in _lines(path) if line.strip()), "")
    unquoted = re.sub(r'"[^"]*"', "", first)
    found = [mark for mark in _SEPARATORS if mark in unquoted]
    if len(found) > 1:
        marks = " and ".join(map(repr, found))
        raise DataError(
            f"{path}: its first line holds {marks}, only one of which can be the separator; "
            "put names with another one in quotes"
        )
    return found[0] if found else ","


def _rows(path: str, separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the rows of a CSV file, the head first, with their first and last lines; blank ones are none."""
    reader = csv.reader(_lines(path), delimiter=separator, strict=True)
    begin = 1
    try:
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                yield begin, reader.line_num, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        known = (text for start, text in _CSV_ERRORS.items() if str(error).startswith(start))
        raise DataError(f"{path}, line {begin}: {next(known, str(error))}; correct it") from error


def _head(path: str) -> _Head:
    separator = _separator(path)
    rows = _rows(path, separator)
    line, last, cells = next(rows, (1, 1, []))
    _, _, first = next(rows, (0, 0, []))
    names = [" ".join(cell.split()) for cell in cells]
    where = f"{path}, line {line}"
    if not names:
        raise DataError(
            f"{path} is empty; give a line with the names of the columns, then one row per sample"
        )
    if len(names) > _MOST_COLUMNS:
        raise DataError(
            f"{where}: {len(names)} columns, more than {_MOST_COLUMNS}; give a LibSVM or npz file"
        )
    numbers = [name for name in names if NUMBER.fullmatch(name)]
    if numbers and (len(numbers) == len(names) or numbers != [str(k) for k in range(len(numbers))]):
        raise DataError(
            f"{where}: {numbers[0]} is a number, not the name of a column; give a first line with names"
        )
    places: dict[str, int] = {}
    for k, name in enumerate(names):
        if not name:
            raise DataError(
                f"{where}: column {k + 1} has no name: name it, or remove it if it is an index "
                "(pandas: index=False)"
            )
        if (before := places.setdefault(name, k)) < k:
            raise DataError(
                f"{where}: the column {name} stands twice, as column {before + 1} and {k + 1}; remove or "
                "rename one"
            )
    if not first:
        raise DataError(f"{path} holds no rows, only names of columns; give one row per sample")
    return _Head(names, separator, last, first)


class _Cell(NamedTuple):
    """A cell that is no number, the first of its column."""

    line: int
    what: str
    remedy: str


def _with_errors(path: str, head: _Head, roles: Roles, truths: set[int]) -> Columns | None:
    """Return the words of a CSV file, and what is wrong with each column of numbers; None if nothing is."""
    cells: dict[int, _Cell] = {}
    of_rows = ""
    known: dict[int, dict[str, int]] = {place: {} for place in roles.texts()}
    numbers: dict[int, array[int]] = defaultdict(lambda: array("q"))
    try:
        for line, _, row in itertools.islice(_rows(path, head.separator), 1, None):
            if len(row) != len(head.names):
                of_rows = (
                    f"line {line}: {counted(len(row), 'field')} for {len(head.names)} columns; the "
                    f"separator is {head.separator!r}: put texts that hold it in quotes, and write decimals "
                    "with a point"
                )
                break
            for k in roles.features:
                if k not in cells and (wrong := _cell_error(row[k].strip(), k in truths)):
                    cells[k] = _Cell(line, *wrong)
            for k, kinds in known.items():
                numbers[k].append(kinds.setdefault(row[k].strip(), len(kinds)))
    except DataError as error:
        of_rows = str(error)
    errors = [*([_cells_error(head, cells)] if cells else []), *([of_rows] if of_rows else [])]
    if not errors:
        return None
    if of_rows:  # then nothing is known of the rows behind it
        raise DataError(joined(path, errors))
    words = {k: renamed(np.array(numbers[k], dtype=np.int64), kinds) for k, kinds in known.items()}
    return Columns(
        None, words[roles.label], None if roles.client is None else words[roles.client], None, errors
    )


def _cells_error(head: _Head, cells: dict[int, _Cell]) -> str:
    """Say which columns hold what is no number, each by its first cell."""
    if len(cells) == 1:
        ((k, cell),) = cells.items()
        text = f"line {cell.line}, column {head.names[k]}: {cell.what}{cell.remedy}"
        return text if cell.what.endswith("first is") else f"{text} (the separator is {head.separator!r})"
    some = [f"{head.names[k]} (line {cell.line}: {cell.what})" for k, cell in sorted(cells.items())]
    more = f", and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return (
        f"{len(some)} columns hold what is no number: {', '.join(some[:NAMED])}{more}; correct the cells, "
        "or name the columns in drop, or in categories if they hold words"
    )


def _cell_error(cell: str, truth: bool) -> tuple[str, str] | None:
    """Return what is wrong with a cell of a column of numbers, or of true and false, and what to do."""
    if truth:
        wrong = cell not in _TRUE + _FALSE
        return (f"{cell!r} is neither true nor false, but the first is", "") if wrong else None
    if NUMBER.fullmatch(cell):
        finite = np.isfinite(float(cell))
        return None if finite else (f"{cell} is not finite", "; correct it, or remove the row")
    shown = repr(cell if len(cell) <= 60 else f"{cell[:60]}...")
    what = f"{shown} is no number"
    if cell.lower() in MISSING:
        return what, ": the value is missing; give it, or remove the row"
    if NUMBER.fullmatch(cell.replace(",", ".", 1)):
        return what, ": write a point for a decimal comma, and nothing between thousands"
    remedy = "such as 1.5 or 2e-3; correct it, or name the column in drop, or in categories if it holds words"
    return what, f" {remedy}"


def _index_error(roles: Roles, X: Any) -> str:
    """Say which feature is called as an index is, and counts the rows."""
    for k, place in enumerate(roles.features):
        if _INDEX.fullmatch(roles.names[place]):
            values = X[:, [k]].toarray().ravel()
            if len(values) > 1 and (np.diff(values) == 1).all() and values[0] in (0, 1):
                return (
                    f"the column {roles.names[place]} counts the rows, as an index does; remove it (pandas: "
                    "index=False), name it in drop, or rename it if it is a feature"
                )
    return ""


def joined(path: str, errors: Sequence[str]) -> str:
    """Return one line on all errors of a file, each of which may begin with the path.

    >>> joined("a.csv", ["a.csv, line 2: no label"])
    'a.csv, line 2: no label'
    >>> joined("a.csv", ["line 2: no label", "a.csv: 3 rows; expected 4"])
    'a.csv: 2 errors: (1) line 2: no label; (2) 3 rows; expected 4'
    """
    texts = [error.removeprefix(path).lstrip(",: ") for error in errors]
    if len(texts) == 1:
        mark = ", " if texts[0].startswith(("line ", "row ")) else ": "
        return f"{path}{mark}{texts[0]}"
    return f"{path}: {len(texts)} errors: " + "; ".join(f"({k}) {text}" for k, text in enumerate(texts, 1))
