"""Tables with columns by name: CSV and parquet.

pyarrow reads them, and refuses what does not fit its types; for CSV a slow reader then finds the place.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.data.streams import unpacked
from replifed.data.table import Stack
from replifed.data.words import MISSING, NUMBER, Words, renamed, words
from replifed.errors import DataError, counted, one_line, unknown_name
from replifed.progress import Lines
from replifed.store import limits

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_matrix

_SEPARATORS = ",;\t|"
_BLOCK = 32 << 20  # bytes of CSV that are parsed at a time, and the longest line
_VALUES = 4 << 20  # of parquet that are read at a time
_MOST_COLUMNS = 100_000
_CSV_ERRORS = {"unexpected end": "a quote is not closed", "new-line": "lines end with CR alone, not with LF"}
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
# Names that programs give a column that counts the rows.
_INDEX = re.compile(
    r"unnamed: ?\d+|index|level_\d+|row_?(id|names|number)?|id|__index_level_\d+__", re.IGNORECASE
)


class Columns(NamedTuple):
    """What a table holds; labels are numbers or words."""

    X: csr_matrix
    label: NDArray | Words
    client: Words | None


class _Roles(NamedTuple):
    """Places of a table's columns."""

    names: list[str]
    features: list[int]
    label: int
    client: int | None


def _roles(path: str, names: list[str], label: str | None, client: str | None) -> _Roles:
    for name in (label, client):
        if name is not None and name not in names:
            raise DataError(f"{path}: {unknown_name('column', name, names)}")
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}: the column {twice} stands twice; remove or rename one")
    places = [k for k, name in enumerate(names) if name != client]
    if label is not None and label == client:
        raise DataError(f"{path}: the column {label} cannot be both label and client")
    if len(places) < 2:
        known = ", ".join(map(repr, names))
        raise DataError(
            f"{path}: no column is left for features (its columns: {known}); "
            "separate columns by a comma, semicolon, tab or bar"
        )
    chosen = places[-1] if label is None else names.index(label)
    return _Roles(
        names, [k for k in places if k != chosen], chosen, None if client is None else names.index(client)
    )


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


def read_csv(path: str, label: str | None, client: str | None) -> Columns:
    """Read a CSV file in UTF-8: separated by commas, semicolons, tabs or bars, with names in its first line.

    Raises
    ------
    DataError
        With file, line and column: something is missing, stands twice, or is no number.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow

    head = _head(path)
    roles = _roles(path, head.names, label, client)
    texts = [roles.label, *([] if roles.client is None else [roles.client])]
    truths = [k for k in roles.features if head.first[k : k + 1] and head.first[k].strip() in _TRUE + _FALSE]
    kinds = {k: pa.bool_() if k in truths else pa.float64() for k in roles.features}
    kinds |= dict.fromkeys(texts, pa.string())
    stack = Stack(path)
    found: dict[int, list[Any]] = {place: [] for place in texts}
    names = [f"f{k}" for k in range(len(head.names))]
    fault = partial(_fault, path, head, {*texts}, {*truths})
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
                    **{"null_values": [], "true_values": _TRUE, "false_values": _FALSE},
                ),
            )
            for batch in batches:
                for place in texts:
                    found[place].append(pc.dictionary_encode(pc.utf8_trim_whitespace(batch.column(place))))
                X = _features(batch, roles)
                if not np.isfinite(X).all():
                    raise pa.ArrowInvalid("a value is not finite")
                stack.add(X, X[:, 0])
            cut = stream.last not in b"\r\n"
    except pa.ArrowException as error:
        raise DataError(fault() or f"{path}: {one_line(error)}") from error
    if cut:
        raise DataError(
            f"{path}, line {sum(1 for _ in _lines(path))}: no line end here, so the last value may be cut; "
            "add one if it is whole"
        )
    columns = {place: _words(chunks) for place, chunks in found.items()}
    for place, column in columns.items():
        _check_texts(path, head, place, column, fault)
    X = stack.whole(len(roles.features))
    _check_index(path, roles, X)
    return Columns(X, columns[roles.label], None if roles.client is None else columns[roles.client])


def _check_texts(path: str, head: _Head, place: int, column: Words, fault: Callable[[], str | None]) -> None:
    """Refuse texts that show a missing line of names, or a quote that took in the rows behind it."""
    name = head.names[place]
    if name in column.kinds:
        raise DataError(
            f"{path}, line 1: {name} is the name of a column and one of its values; "
            "give a first line with names"
        )
    if any('"' in kind or "\n" in kind for kind in column.kinds) and (first := fault()):
        raise DataError(first)
    for k, kind in enumerate(column.kinds):
        if "\n" in kind and head.separator in kind:
            row = int(np.flatnonzero(column.number == k)[0])
            raise DataError(
                f"{path}, line {line_of(path, row)}, column {name}: a text in quotes goes over several rows; "
                "correct the quotes, or write it in one line"
            )


def _features(batch: pa.RecordBatch, roles: _Roles) -> NDArray:
    X = np.empty((batch.num_rows, len(roles.features)))
    for k, place in enumerate(roles.features):
        X[:, k] = batch.column(place).to_numpy(zero_copy_only=False)
    return X


def _words(chunks: list[Any]) -> Words:
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
        raise DataError(f"{path} is empty; give a line with the names of the columns, then a row a sample")
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
        raise DataError(f"{path} holds no rows, only names of columns; give a row a sample")
    return _Head(names, separator, last, first)


def _fault(path: str, head: _Head, texts: set[int], truths: set[int]) -> str | None:
    """Return the first fault of a CSV file with line and column, or None."""
    for line, _, cells in itertools.islice(_rows(path, head.separator), 1, None):
        where = f"{path}, line {line}"
        if len(cells) != len(head.names):
            return (
                f"{where}: {counted(len(cells), 'field')} for {len(head.names)} columns; the separator is "
                f"{head.separator!r}: put texts that hold it in quotes, and write decimals with a point"
            )
        for k, (name, cell) in enumerate(zip(head.names, map(str.strip, cells), strict=True)):
            if k in texts:
                continue
            if k in truths and cell not in _TRUE + _FALSE:
                return f"{where}, column {name}: {cell!r} is neither true nor false, but the first is"
            if k not in truths and (fault := _cell_fault(cell)):
                return f"{where}, column {name}: {fault} (the separator is {head.separator!r})"
    return None


def _cell_fault(cell: str) -> str:
    if cell.lower() in MISSING:
        return f"{cell!r} is no number: the value is missing; give it, or remove the row"
    if NUMBER.fullmatch(cell):
        return "" if np.isfinite(float(cell)) else f"{cell} is not finite; correct it, or remove the row"
    shown = repr(cell if len(cell) <= 60 else f"{cell[:60]}...")
    if NUMBER.fullmatch(cell.replace(",", ".", 1)):
        return f"{shown} is no number: write a point for a decimal comma, and nothing between thousands"
    return f"{shown} is no number such as 1.5 or 2e-3; correct it, or remove the column"


def _check_index(path: str, roles: _Roles, X: Any) -> None:
    """Refuse a feature that is called as an index is, and counts the rows."""
    for k, place in enumerate(roles.features):
        if _INDEX.fullmatch(roles.names[place]):
            values = X[:, [k]].toarray().ravel()
            if len(values) > 1 and (np.diff(values) == 1).all() and values[0] in (0, 1):
                raise DataError(
                    f"{path}: the column {roles.names[place]} counts the rows, as an index does; remove it "
                    "(pandas: index=False), or rename it if it is a feature"
                )


# --- parquet ---


def read_parquet(path: str, label: str | None, client: str | None) -> Columns:
    """Read a parquet file; its index is no feature.

    Raises
    ------
    DataError
        With file, column and row: a value is missing, or a column holds no numbers.
    """
    try:
        return _read_parquet(path, label, client)
    except DataError:
        raise
    except Exception as error:  # pyarrow may raise anything on a damaged file
        raise DataError(f"{path} is no sound parquet file ({one_line(error)}); write it anew") from error


def _read_parquet(path: str, label: str | None, client: str | None) -> Columns:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        meta, schema = file.metadata, file.schema_arrow
    limits.check(path, sum(meta.row_group(k).total_byte_size for k in range(meta.num_row_groups)))
    limits.check(path, 12 * meta.num_rows, f"its {meta.num_rows} rows take")  # a label, and where a row ends
    index = {
        name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)
    }
    names = [name for name in schema.names if name not in index or name in (label, client)]
    roles = _roles(path, names, label, client)
    kinds = [_kind(schema.field(name).type) for name in names]
    for k, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind != "numbers" and (k in roles.features or kind != "texts"):
            what = "no numbers" if k in roles.features else "neither numbers nor texts"
            raise DataError(
                f"{path}: the column {name} holds {what} ({schema.field(name).type}); correct or remove it"
            )
    stack, row, progress = Stack(path), 0, Lines(Path(path).name)
    found: dict[int, list[Any]] = {k: [] for k in (roles.label, roles.client) if k is not None}
    # Of texts the kinds alone are unpacked: a long one may stand in every row.
    packed = [name for name, kind in zip(names, kinds, strict=True) if kind == "texts"]
    with parquet.ParquetFile(path, read_dictionary=packed) as file:
        for batch in file.iter_batches(batch_size=max(1, _VALUES // len(names)), columns=names):
            batch = batch.select(names)
            for name, kind, column in zip(names, kinds, batch.columns, strict=True):
                missing = column.is_null().to_numpy(zero_copy_only=False)
                if kind == "numbers" and not missing.any():
                    missing = ~np.isfinite(_floats(path, name, column))
                if missing.any():
                    where = f"{path}, row {row + int(np.flatnonzero(missing)[0]) + 1}, column {name}"
                    raise DataError(
                        f"{where}: the value is missing or not finite; give it, or remove the row"
                    )
            X = np.column_stack([_floats(path, names[k], batch.column(k)) for k in roles.features])
            stack.add(X, X[:, 0])
            for k, chunks in found.items():
                column = batch.column(k)
                chunks.append(column if kinds[k] == "texts" else _floats(path, names[k], column))
            row += batch.num_rows
            progress("rows", row, meta.num_rows)
    if not row:
        raise DataError(f"{path} holds no rows; give a row a sample")
    columns = {k: _words(some) if kinds[k] == "texts" else np.concatenate(some) for k, some in found.items()}
    X = stack.whole(len(roles.features))
    _check_index(path, roles, X)
    given = None if roles.client is None else columns[roles.client]
    return Columns(X, columns[roles.label], words(given) if isinstance(given, np.ndarray) else given)


def _kind(kind: pa.DataType) -> str:
    """Return what a type of arrow holds: "numbers" (or true and false), "texts", or ""."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(is_one(kind) for is_one in numbers):
        return "numbers"
    return "texts" if types.is_string(kind) or types.is_large_string(kind) else ""


def _floats(path: str, name: str, column: pa.Array) -> NDArray:
    import pyarrow as pa

    try:
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:  # whole numbers beyond 2^53
        raise DataError(
            f"{path}: floats cannot hold the column {name} exactly ({one_line(error)}); scale it"
        ) from error
