"""Meanings of the columns of the CSV and parquet files, from `columns.yaml` here and in papers' folders."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from replifed.parts import folder_of, paper_names

_FILE = Path(__file__).with_suffix(".yaml")
_BETTER = {"": "", "lower": "↓", "fewer": "↓", "higher": "↑", "more": "↑", "nearer to 0": "→ 0"}
_HEAD = """\
# Columns

What the columns of the CSV and parquet files under `figures/` and `results/` mean. Brackets hold the unit,
and ↓ if lower or fewer is better, ↑ if higher or more is, → 0 if nearer to 0 is. `replifed columns FILE`
prints the columns of one file, with those that only the paper's own files have:

```
replifed columns figures/fedht/fig3.csv
```

For the files that a heading below names, the meaning there applies.

## In all files

"""


class Column(NamedTuple):
    """Meaning of a column."""

    meaning: str
    unit: str = ""
    better: str = ""


@cache
def _entries() -> tuple[dict[str, Column], dict[str, dict[str, Column]]]:
    """Columns of all files, and those of files by pattern."""
    content: Mapping[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    patterns = dict(content["files"])
    for file in (folder_of(paper) / _FILE.name for paper in paper_names()):
        patterns |= yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    files = {pattern: _columns(pattern, entries) for pattern, entries in patterns.items()}
    return _columns("columns", content["columns"]), files


def _columns(place: str, entries: Mapping[str, list[str]]) -> dict[str, Column]:
    columns = {name: Column(*map(str, entry)) for name, entry in entries.items()}
    for name, column in columns.items():
        if column.better not in _BETTER:
            raise ValueError(f"{place}: {name}: {column.better!r} is none of {', '.join(_BETTER)}")
    return columns


def column(file: str, name: str) -> Column | None:
    """Meaning of a column of a file; the file is without its scale, such as ``results/claims.csv``."""
    shared, files = _entries()
    meaning = _named(name, shared)
    for pattern, overrides in files.items():
        if fnmatchcase(file, pattern):
            meaning = _named(name, overrides) or meaning
    return meaning


def _named(name: str, columns: Mapping[str, Column]) -> Column | None:
    if name in columns:
        return columns[name]
    return next((column for pattern, column in columns.items() if fnmatchcase(name, pattern)), None)


def names_in(folder: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the CSV and parquet files in a folder, called `name`, but for benchmarks, with their columns."""
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        if any(part.startswith(".") or part == "benchmarks" for part in path.parts):
            continue
        if file.suffix in (".csv", ".parquet"):
            yield f"{name}/{path.as_posix()}", names_of(file)


def names_of(file: Path) -> list[str]:
    """Names of the columns of a CSV or parquet file."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_schema(file).names
    with file.open(encoding="utf-8", newline="") as lines:
        return next(csv.reader(lines), [])


def unknown(results: Path, figures: Path) -> list[str]:
    """Columns of the files of a run that have no entry, a line each."""
    folders = names_in(results, "results"), names_in(figures, "figures")
    return [
        f"{file}: {name}"
        for folder in folders
        for file, names in folder
        for name in names
        if column(file, name) is None
    ]


def page() -> str:
    """Text of docs/columns.md: all but the columns that a paper's own files have."""
    content = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    parts = [_HEAD, _list(_entries()[0])]
    for pattern, entries in content["files"].items():
        parts += [f"\n## `{pattern}`\n\n", _list(_columns(pattern, entries))]
    return "".join(parts)


def _list(columns: Mapping[str, Column]) -> str:
    """Markdown list in which each meaning stands once, behind all columns that have it."""
    named: dict[Column, list[str]] = {}
    for name, one in columns.items():
        named.setdefault(one, []).append(f"`{name}`")
    return "".join(f"- {', '.join(names)}: {_in_words(one)}\n" for one, names in named.items())


def _in_words(column: Column) -> str:
    """A meaning, and in brackets its unit, unless it names that, and which end is better."""
    unit = column.unit if column.unit not in column.meaning else ""
    more = " ".join(filter(None, (unit, _BETTER[column.better])))
    return f"{column.meaning} ({more})" if more else column.meaning
