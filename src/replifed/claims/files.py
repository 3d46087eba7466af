"""Files of claims: reading, joining, and showing them on a terminal."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from replifed.claims import rules, scores, tables
from replifed.claims.axes import SOURCES
from replifed.claims.evidence import ON
from replifed.claims.rules import VERDICTS
from replifed.claims.verdicts import ADDED, COLUMNS, NUMERIC
from replifed.errors import ConfigError, DataError, counted, unknown_name


def read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read a file of claims, every field as text; a file of another kind is an error."""
    rows = tables.read(path, COLUMNS, "holds no claims", ADDED)
    for row in rows:
        known = row["verdict"] in VERDICTS and row["source"] in SOURCES and row["data"] in ON
        if not known:
            raise DataError(f"{os.fspath(path)} is damaged: verdict, source or data of {row['id']}")
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


# Of a shape or an identity, `rules` count the cases and say the share that is asked for.
_CASES = re.compile(r"it is true in (?:at most )?(.*) cases; the claim needs (.*)")
_COLOURS = {
    rules.NOT_YET: "90",
    **{"holds": "32", "fails": "31", "inconclusive": "33", "unchecked": "90"},
    **{"reproduced": "32", "conditional": "36", "deviates": "31", "untestable": "90"},
}
MARKS = {
    rules.NOT_YET: "·",
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
    everything: bool = False,
) -> None:
    """Print the score and, of what is asked for, each statement with its status, or each claim.

    Without a choice the score of each paper; with `paper` also its main claims; with `main` the main claims
    alone; with `verdict` the statements of that status, or the claims of that verdict; with `everything`
    each claim. Lines are as wide as the terminal, in colours unless NO_COLOR is set.
    """
    check_names(paper, verdict, {row["paper"] for row in rows})
    rows = [row for row in rows if paper in (None, row["paper"])]
    statements = scores.statements(rows)
    chosen = [one for one in statements if scores.is_main(one) or not main]
    if verdict in VERDICTS and verdict not in scores.STATUSES:
        everything = True
    if everything:
        _show_claims([row for row in rows if row["main"] or not main], statements, verdict)
    elif main or verdict or paper:
        short = [one for one in chosen if verdict or main or scores.is_main(one)]
        _show_statements([one for one in short if verdict in (None, one["status"])], cut=paper is None)
    else:
        _show_papers(statements)
    print()
    for line in scores.in_lines(chosen if main else statements):
        say(line)
    if everything:
        counts = Counter(row["verdict"] for row in rows)
        say(f"{counted(len(rows), 'claim')}: {', '.join(f'{counts[name]} {name}' for name in VERDICTS)}")
        if any(row["kind"] == "order" for row in rows):
            say(scores.chance_in_words(rows))


def _show_papers(statements: Sequence[Mapping[str, str]]) -> None:
    """Print a line for each paper: of each status how many main claims, and how many other statements."""
    papers = dict.fromkeys(one["paper"] for one in statements)
    waits = any(one["status"] == rules.NOT_YET for one in statements)
    names = (*scores.STATUSES, *([rules.NOT_YET] if waits else []))
    say(f"main claims + others: {', '.join(f'{MARKS[name]} {name}' for name in names)}")
    print(" " * 10, *(f"{MARKS[name]:^7}" for name in names))
    for paper in papers:
        of_paper = [one for one in statements if one["paper"] == paper]
        main, others = (
            scores.by_status(one for one in of_paper if scores.is_main(one) == first)
            for first in (True, False)
        )
        print(f"{paper:10}", *(f"{f'{main[name]} + {others[name]}':^7}" for name in names))


def _show_statements(statements: Iterable[Mapping[str, str]], cut: bool) -> None:
    """Print statements with their status, main ones first, and the sentence, or what of it fits a line."""
    for one in sorted(statements, key=lambda one: not scores.is_main(one)):
        status = one["status"]
        name = f"{_painted(f'{MARKS[status]} {status:12}', _COLOURS[status])} {one['statement_id']}"
        if cut:
            left = width() - len(f"  {status:12}  {one['statement_id']}")
            print(name, textwrap.shorten(one["statement"], left, placeholder=" …") if left > 20 else "")
        else:
            print(name)
            say(one["statement"], "   ")


def _show_claims(
    rows: Iterable[Mapping[str, str]], statements: Iterable[Mapping[str, str]], verdict: str | None
) -> None:
    """Print each claim, main ones first, or those of a verdict, or on statements of a status."""
    statuses = {one["statement_id"]: one["status"] for one in statements}
    for row in sorted(rows, key=lambda row: not row["main"]):
        name = row["verdict"]
        if verdict not in (None, name, statuses.get(row["statement_id"])):
            continue
        parts = [row["id"], number_text(row), f"[{row['data']}, {row['scale']}]"]
        print(_painted(f"{MARKS[name]} {name:12}", _COLOURS[name]), "  ".join(filter(None, parts)))
        say(row["statement"], "   ")
        if _is_explained(row):
            say(remarks(row), "   ", "90")


def width() -> int:
    """Return the number of columns to fill: the terminal's, at most 100."""
    return min(100, shutil.get_terminal_size((100, 40)).columns)


def say(text: str, before: str = "", colour: str = "") -> None:
    """Print a text in lines of the terminal's width, with `before` before the first, and others indented."""
    for line in textwrap.wrap(text, width() - len(before) - bool(before), break_on_hyphens=False):
        print(f"{before} {_painted(line, colour)}" if before else _painted(line, colour))
        before = " " * len(before)


def _painted(text: str, colour: str) -> str:
    """Return a text in a colour, on a terminal that wants colours."""
    if not colour or "NO_COLOR" in os.environ or not sys.stdout.isatty():
        return text
    return f"\033[{colour}m{text}\033[0m"


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


def unit_text(row: Mapping[str, str]) -> str:
    """The unit of a line's numbers in words, as `number` shows them."""
    return "factor" if _is_factor(row) else row["unit"].replace("e-folds", "natural logarithms")


def number(row: Mapping[str, str], name: str) -> str:
    """A number of a line in four digits; a difference of natural logarithms as the factor that it means."""
    value = float(row[name])
    return f"{math.exp(value) if _is_factor(row) and not name.startswith('p_') else value:.4g}"


def _is_factor(row: Mapping[str, str]) -> bool:
    return row["kind"] == "order" and row["unit"] == "e-folds"


def number_text(row: Mapping[str, str]) -> str:
    """Published and measured numbers of a line of claims.csv in a few words."""
    if not row["measured"]:
        return ""
    if row["kind"] == "identity" and not row["published"] and float(row["measured"]) == 1:
        return "holds"
    if row["kind"] == "printed" and not row["published"]:
        return f"gives {100 * float(row['measured']):.4g} % of the numbers"
    if counted_cases := _CASES.match(row.get("reason", "")):
        cases, needed = counted_cases.groups()
        share = "half" if needed == "50 %" else needed
        return f"true in {cases} cases{f', {share} required' * (needed != '100 %')}"
    if row["kind"] == "shape" or (row["kind"] == "identity" and not row["published"]):
        return f"true in {100 * float(row['measured']):.4g} % of the cases"
    ends = ("pi_low", "pi_high") if row["pi_low"] else ("ci_low", "ci_high")
    interval = f" [{', '.join(number(row, end) for end in ends)}]" if row[ends[0]] else ""
    order, factor = row["kind"] == "order", _is_factor(row)
    published = f"published {'above ' * order}{number(row, 'published')}" if row["published"] else ""
    tolerance = f" ± {number(row, 'tolerance')}" if row["tolerance"] and published and not order else ""
    what = ("factor" if factor else "difference") if order and not published else "measured"
    unit = f" {row['unit']}" * (order and bool(row["unit"]) and not factor)
    is_short = order and row["tolerance"] and row["verdict"] in ("fails", "inconclusive")
    least = f", at least {number(row, 'tolerance')} required" if is_short else ""
    measured = f"{what} {number(row, 'measured')}{interval}{unit}{least}"
    return "  ".join(filter(None, [published + tolerance, measured]))


def own_files(results: Path) -> dict[str, Path]:
    """Return the papers' own files of claims in a folder of results, by paper."""
    found = {file.parent.name: file for file in sorted(results.glob("[!.]*/claims.csv"))}
    # The folder of another scale has a joint file, with the statements beside it.
    return {name: file for name, file in found.items() if not file.with_name("statements.csv").is_file()}
