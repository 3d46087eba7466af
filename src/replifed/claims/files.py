"""Files of claims: reading, joining, and showing them on a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from replifed.claims import scores, tables
from replifed.claims.claim import BASES
from replifed.claims.verdicts import COLUMNS, VERDICTS
from replifed.errors import ConfigError, DataError, counted, unknown_name


def read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read a file of claims, every field as text; a file of another kind is an error."""
    rows = tables.read(path, COLUMNS, "holds no claims")
    for row in rows:
        fine = row["verdict"] in VERDICTS and row["basis"] in BASES and row["nearness"].isdecimal()
        if not fine:
            raise DataError(f"{os.fspath(path)} is damaged: verdict, basis or nearness of {row['id']}")
    return rows


def collect(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Join the claims of several papers into one file, in the order given; return its rows."""
    rows = [row for file in files for row in read(file)]
    for name, count in Counter(row["id"] for row in rows).items():
        if count > 1:
            raise DataError(f"two claims are called {name}")
    tables.write(out, COLUMNS, rows)
    return rows


_COLOURS = {"reproduced": "32", "consistent": "36", "deviates": "31", "inconclusive": "33", "unchecked": "90"}
MARKS = {"reproduced": "✓", "consistent": "≈", "deviates": "✗", "inconclusive": "?", "unchecked": "–"}


def show(path: str | os.PathLike[str], paper: str | None = None, verdict: str | None = None) -> None:
    """Print the claims of a file, verdict first, and the scores of claims and statements.

    With `paper` or `verdict` only theirs; in colours on a terminal, unless NO_COLOR is set.
    """
    rows = read(path)
    check_names(paper, verdict, {row["paper"] for row in rows})
    rows = [row for row in rows if paper in (None, row["paper"])]
    shown = [row for row in rows if verdict in (None, row["verdict"])]
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def paint(text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if coloured else text

    for row in shown:
        name = row["verdict"]
        parts = [row["id"], number_text(row), f"[{row['data']}, {row['scale']}]"]
        print(paint(f"{MARKS[name]} {name:12}", _COLOURS[name]), "  ".join(filter(None, parts)))
        for line in textwrap.wrap(row["statement"], 100):
            print(f"    {line}")
        for line in textwrap.wrap(row["note"], 100) if name in ("deviates", "inconclusive") else ():
            print(paint(f"    {line}", "90"))
    counts = Counter(row["verdict"] for row in rows)
    total = ", ".join(paint(f"{counts[name]} {name}", _COLOURS[name]) for name in VERDICTS)
    print(f"\n{counted(len(rows), 'claim')}: {total}")
    statuses = Counter(one["status"] for one in scores.statements(rows))
    read_as = "by the reading nearest to the text"
    print(f"{counted(statuses.total(), 'statement')}, {read_as}: {scores.in_words(statuses)}")
    if any(row["kind"] == "order" for row in rows):
        print(scores.chance_in_words(rows))


def check_names(paper: str | None, verdict: str | None, papers: Iterable[str]) -> None:
    """Reject a paper that is not among `papers`, and an unknown verdict."""
    for kind, name, known in (("verdict", verdict, VERDICTS), ("paper", paper, papers)):
        if name is not None and name not in known:
            raise ConfigError(unknown_name(kind, name, known))


def number_text(row: dict[str, str]) -> str:
    """Published and measured numbers of a line of claims.csv in a few words."""

    def short(text: str) -> str:
        return f"{float(text):.4g}"

    if not row["measured"]:
        return ""
    if row["kind"] == "identity" and not row["published"] and float(row["measured"]) == 1:
        return "holds"
    if row["kind"] == "shape" or (row["kind"] == "identity" and not row["published"]):
        return f"holds in {100 * float(row['measured']):.4g} %"
    interval = f" [{short(row['ci_low'])}, {short(row['ci_high'])}]" if row["ci_low"] else ""
    order = row["kind"] == "order"
    published = f"published {'above ' * order}{short(row['published'])}" if row["published"] else ""
    tolerance = f" ± {short(row['tolerance'])}" if row["tolerance"] and published and not order else ""
    what = "difference" if order and not published else "measured"
    return "  ".join(filter(None, [published + tolerance, f"{what} {short(row['measured'])}{interval}"]))
