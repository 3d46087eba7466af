"""The table in a log: one function for each form of file, and what each had to do for it."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.errors import ConfigError, DataError, one_line
from replifed.logs import meanings
from replifed.logs.meanings import LINE, ROW, VALUE
from replifed.logs.texts import Table, are_rounds, columns_of, lines_of
from replifed.logs.unopened import cure
from replifed.logs.values import numbers_of
from replifed.store import limits

# Bytes of memory for a value of an array or of parquet, or a letter of JSON, in tables that are joined.
_COST = 64
_DEEPEST = 8  # of objects within objects of JSON


def text(path: Path, content: str) -> Table:
    """Table of a text: JSON, or lines of values (`texts`)."""
    start = content.lstrip()[:1]
    if start == "{" or (start == "[" and not _is_stamp(content)):
        limits.check(path, _COST * len(content), "reading it takes")
        return _json(path, content)
    return lines_of(path, content)


def _is_stamp(content: str) -> bool:
    """Return True if a text begins with words or a time in brackets."""
    try:
        json.loads(content)
    except ValueError:
        return not re.match(r"\s*\[\s*[\[{]", content)
    except RecursionError:
        pass
    return False


# --- JSON ---


def _json(path: Path, content: str) -> Table:
    """Records, one a line or in a list; or an object of lists, such as Flower's History."""
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise DataError(f"{path}: no JSON of a log: it is nested too deep") from error
    except ValueError as error:
        value = _json_lines(path, content, error)
    try:
        if isinstance(value, dict):
            return _object(path, value)
        if value and all(isinstance(row, dict) for row in value):
            return Table(pd.json_normalize(value, max_level=_DEEPEST), [])
        return _bare(path, _array(path, "its list", value))
    except (RecursionError, OverflowError) as error:
        raise DataError(
            f"{path}: no JSON of a log: it is nested too deep, or has too large numbers"
        ) from error


def _json_lines(path: Path, content: str, whole: ValueError) -> list[Any]:
    rows: list[Any] = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except RecursionError as error:
            raise DataError(f"{path}, line {number}: no JSON of a log: it is nested too deep") from error
        except ValueError as error:
            if not rows:  # it is one document of many lines
                raise DataError(f"{path}: no JSON: {one_line(whole)}") from error
            raise DataError(f"{path}, line {number}: no JSON: {one_line(error)}") from error
        if not isinstance(rows[-1], dict):
            raise DataError(f"{path} is no log: each line has to be an object of JSON")
    return rows


def _object(path: Path, value: dict[str, Any], depth: int = 0) -> Table:
    """Table of one object: lists by name; tables by method or seed; or columns as pandas writes them."""
    inner = list(value.values())
    if inner and depth < _DEEPEST and all(isinstance(one, dict) and one for one in inner):
        if len(inner) == 1:
            return _object(path, inner[0], depth + 1)
        if all(one.keys() == inner[0].keys() for one in inner):
            return _objects(path, value, depth)
    leaves = dict(_leaves(value))
    if not any(isinstance(one, list) for one in leaves.values()):
        return Table(pd.json_normalize(value, max_level=_DEEPEST), [])
    return arrays(path, {name: _array(path, name, one) for name, one in leaves.items()})


def _objects(path: Path, value: dict[str, Any], depth: int) -> Table:
    """Table of objects with the same keys."""
    inner = list(value.values())
    scalars = not any(isinstance(one, list | dict) for own in inner for one in own.values())
    if scalars and all(key.isdecimal() for key in inner[0]):
        return Table(pd.DataFrame({name: list(one.values()) for name, one in value.items()}), [])
    column = "method"
    if all(key.isdecimal() for key in value):
        column = "round" if scalars else "seed"
    tables = {key: _object(path, one, depth + 1) for key, one in value.items()}
    if any(column in one.frame for one in tables.values()):
        column = f"{column}_key"
    frames = [one.frame.assign(**{column: key}) for key, one in tables.items()]
    said = dict.fromkeys(text for one in tables.values() for text in one.said)
    return Table(
        pd.concat(frames, ignore_index=True), [*said, f"the keys of its objects are the column {column}"]
    )


def _leaves(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, one in value.items():
        name = f"{above}{key}"
        if isinstance(one, dict) and name.count(".") < _DEEPEST:
            yield from _leaves(one, f"{name}.")
        elif not isinstance(one, dict):
            yield name, one


def _array(path: Path, name: str, value: Any) -> NDArray:
    """Array of a list or a scalar of JSON; null is no number."""
    try:
        array = np.array(value)
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{path}: {name} has lists of different lengths; give each metric its rounds"
        ) from error
    if array.dtype != object:
        return array
    flat = numbers_of(pd.Series(array.ravel(), dtype=object))[0]
    if array.ndim > 1 and flat.dtype == object:
        raise DataError(f"{path}: {name} holds lists of other things than numbers")
    return flat.to_numpy().reshape(array.shape)


# --- Arrays ---


def npy(path: Path, content: bytes) -> Table:
    """Table of an array of numpy."""
    return _bare(path, _npy(path, io.BytesIO(content), path.name))


def npz(path: Path, content: bytes) -> Table:
    """Table of arrays of numpy by name."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        members = {one.filename: one for one in archive.infolist() if one.filename.endswith(".npy")}
        limits.check(path, sum(one.file_size for one in members.values()))
        found: dict[str, NDArray] = {}
        for name, member in members.items():
            with archive.open(member) as stream:
                found[name.removesuffix(".npy")] = _npy(path, stream, name)
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path} is no whole .npz file: {one_line(error)}") from error
    except zipfile.zlib.error as error:  # type: ignore[attr-defined]
        raise DataError(f"{path} is damaged: {one_line(error)}") from error
    return arrays(path, found)


def _npy(path: Path, stream: Any, name: str) -> NDArray:
    """Read an array whose header may ask for more than there is, or for objects, which are pickles."""
    header = np.lib.format
    try:
        version = header.read_magic(stream)
        read = header.read_array_header_1_0 if version == (1, 0) else header.read_array_header_2_0
        shape, fortran, dtype = read(stream)
        if any(one < 0 for one in shape):
            raise ValueError(f"its shape is {shape}")
        count = math.prod(shape)
        limits.check(path, max(_COST, dtype.itemsize) * count, f"the {count:,} values of {name} take")
        if dtype.hasobject:
            raise DataError(
                f"{path}: {name} holds objects, which are a pickle; {cure(f'{path.suffix} of objects', path)}"
            )
        needed = count * dtype.itemsize
        content = stream.read(needed)
        if len(content) < needed:
            raise DataError(f"{path}: {name} is cut off, it has {len(content):,} bytes of {needed:,}")
        return np.frombuffer(content, dtype, count).reshape(shape, order="F" if fortran else "C")
    except DataError:
        raise
    except Exception as error:  # its parser of headers raises what it meets
        raise DataError(f"{path}: {name} is no whole array of numpy: {one_line(error)}") from error


def _bare(path: Path, array: NDArray) -> Table:
    """Table of one array without a name: values, or columns if the first one rises."""
    if array.dtype.names:
        return Table(pd.DataFrame({name: array[name].ravel() for name in array.dtype.names}), [])
    if array.dtype.kind not in "fiub":
        raise DataError(f"{path} holds no numbers")
    if array.ndim == 2 and array.size and are_rounds(array[:, 0].astype(float)) and array.shape[1] > 1:
        return columns_of(array.astype(float))
    return arrays(path, {VALUE: array})


def arrays(path: Path, given: Mapping[str, NDArray]) -> Table:
    """Table of arrays by name: columns (T,), runs (R, T), pairs of round and value, and constants."""
    given = {name: one for name, one in given.items() if one.size}
    limits.check(path, 2 * _COST * sum(one.size for one in given.values()), "joining its arrays takes")
    for name, one in given.items():
        if one.dtype.names or one.ndim > 2:
            raise DataError(f"{path}: {name} has {one.ndim} axes or fields; save one number per round")
    constants = {name: one.item() for name, one in given.items() if one.ndim == 0}
    pairs = {name: one for name, one in given.items() if one.ndim == 2 and _are_pairs(one)}
    lists = {name: one for name, one in given.items() if one.ndim == 1}
    runs = {name: one for name, one in given.items() if one.ndim == 2 and name not in pairs}
    said: list[str] = []
    if pairs and not lists and not runs:
        series = {name: pd.Series(one[:, 1], one[:, 0].astype("int64")) for name, one in pairs.items()}
        frame = pd.DataFrame(series).rename_axis("round").reset_index()
    elif lists or runs or pairs:
        frame = _stacked(path, lists, {**runs, **pairs}, said)
    else:
        raise DataError(f"{path} holds no list of numbers")
    if not meanings.find("round", frame):
        frame.insert(0, LINE, frame.groupby(ROW).cumcount() if ROW in frame else np.arange(len(frame)))
        said.append(f"no rounds: {LINE} numbers the values")
    free = {name: value for name, value in constants.items() if name not in frame}
    return Table(frame.assign(**free), said)


def _are_pairs(array: NDArray) -> bool:
    return array.shape[1] == 2 and array.dtype.kind in "fiu" and are_rounds(array[:, 0].astype(float))


def _stacked(path: Path, lists: Mapping[str, NDArray], runs: Mapping[str, NDArray], said: list[str]) -> Any:
    """Frame of lists of one length, or of runs in the rows of arrays, with their rounds."""
    sizes = {name: one.shape for name, one in {**lists, **runs}.items()}
    if not runs:
        if len(set(sizes.values())) > 1:
            named = ", ".join(f"{name} {shape[0]}" for name, shape in list(sizes.items())[:5])
            raise DataError(f"{path}: its lists have different lengths ({named}); give each its rounds")
        return pd.DataFrame({name: np.asarray(one) for name, one in lists.items()})
    rows, columns = shape = next(iter(runs.values())).shape
    lengths = {len(one) for one in lists.values()}
    if any(one.shape != shape for one in runs.values()) or lengths - {rows, columns}:
        named = ", ".join(f"{name} {list(one)}" for name, one in list(sizes.items())[:5])
        raise DataError(f"{path}: its arrays do not fit together ({named}); save one run per file")
    stated = meanings.find("round", lists)
    turned = len(lists[stated[0]]) != columns if stated else rows > columns and lengths != {columns}
    if turned:
        runs = {name: one.T for name, one in runs.items()}
        rows, columns = columns, rows
    said.append(f"each {'column' if turned else 'row'} of its arrays is a run, by {ROW}")
    frame = {ROW: np.repeat(np.arange(1, rows + 1), columns)}
    for name, one in lists.items():
        # A list that could be of either is of rounds.
        frame[name] = np.tile(one, rows) if len(one) == columns else np.repeat(one, columns)
    return pd.DataFrame(frame | {name: one.ravel() for name, one in runs.items()})


# --- Parquet and events ---


def parquet(path: Path, content: bytes) -> Table:
    """Table of a parquet file, with its index."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
        limits.check(path, sum(group.total_byte_size for group in groups))
        values = file.metadata.num_rows * file.metadata.num_columns
        limits.check(path, _COST * values, f"its {values:,} values take")
        frame = file.read().to_pandas()
        frame = frame.reset_index(drop=isinstance(frame.index, pd.RangeIndex) and frame.index.name is None)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise DataError(f"{path} is no whole parquet file: {one_line(error)}") from error
    frame.columns = [str(name) for name in frame]
    return Table(frame, [])


def events(path: Path) -> Table:
    """Scalars of an event file: one line per step, one column per tag."""
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        raise ConfigError(
            f"{path}: TensorBoard's event files need its reader: pip install 'replifed[tensorboard]'"
        ) from error
    try:
        read = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        columns = {tag: {one.step: one.value for one in read.Scalars(tag)} for tag in read.Tags()["scalars"]}
        for tag in set(read.Tags()["tensors"]) - set(columns):  # as writers since version 2 store scalars
            values = ((one.step, _scalar(one.tensor_proto)) for one in read.Tensors(tag))
            columns[tag] = {step: value for step, value in values if value is not None}
    except Exception as error:  # its parser raises what it meets
        raise DataError(f"{path} is no event file of TensorBoard: {one_line(error)}") from error
    frame = pd.DataFrame({tag: values for tag, values in columns.items() if values}).rename_axis("step")
    if frame.empty:
        raise DataError(f"{path} holds no scalars")
    return Table(frame.sort_index().reset_index(), [])


def _scalar(tensor: object) -> float | None:
    from tensorboard.util import tensor_util

    array = tensor_util.make_ndarray(tensor)
    return float(array) if array.ndim == 0 and array.dtype.kind in "fiu" else None
