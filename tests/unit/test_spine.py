"""The reading list for a new engineer: what it names is there, and is as long as it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "spine.md").read_text(encoding="utf-8")
MOST = 2500
_ROW = re.compile(r"^\| \[.*?\]\((.*?)\) \| (.*?) \| (\d+) \| .+ \|$", re.MULTILINE)


class Row(NamedTuple):
    """A file, the names to read in it (all of it without names), and the lines that the page states."""

    file: str
    names: list[str]
    stated: int


ROWS = [Row(file, re.findall("`(.*?)`", names), int(lines)) for file, names, lines in _ROW.findall(PAGE)]


def lengths(source: str) -> dict[str, int]:
    """Return the lines of each function, class, method and constant of a module, by name."""
    found = {}
    for node in ast.parse(source).body:
        inner = [one for one in getattr(node, "body", ()) if isinstance(node, ast.ClassDef)]
        for prefix, one in [("", node), *((f"{node.name}.", one) for one in inner)]:
            targets = getattr(one, "targets", [getattr(one, "target", None)])
            names = [getattr(one, "name", None), *(getattr(target, "id", None) for target in targets)]
            first = min([one.lineno, *(part.lineno for part in getattr(one, "decorator_list", ()))])
            found |= {f"{prefix}{name}": one.end_lineno - first + 1 for name in names if name}
    return found


def counted(row: Row) -> int:
    source = (DOCS / row.file).read_text(encoding="utf-8")
    if not row.names:
        return len(source.splitlines())
    known = lengths(source)
    assert [name for name in row.names if name not in known] == [], f"not in {row.file}"
    return sum(known[name] for name in row.names)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file.rpartition("replifed/")[2])
def test_what_a_row_names_is_there_and_as_long_as_it_says(row):
    lines = counted(row)
    assert abs(row.stated - lines) <= max(10, lines / 10), f"docs/spine.md: {row.file} has {lines} lines"


def test_every_row_is_read_here_and_all_of_them_in_an_afternoon():
    assert len(ROWS) == PAGE.count("\n| [") > 25
    assert sum(map(counted, ROWS)) <= MOST
    assert f"**In all: {sum(row.stated for row in ROWS)} lines.**" in PAGE
