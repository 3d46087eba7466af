"""Log files: which ones a pattern names, and the table in each, whatever its form."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from replifed.claims.tables import is_number
from replifed.errors import ConfigError, DataError, meant, one_line
from replifed.store import limits

if TYPE_CHECKING:
    import pandas as pd

# A longer line is no line of a log.
_LONGEST = 1 << 16
_SEPARATORS = ",", "\t", ";"
EVENTS = "tfevents"  # in the names of TensorBoard's files
_LIST = re.compile(r"\s*\[\s*[{\]]")  # a list of objects; a time may stand in brackets, too
_NO_NUMBER = {"nan", "none", "null", "na", "n/a", ""}


class Log(NamedTuple):
    """A file, with what its name says."""

    path: Path
    named: dict[str, str]  # method and seed, where the pattern has them in braces


def find(folder: Path, patterns: str | Iterable[str]) -> list[Log]:
    """Return the files that a pattern, or several, name in a folder, sorted; each once, by the first.

    Raises
    ------
    DataError
        A pattern is none, or names no file, or one outside the folder.
    """
    found: dict[Path, Log] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        try:
            compiled = re.compile("".join(expression(pattern)))
            paths = sorted(path for path in folder.glob(_globbed(pattern)) if path.is_file())
            if not is_hidden(pattern):
                paths = [path for path in paths if not is_hidden(_name(path, folder))]
        except (ValueError, NotImplementedError, IndexError, re.error) as error:
            raise DataError(f"logs: {pattern!r} is no pattern of files: {one_line(error)}") from error
        matches = ((path, compiled.fullmatch(_name(path, folder))) for path in paths)
        logs = [Log(path, match.groupdict()) for path, match in matches if match]
        if not logs:
            there = {_name(path, folder) for path in folder.rglob("*") if path.is_file()}
            raise DataError(f"logs: {pattern} matches no file in {folder}{meant(pattern, there)}")
        for log in logs:
            if not log.path.resolve().is_relative_to(folder.resolve()):
                raise DataError(f"{log.path} leaves the folder of the paper; put the log itself there")
            found.setdefault(log.path, log)
    return list(found.values())


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _globbed(pattern: str) -> str:
    """Return a pattern for `Path.glob`, which takes more and more of `**` from one Python to the next."""
    taken = re.sub(r"\{.*?\}", "*", pattern)
    *folders, file = taken.split("/")
    if "**" in file or any("**" in part and part != "**" for part in folders):
        raise ValueError("two wildcards stand side by side; ** is for folders, as in **/*.csv")
    return taken


def is_hidden(name: str) -> bool:
    """Return True if a file, or a folder above it, begins with a dot, such as a notebook's copies."""
    return any(part.startswith(".") for part in name.split("/"))


def expression(pattern: str) -> Iterator[str]:
    """Yield the parts of the regular expression of a pattern; names in braces are as short as can be."""
    for part in re.split(r"(\{.*?\}|\*\*/|\*|\?)", pattern):
        if part.startswith("{"):
            yield f"(?P<{part[1:-1]}>[^/]+?)"
        else:
            yield {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))


def read(path: Path) -> pd.DataFrame:
    """Read the table in a log: CSV, with lines before it or not, JSON lines, parquet, TensorBoard's events.

    Raises
    ------
    DataError
        It is empty, damaged, too large, no log, or was written to meanwhile.
    """
    with limits.limit(limits.DEFAULT, "keep fewer lines or columns of it"):
        return _read(path)


def _read(path: Path) -> pd.DataFrame:
    try:
        before = path.stat()
        limits.check(path, before.st_size, "reading it takes")
        content = path.read_bytes()
        after = path.stat()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    sizes = {before.st_size, after.st_size, len(content)}
    if len(sizes) > 1 or before.st_mtime_ns != after.st_mtime_ns:
        raise DataError(f"{path} changed while it was read; wait until its run has ended")
    if not content.strip():
        raise DataError(f"{path} is empty")
    if EVENTS in path.name:
        return _events(path)
    frame = _parquet(path, content) if path.suffix == ".parquet" else _text(path, content)
    if frame.empty:
        raise DataError(f"{path} has no line but its header")
    return frame


def _text(path: Path, content: bytes) -> pd.DataFrame:
    limits.check_text(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise DataError(
            f"{path} is no log: neither text in UTF-8, nor named .parquet or *{EVENTS}*; "
            "unpack it, or save it in UTF-8"
        )
    lines, listed = text.splitlines(), _LIST.match(text) is not None
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST and not listed:
            raise DataError(f"{path} is no log: line {number} has {len(line):,} letters")
    return _json(path, lines, listed) if listed or text.lstrip()[:1] == "{" else _csv(path, lines)


def _json(path: Path, lines: list[str], listed: bool) -> pd.DataFrame:
    import pandas as pd

    text = "\n".join(lines)
    parts = {1: text} if listed else {number: one for number, one in enumerate(lines, 1) if one.strip()}
    rows: list[Any] = []
    for number, part in parts.items():
        try:
            rows.append(json.loads(part))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: no JSON: {one_line(error)}") from error
    rows = rows[0] if listed else rows
    if not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path} is no log: each line has to be an object of JSON")
    return pd.json_normalize(rows)


def _csv(path: Path, lines: list[str]) -> pd.DataFrame:
    """Table of a text; of lines that could be its header, that above most lines of as many fields."""
    import pandas as pd

    start, separator = max(_headers(lines), key=lambda one: _length(lines, *one), default=(0, ""))
    if not separator:
        raise DataError(
            f"{path} is no log: no line is a header, with two names or more and numbers below them"
        )
    text = "\n".join([lines[start].lstrip("# "), *lines[start + 1 :]])
    names = [name.strip() for name in _fields(lines[start].lstrip("# "), separator)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{path}, line {start + 1} names the column {twice[0]} twice; rename one")
    count = len(names)
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if line.strip() and len(_fields(line, separator)) != count:
            raise DataError(f"{path}, line {number} has not {count} fields as its header; was it cut off?")
    # A word such as None may be a method's name: it is no number in a column of numbers alone.
    options = {"keep_default_na": False, "na_values": [""], "skipinitialspace": True, "low_memory": False}
    try:
        frame = pd.read_csv(io.StringIO(text), sep=separator, **options)
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"{path}, below line {start + 1}: {one_line(error)}") from error
    frame.columns = [name or given for name, given in zip(names, frame.columns, strict=True)]
    return frame.apply(numbers_of)


def numbers_of(values: pd.Series) -> pd.Series:
    """Return texts as numbers if they are numbers, and words for none; else as they are."""
    import pandas as pd

    if values.dtype.kind not in "OTU":
        return values
    if len(spoilt(values)):
        return values
    numbers = pd.to_numeric(values, errors="coerce")
    return numbers if numbers.notna().any() else values


def spoilt(values: pd.Series) -> pd.Series:
    """Values that are neither numbers nor words for none: texts, and complex numbers, times and dates."""
    import pandas as pd

    if values.dtype.kind in "cmM":
        return values.dropna()
    lost = values[pd.to_numeric(values, errors="coerce").isna() & values.notna()]
    return lost[~lost.astype(str).str.strip().str.lower().isin(_NO_NUMBER)]


def _headers(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines that could be a header, with their separator: names, and as many fields below, one a number."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for number, below in pairwise(filled):
        separator = max(_SEPARATORS, key=lines[number].count)
        names, values = (_fields(lines[one], separator) for one in (number, below))
        if len(names) > 1 and not names[0].strip():
            names[0] = "index"  # as pandas writes it, without a name
        texts = len(names) > 1 and all(name.strip() and not is_number(name) for name in names)
        if texts and len(names) == len(values) and any(map(is_number, values)):
            yield number, separator


def _length(lines: list[str], start: int, separator: str) -> int:
    """Number of lines from a header on that have as many fields."""
    count = len(_fields(lines[start], separator))
    return sum(1 for _ in takewhile(lambda line: len(_fields(line, separator)) == count, lines[start:]))


def _fields(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator), [])


def _parquet(path: Path, content: bytes) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
        limits.check(path, sum(group.total_byte_size for group in groups))
        values = file.metadata.num_rows * file.metadata.num_columns
        limits.check(path, 8 * values, f"its {values:,} values take")
        frame = file.read().to_pandas()
        return frame.reset_index(drop=isinstance(frame.index, pd.RangeIndex) and frame.index.name is None)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} is no whole parquet file: {one_line(error)}") from error


def _events(path: Path) -> pd.DataFrame:
    """Scalars of an event file: a line a step, a column a tag."""
    import pandas as pd

    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        raise ConfigError(
            f"{path}: TensorBoard's event files need its reader: pip install 'replifed[tensorboard]'"
        ) from error
    try:
        events = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        columns = {
            tag: {one.step: one.value for one in events.Scalars(tag)} for tag in events.Tags()["scalars"]
        }
        for tag in set(events.Tags()["tensors"]) - set(columns):  # as writers since version 2 store scalars
            values = ((one.step, _scalar(one.tensor_proto)) for one in events.Tensors(tag))
            columns[tag] = {step: value for step, value in values if value is not None}
    except Exception as error:  # its parser raises what it meets
        raise DataError(f"{path} is no event file of TensorBoard: {one_line(error)}") from error
    frame = pd.DataFrame({tag: values for tag, values in columns.items() if values}).rename_axis("step")
    if frame.empty:
        raise DataError(f"{path} holds no scalars")
    return frame.sort_index().reset_index()


def _scalar(tensor: object) -> float | None:
    from tensorboard.util import tensor_util

    array = tensor_util.make_ndarray(tensor)
    return float(array) if array.ndim == 0 and array.dtype.kind in "fiu" else None
