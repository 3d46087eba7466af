"""The table in a log: one function for each form of file, and what each had to do for it."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.tables import is_number
from replifed.errors import ConfigError, DataError, one_line
from replifed.logs import meanings
from replifed.logs.meanings import LINE, ROW, VALUE
from replifed.logs.unopened import cure
from replifed.logs.values import floats, numbers_of
from replifed.store import limits

# A longer line is no line of a log.
_LONGEST = 1 << 16
_SPACES = " "  # any number of blanks
_SEPARATORS = ",", "\t", ";"
# Bytes of memory for a value of an array or of parquet, or a letter of JSON, in tables that are joined.
_COST = 64
_LEAST_ROUNDS = 3  # in a header of rounds
_DEEPEST = 8  # of objects within objects of JSON


class Table(NamedTuple):
    """The lines of a log, and in words what was done for them."""

    frame: pd.DataFrame
    said: list[str]


# --- Text ---


def text(path: Path, content: str) -> Table:
    """Table of a text: JSON, or lines of values below a header, a row of rounds, or none."""
    start = content.lstrip()[:1]
    if start == "{" or (start == "[" and not _is_stamp(content)):
        limits.check(path, _COST * len(content), "reading it takes")
        return _json(path, content)
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST:
            raise DataError(f"{path} is no log: line {number} has {len(line):,} letters")
    found = _under_header(path, lines) or _under_rounds(lines) or _without_header(path, lines)
    if found is None:
        raise DataError(
            f"{path} is no log: no line is a header, with two names or more and numbers below them, and "
            "its lines are no table of numbers alone"
        )
    return found


def _is_stamp(content: str) -> bool:
    """Return True if a text begins with words or a time in brackets."""
    try:
        json.loads(content)
    except ValueError:
        return not re.match(r"\s*\[\s*[\[{]", content)
    except RecursionError:
        pass
    return False


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
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for number, below in pairwise(filled):
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
    filled = [line for line in lines if line.strip()]
    if not filled:
        return None
    separator = _separator(filled[0])
    header, *rows = (_fields(line, separator) for line in filled)
    named = next((place for place, field in enumerate(header) if is_number(field)), len(header))
    rounds = header[named:]
    if not rows or any(len(row) != len(header) for row in rows) or not _rise(rounds, _LEAST_ROUNDS):
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
    return bool(np.isfinite(numbers).all() and (numbers % 1 == 0).all() and _are_rounds(numbers))


def _are_rounds(numbers: NDArray) -> bool:
    with np.errstate(invalid="ignore"):
        return bool((numbers >= 0).all() and (numbers % 1 == 0).all() and (np.diff(numbers) > 0).all())


def _without_header(path: Path, lines: list[str]) -> Table | None:
    """Lines of numbers alone, perhaps below one name or comments."""
    filled = [(number, line) for number, line in enumerate(lines) if line.strip() and line[:1] != "#"]
    name = VALUE
    if len(filled) > 1 and not is_number(filled[0][1]) and is_number(filled[1][1]):
        name, filled = filled[0][1].strip(), filled[1:]
    if not filled:
        return None
    separator, wanted = _separator(filled[0][1]), 0
    for number, line in filled:
        fields = _fields(line, separator)
        if not all(is_number(field) or field.strip().lower() in ("", "nan", "none") for field in fields):
            return None
        wanted = wanted or len(fields)
        if len(fields) != wanted:
            raise DataError(
                f"{path}, line {number + 1} has not {wanted} fields as the first; was it cut off?"
            )
    frame = _parsed(path, [line for _, line in filled], separator, wanted, 0)
    return _columns_of(frame.apply(floats).to_numpy(), name)


def _columns_of(array: NDArray, name: str = VALUE) -> Table:
    """Columns (T, C) without names: the first is the round if it rises, and one other the value."""
    count = array.shape[1]
    if count == 1:
        said = f"no rounds: {LINE} numbers the values" + f", which are called {name}" * (name == VALUE)
        return Table(pd.DataFrame({LINE: np.arange(len(array)), name: array[:, 0]}), [said])
    names = [f"column_{place}" for place in range(1, count + 1)]
    if _are_rounds(array[:, 0]):
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
            counts = (len(_fields(line.lstrip("# "), separator)) for line in self._lines)
            self._by[separator] = np.fromiter(counts, np.int32, len(self._lines))
            changes = np.flatnonzero(np.diff(self._by[separator])) + 1
            self._ends[separator] = np.append(changes, len(self._lines))
        return self._by[separator]

    def below(self, start: int, separator: str) -> int:
        """Return the number of lines from one on that have as many fields."""
        self.by(separator)
        ends = self._ends[separator]
        return int(ends[np.searchsorted(ends, start, side="right")]) - start


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
        return pd.read_csv(io.StringIO("\n".join(lines)), **options)
    except (ValueError, OverflowError, pd.errors.ParserError) as error:
        raise DataError(f"{path}, below line {below}: {one_line(error)}") from error


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
    if array.ndim == 2 and array.size and _are_rounds(array[:, 0].astype(float)) and array.shape[1] > 1:
        return _columns_of(array.astype(float))
    return arrays(path, {VALUE: array})


def arrays(path: Path, given: Mapping[str, NDArray]) -> Table:
    """Table of arrays by name: columns (T,), runs (R, T), pairs of round and value, and constants."""
    given = {name: one for name, one in given.items() if one.size}
    limits.check(path, 2 * _COST * sum(one.size for one in given.values()), "joining its arrays takes")
    for name, one in given.items():
        if one.dtype.names or one.ndim > 2:
            raise DataError(f"{path}: {name} has {one.ndim} axes or fields; save one number a round")
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
    return array.shape[1] == 2 and array.dtype.kind in "fiu" and _are_rounds(array[:, 0].astype(float))


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
        raise DataError(f"{path}: its arrays do not fit together ({named}); save one run a file")
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
    """Scalars of an event file: a line a step, a column a tag."""
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
