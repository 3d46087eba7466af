"""Files of claims: reading, joining, and showing them on a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from replifed.claims import rules, scores, tables
from replifed.claims.axes import SOURCES
from replifed.claims.folders import own_files
from replifed.claims.rules import VERDICTS
from replifed.claims.verdicts import ADDED, COLUMNS, NUMERIC
from replifed.errors import ConfigError, DataError, counted, unknown_name


def read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read a file of claims, every field as text; a file of another kind is an error."""
    rows = tables.read(path, COLUMNS, "holds no claims", ADDED)
    for row in rows:
        if row["verdict"] not in VERDICTS or row["source"] not in SOURCES:
            raise DataError(f"{os.fspath(path)} is damaged: verdict or source of {row['id']}")
        if wrong := next((name for name in NUMERIC if row[name] and not tables.is_number(row[name])), None):
            raise DataError(f"{os.fspath(path)} is damaged: {wrong} of {row['id']} is no number")
    return rows


def of_folder(results: Path, papers: Collection[str] | None = None) -> list[dict[str, str]]:
    """Read the claims in a folder of results: of each paper those of its own file, or else of the joint one.

    The joint file, made later of the papers' own, may be missing, or older than one of these. Own files count
    of `papers`, by default of all.
    """
    joint = results / "claims.csv"
    found: dict[str, list[dict[str, str]]] = {}
    for row in read(joint) if joint.is_file() else ():
        found.setdefault(row["paper"], []).append(row)
    for paper, file in own_files(results).items():
        if papers is None or paper in papers:
            found[paper] = [row for row in read(file) if row["paper"] == paper]
    return [row for rows in found.values() for row in rows]


def collect(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Join the claims of several papers into one file, in the order given; return its rows."""
    rows = [row for file in files for row in read(file)]
    for name, count in Counter(row["id"] for row in rows).items():
        if count > 1:
            raise DataError(f"two claims are called {name}")
    tables.write(out, COLUMNS, rows)
    return rows


_COLOURS = {
    rules.NOT_YET: "90",
    **{"holds": "32", "fails": "31", "inconclusive": "33", "unchecked": "90"},
    **{"reproduced": "32", "conditional": "36", "deviates": "31", "untestable": "90"},
}
MARKS = {
    rules.NOT_YET: "–",
    **{"holds": "✓", "fails": "✗", "inconclusive": "?", "unchecked": "–"},
    **{"reproduced": "✓", "conditional": "≈", "deviates": "✗", "untestable": "–"},
}
# By which claims may be chosen: their verdicts, and the statuses of their statements.
NAMES = tuple(dict.fromkeys((*VERDICTS, *scores.STATUSES)))


def show(
    rows: Sequence[Mapping[str, str]],
    paper: str | None = None,
    verdict: str | None = None,
    main: bool = False,
) -> None:
    """Print the main claims with their status, then all claims, main ones first, and the score.

    With `paper` only its own; with `verdict` the claims of that verdict, and those on statements of that
    status; with `main` no others than the main claims. In colours on a terminal, unless NO_COLOR is set.
    """
    check_names(paper, verdict, {row["paper"] for row in rows})
    rows = [row for row in rows if paper in (None, row["paper"])]
    statements = scores.statements(rows)
    statuses = {one["statement_id"]: one["status"] for one in statements}
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def paint(text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if coloured else text

    for one in filter(scores.is_main, statements):
        status = one["status"]
        if verdict in (None, status):
            mark = paint(f"{MARKS[status]} {status:12}", _COLOURS[status])
            print(mark, f"main claim {one['statement_id']}")
            for line in textwrap.wrap(one["statement"], 100):
                print(f"    {line}")
    for row in sorted(rows, key=lambda row: not row["main"]):
        name = row["verdict"]
        if verdict not in (None, name, statuses.get(row["statement_id"])) or (main and not row["main"]):
            continue
        parts = [row["id"], number_text(row), f"[{row['data']}, {row['scale']}]"]
        print(paint(f"{MARKS[name]} {name:12}", _COLOURS[name]), "  ".join(filter(None, parts)))
        for line in textwrap.wrap(row["statement"], 100):
            print(f"    {line}")
        for line in textwrap.wrap(remarks(row), 100) if _is_explained(row) else ():
            print(paint(f"    {line}", "90"))
    counts = Counter(row["verdict"] for row in rows)
    total = ", ".join(paint(f"{counts[name]} {name}", _COLOURS[name]) for name in VERDICTS)
    print("", f"{counted(len(rows), 'claim')}: {total}", *scores.in_lines(statements), sep="\n")
    if any(row["kind"] == "order" for row in rows):
        print(scores.chance_in_words(rows))


def _is_explained(row: Mapping[str, str]) -> bool:
    """Whether the reason says more than the verdict: what is off, or the rule that gives a table."""
    return row["verdict"] in ("fails", "inconclusive") or (row["kind"], row["verdict"]) == (
        "printed",
        "holds",
    )


def check_names(paper: str | None, verdict: str | None, papers: Iterable[str]) -> None:
    """Reject a paper that is not among `papers`, and what is neither a verdict nor a status."""
    for kind, name, known in (("verdict", verdict, NAMES), ("paper", paper, papers)):
        if name is not None and name not in known:
            raise ConfigError(unknown_name(kind, name, known))


def remarks(row: Mapping[str, str]) -> str:
    """Reason of a verdict, if the file has it, and what is noted beside it."""
    return "; ".join(filter(None, (row.get("reason"), row["note"])))


def number_text(row: Mapping[str, str]) -> str:
    """Published and measured numbers of a line of claims.csv in a few words."""

    def short(text: str) -> str:
        return f"{float(text):.4g}"

    if not row["measured"]:
        return ""
    if row["kind"] == "identity" and not row["published"] and float(row["measured"]) == 1:
        return "holds"
    if row["kind"] == "printed" and not row["published"]:
        return f"gives {100 * float(row['measured']):.4g} % of the numbers"
    if row["kind"] == "shape" or (row["kind"] == "identity" and not row["published"]):
        return f"holds in {100 * float(row['measured']):.4g} %"
    ends = ("pi_low", "pi_high") if row["pi_low"] else ("ci_low", "ci_high")
    interval = f" [{', '.join(short(row[end]) for end in ends)}]" if row[ends[0]] else ""
    order = row["kind"] == "order"
    published = f"published {'above ' * order}{short(row['published'])}" if row["published"] else ""
    tolerance = f" ± {short(row['tolerance'])}" if row["tolerance"] and published and not order else ""
    what = "difference" if order and not published else "measured"
    return "  ".join(filter(None, [published + tolerance, f"{what} {short(row['measured'])}{interval}"]))
