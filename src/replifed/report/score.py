"""Score by statements, with which the README opens: a table and a picture of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from replifed.claims import scores
from replifed.claims.verdicts import HOLDS, VERDICTS
from replifed.errors import ReplifedError
from replifed.report.sentences import row

# What stands between these in the README is written by `replifed claims document`.
BEGIN, END = "<!-- score: `replifed claims document` writes this -->", "<!-- end of the score -->"
_HEADS = dict(zip(VERDICTS, VERDICTS, strict=True)) | {
    "consistent": "consistent, a setting was fitted",
    "unchecked": "not testable",
}
_COLOURS = ("#009E73", "#56B4E9", "#D55E00", "#BBBBBB", "#EEEEEE")
_DATA = ("original", "synthetic", "substitute", "surrogate")
# Of the picture, in pixels.
_WIDTH, _ROW, _LEFT, _TOP = 760, 26, 110, 34


class Score(NamedTuple):
    """Score of the statements of one paper."""

    paper: str
    statuses: Counter[str]
    numbers: tuple[int, int]  # statements on a published number: those that are met, and those measured
    data: Counter[str]  # kinds of data behind the statements


def score(paper: str, claims: Sequence[Mapping[str, str]]) -> Score:
    """Score of a paper, from lines of claims.csv with their kind."""
    statements, kinds = scores.statements(claims), {claim["id"]: claim["kind"] for claim in claims}
    on_numbers = [
        one["status"]
        for one in statements
        if one["status"] != "unchecked" and "value" in {kinds[name] for name in one["claims"].split()}
    ]
    return Score(
        paper,
        Counter(one["status"] for one in statements),
        (sum(status in HOLDS for status in on_numbers), len(on_numbers)),
        Counter(one["data"] for one in statements),
    )


def table(papers: Sequence[Score]) -> str:
    """Markdown, a line a paper and one for all."""
    total = Score(
        "all",
        sum((one.statuses for one in papers), Counter()),
        (sum(one.numbers[0] for one in papers), sum(one.numbers[1] for one in papers)),
        sum((one.data for one in papers), Counter()),
    )
    heads = ["", "statements", *_HEADS.values(), "values met", "data behind them"]
    lines = [row(*heads), row("---", *["--:"] * (len(heads) - 2), "---")]
    for one in (*papers, total):
        met, all_of_them = one.numbers
        cells = [
            f"`{one.paper}`" if one is not total else "**all**",
            f"{one.statuses.total()}",
            *(f"{one.statuses[status]}" for status in _HEADS),
            f"{met} of {all_of_them}",
            ", ".join(f"{one.data[kind]} {kind}" for kind in _DATA if one.data[kind]),
        ]
        lines.append(row(*cells))
    return "".join(lines)


def picture(papers: Sequence[Score]) -> str:
    """A bar a paper as SVG, of its statements by status."""
    longest = max(one.statuses.total() for one in papers)
    height = _TOP + _ROW * len(papers) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12" role="img" '
        'aria-label="Statements of each paper by what came of them">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (status, colour) in enumerate(zip(_HEADS, _COLOURS, strict=True)):
        x = _LEFT + 125 * place
        parts.append(f'<rect x="{x}" y="8" width="12" height="12" fill="{colour}" stroke="#777777"/>')
        parts.append(f'<text x="{x + 17}" y="18">{_HEADS[status].partition(",")[0]}</text>')
    for place, one in enumerate(papers):
        left, y = float(_LEFT), _TOP + _ROW * place
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{one.paper}</text>')
        for status, colour in zip(_HEADS, _COLOURS, strict=True):
            count = one.statuses[status]
            width = count * (_WIDTH - _LEFT - 10) / longest
            if count:
                parts.append(
                    f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 6}" fill="{colour}" '
                    'stroke="#777777" stroke-width="0.5"/>'
                )
            if width > 16:
                parts.append(
                    f'<text x="{left + width / 2:.1f}" y="{y + 15}" text-anchor="middle">{count}</text>'
                )
            left += width
    return "\n".join([*parts, "</svg>", ""])


def inserted(text: str, block: str, name: str) -> str:
    """Text with the block in place of the one between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ReplifedError(f"{name}: it needs the lines {BEGIN} and {END}, between which the score goes")
    return f"{before}{BEGIN}\n{block}{END}{after}"
