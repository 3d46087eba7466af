"""Numbers in prose: each is taken by name from a claim or a table, when a page is written.

`{fedplt.fig3.local.measured:.2f}` is a column of claims.csv, `{fedplt/fig3[loss=mean, steps=2].rate:.4f}` one
of the line of a table that meets the conditions (`=`, `!=`, `<`, `<=`, `>`, `>=`), and
`{fedac/fig1[ours!=].count}` the number of such lines. `|exp`, `|pow10`, `|abs`, `|percent` and `|left`, or
1 - x, change a number before it is written, in their order: `{cross.below.measured|abs|pow10:.0f}`. Without a
format it has three digits.

What is no outcome, such as a printed number or a setting, is listed in numbers.yaml of the paper's folder,
with where it comes from. Any other number is refused. Numbers of figures, sections and the like, of code, and
in names such as a9a are none.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from replifed.claims.rules import NOT_YET
from replifed.errors import DataError, one_line
from replifed.store import documents

Row = Mapping[str, str]
_NAME = re.compile(
    r"\{(?P<source>[a-z]\w*(?:\.[\w.-]+|/\w+(?:\[(?P<where>[^\]]*)\])?))\.(?P<field>\w+)"
    r"(?P<changes>(?:\|\w+)*)(?::(?P<format>[^{}]*))?\}"
)
_CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*")
_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CHANGES: dict[str, Callable[[float], float]] = {
    **{"exp": math.exp, "pow10": lambda number: 10**number, "abs": abs},
    **{"percent": lambda number: 100 * number, "left": lambda number: 1 - number},
}
# What is called by a number, such as "Figures 1 to 4 and 7", "Section V-B" or "eq. (14)".
_ORDINALS = re.compile(
    r"\b(?:Figure|Table|Section|Theorem|Proposition|Lemma|Corollary|Remark|Assumption|Algorithm|Example|"
    r"Contribution|Appendix|Eq|Equation|Simulation)s?\.? \(?[A-Z]?\d+\w*\)?"
    r"(?:(?:,| to| and|, and| or) \(?\d+\w*\)?)*",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\.?\d[\w.]*(?:[-+]\d+)?(?: ?%)?")
# Said in the place of a number that a run does not have.
_MISSING = "not measured"


class Numbers(NamedTuple):
    """Where the numbers of a paper's prose come from."""

    claims: Mapping[str, Row]  # lines of claims.csv, by id
    table: Callable[[str, str], Sequence[Row] | None]  # lines of a paper's table; None where it was not made
    allowed: Mapping[str, str]  # phrases with a number that is no outcome, and where it comes from
    whole: bool = True  # whether it is a run at the papers' scale; others lack some lines of tables


def allowed(text: str, file: str) -> dict[str, str]:
    """Read numbers.yaml: phrases, and where the number in each comes from."""
    try:
        content = documents.load(text) if text else {}
    except (ValueError, yaml.YAMLError) as error:
        raise DataError(f"{file}: {one_line(error)}") from error
    texts = [*content, *content.values()] if isinstance(content, dict) else [None]
    if not all(isinstance(one, str) for one in texts):
        raise DataError(f"{file} is no list of phrases, each with where its number comes from, as texts")
    return content


def filled(text: str, file: str, numbers: Numbers) -> str:
    """A text with the numbers that it names; other numbers than those allowed are refused."""
    if found := bare(text, numbers.allowed):
        raise DataError(
            f"{file}: no claim or table is named for the number {found[0]}; write {{CLAIM.measured:.2f}}, or "
            "list it in numbers.yaml with where it is printed"
        )
    return named(text, file, numbers)


def named(text: str, file: str, numbers: Numbers) -> str:
    """A text with the numbers that it names."""
    text = _NAME.sub(lambda match: _number(match, file, numbers), text)
    return re.sub(rf"(\((?:{NOT_YET}|{_MISSING})\))\s+%", r"\1", text)  # of no number no percentage


def bare(text: str, allowed: Iterable[str] = ()) -> list[str]:
    """Numbers of a text that it neither names nor is allowed to have.

    >>> bare("Figure 3 has 2 of `3` on a9a, {p.a.measured:.2f}, after 60 rounds; K = 5.", ["K = 5"])
    ['2', '60']
    """
    for pattern in (_NAME, _CODE):
        text = pattern.sub(" ", text)
    text = " ".join(text.split())
    for phrase in sorted(allowed, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(phrase)}(?!\w|\.\d)", " ", text)
    return [one.rstrip(".") for one in _NUMBER.findall(_ORDINALS.sub(" ", text))]


def _number(match: re.Match[str], file: str, numbers: Numbers) -> str:
    def refuse(what: str) -> DataError:
        return DataError(f"{file}: {match[0]}: {what}")

    source, changes = match["source"], match["changes"].split("|")[1:]
    if unknown := [one for one in changes if one not in _CHANGES]:
        raise refuse(f"no change is called {unknown[0]}; one of {', '.join(_CHANGES)}")
    if "/" in source:
        found = _of_table(source, match["where"] or "", match["field"], numbers, refuse)
    elif source not in numbers.claims:
        raise refuse(f"no claim is called {source}")
    else:
        row = numbers.claims[source]
        found = NOT_YET if row.get("reason") == NOT_YET else _column(row, match["field"], refuse)
    if found in ("", NOT_YET):
        return f"({found or _MISSING})"
    try:
        number = float(found)
    except ValueError:
        return found
    for change in changes:
        number = _CHANGES[change](number)
    try:
        return format(number, match["format"] or ".3g").replace("-", "−")
    except ValueError as error:
        raise refuse(one_line(error)) from error


def _of_table(
    source: str, where: str, field: str, numbers: Numbers, refuse: Callable[[str], DataError]
) -> str:
    paper, _, name = source.partition("[")[0].partition("/")
    rows = numbers.table(paper, name)
    if rows is None:
        return ""
    for condition in filter(None, where.split(",")):
        if not (parts := _CONDITION.fullmatch(condition)):
            raise refuse(f"{condition.strip()} is no condition such as K=8")
        rows = [row for row in rows if _meets(_column(row, parts[1], refuse), parts[2], parts[3])]
    if field == "count":
        return str(len(rows))
    if not rows and not numbers.whole:
        return ""
    if len(rows) != 1:
        raise refuse(f"{len(rows)} lines meet this, and one has to")
    return _column(rows[0], field, refuse)


def _column(row: Row, name: str, refuse: Callable[[str], DataError]) -> str:
    if name not in row:
        raise refuse(f"there is no column {name}")
    return row[name]


def _meets(found: str, compared: str, wanted: str) -> bool:
    """Whether a field meets a condition, as numbers where both are."""
    values: tuple[Any, Any]
    try:
        values = float(found), float(wanted)
    except ValueError:
        values = found, wanted
    if compared in ("=", "!="):
        return (values[0] == values[1]) == (compared == "=")
    return isinstance(values[0], float) and _COMPARED[compared](*values)
