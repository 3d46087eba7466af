"""Parquet files as tables with columns by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.data.columns import NAMED, Asked, Columns, assembled, joined, roles_of, strings_of
from replifed.data.strings import strings
from replifed.data.table import Stack
from replifed.errors import DataError, one_line
from replifed.progress import Lines
from replifed.store import limits

if TYPE_CHECKING:
    import pyarrow as pa

_VALUES = 4 << 20  # that are read at a time


def read_parquet(path: str, asked: Asked) -> Columns:
    """Read a parquet file; its index is no feature.

    Missing values are listed in `errors`, with column and row.

    Raises
    ------
    DataError
        A column is missing, or holds no numbers; or the file is damaged.
    """
    try:
        return _read_parquet(path, asked)
    except DataError:
        raise
    except Exception as error:  # pyarrow may raise anything on a damaged file
        raise DataError(f"{path} is no sound parquet file ({one_line(error)}); write it anew") from error


def _read_parquet(path: str, asked: Asked) -> Columns:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        meta, schema = file.metadata, file.schema_arrow
    limits.check(path, sum(meta.row_group(k).total_byte_size for k in range(meta.num_row_groups)))
    limits.check(path, 12 * meta.num_rows, f"its {meta.num_rows} rows take")  # a label, and where a row ends
    index = {
        name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)
    }
    named = {name for _, name in asked.roles()}
    names = [name for name in schema.names if name not in index or name in named]
    roles = roles_of(path, names, asked)
    kinds = {k: _kind(schema.field(names[k]).type) for k in sorted([*roles.features, *roles.texts()])}
    misfits = [_misfit(names[k], kind, schema, k in roles.features) for k, kind in kinds.items()]
    if wrong := [error for error in misfits if error]:
        raise DataError(joined(path, wrong))
    stack, row, progress = Stack(path), 0, Lines(Path(path).name)
    found: dict[int, list[Any]] = {k: [] for k in roles.texts()}
    errors: dict[int, str] = {}  # the first of each column
    # Of texts the kinds alone are unpacked: a long one may stand in every row.
    packed = [names[k] for k, kind in kinds.items() if kind == "texts"]
    with parquet.ParquetFile(path, read_dictionary=packed) as file:
        wanted = [names[k] for k in kinds]
        for batch in file.iter_batches(batch_size=max(1, _VALUES // len(names)), columns=wanted):
            read: dict[int, Any] = {}
            for k, kind in kinds.items():
                read[k] = batch.column(names[k])
                missing = read[k].is_null().to_numpy(zero_copy_only=False)
                if kind == "numbers" and not missing.any():
                    read[k] = _floats(path, names[k], read[k])
                    missing = ~np.isfinite(read[k])
                if missing.any() and k not in errors:
                    place = f"row {row + int(np.flatnonzero(missing)[0]) + 1}, column {names[k]}"
                    errors[k] = f"{place}: the value is missing or not finite; give it, or remove the row"
            if not errors:
                X = np.empty((batch.num_rows, len(roles.features)))
                for j, k in enumerate(roles.features):
                    X[:, j] = read[k]
                stack.add(X, np.empty(len(X)))
                for k, chunks in found.items():
                    chunks.append(read[k])
            row += batch.num_rows
            progress("rows", row, meta.num_rows)
    if not row:
        raise DataError(f"{path} holds no rows; give one row per sample")
    if errors:
        raise DataError(joined(path, [errors[k] for k in sorted(errors)][:NAMED]))
    columns = {
        k: strings_of(some) if kinds[k] == "texts" else np.concatenate(some) for k, some in found.items()
    }
    texts = {k: strings(one) if isinstance(one, np.ndarray) else one for k, one in columns.items()}
    whole = assembled(path, roles, stack.whole(len(roles.features)), texts, lambda row: f"row {row + 1}")
    return whole._replace(label=columns[roles.label])


def _misfit(name: str, kind: str, schema: Any, feature: bool) -> str:
    """Say why a column of that kind of values cannot have its role."""
    if kind == "numbers" or (kind == "texts" and not feature):
        return ""
    what = "no numbers" if feature else "neither numbers nor texts"
    remedy = "name it in drop, or in categories if it holds words" if feature else "correct or remove it"
    return f"the column {name} holds {what} ({schema.field(name).type}); {remedy}"


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
