"""Score of all papers, as a line, a table and a picture; and tables of the rules by which it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from replifed.claims import rules, scores
from replifed.claims.scores import STATUSES, Row
from replifed.errors import ReplifedError, counted
from replifed.report.sentences import row

COLOURS = dict(zip(STATUSES, ("#009e73", "#56b4e9", "#d55e00", "#bbbbbb", "#eeeeee"), strict=True))
# Of the picture, in pixels: a square a main claim, a bar for the other statements.
_WIDTH, _ROW, _LEFT, _TOP, _SQUARE = 380, 50, 92, 84, 27


class Score(NamedTuple):
    """Main claims and other statements of one paper."""

    paper: str
    main: list[Row]
    others: list[Row]


def score(paper: str, statements: Iterable[Row]) -> Score:
    """Score of a paper, from its statements."""
    statements = list(statements)
    others = [one for one in statements if not scores.is_main(one)]
    return Score(paper, [*filter(scores.is_main, statements)], others)


def summary(papers: Iterable[Score]) -> str:
    """Markdown: the main claims of all papers by status and evidence, and in the printed settings alone."""
    main = [one for paper in papers for one in paper.main]
    return (
        f"**{counted(len(main), 'main claim')}: {scores.in_words(main, zeros=False)}**; "
        f"{scores.printed_in_words(main)}.\n"
    )


def table(papers: Sequence[Score]) -> str:
    """Markdown, one line per paper; papers without main claims, such as a comparison, come last."""
    heads = ["", "main claims", "in the printed settings alone", "printed values matched", "other statements"]
    lines = [row(*heads), row(*["---"] * len(heads))]
    for one in sorted(papers, key=lambda one: not one.main):
        cells = [
            f"`{one.paper}`",
            scores.in_words(one.main, zeros=False),
            scores.printed_in_words(one.main).removeprefix("in the printed settings ") if one.main else "",
            scores.values_met([*one.main, *one.others]).in_words,
            _counts(one.others),
        ]
        lines.append(row(*cells))
    return "".join(lines)


def _counts(statements: Iterable[Row]) -> str:
    """Statements by status; a paper's page has what each rests on."""
    count = scores.by_status(statements)
    return ", ".join(f"{count[status]} {status}" for status in STATUSES if count[status])


def picture(papers: Sequence[Score]) -> str:
    """SVG: of each paper a square for each main claim, and below a bar of its other statements, by status.

    It is narrow enough to be read on a phone.
    """
    papers = sorted(papers, key=lambda one: not one.main)
    height = _TOP + _ROW * len(papers)
    longest = max((len(one.others) for one in papers), default=0) or 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13" role="img" '
        'aria-label="Main claims and other statements of each paper by what came of them">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="8" y="{_TOP - 12}">Squares: main claims; bars: other statements</text>',
    ]
    for place, (status, colour) in enumerate(COLOURS.items()):
        x, y = 8 + 122 * (place % 3), 8 + 20 * (place // 3)
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}" stroke="#777777"/>')
        parts.append(f'<text x="{x + 17}" y="{y + 11}">{status}</text>')
    for place, one in enumerate(papers):
        y = _TOP + _ROW * place
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{one.paper}</text>')
        main = scores.by_status(one.main)
        squares = [status for status in STATUSES for _ in range(main[status])]
        for number, status in enumerate(squares):
            parts.append(
                f'<rect x="{_LEFT + _SQUARE * number}" y="{y}" width="{_SQUARE - 3}" height="{_SQUARE - 3}" '
                f'fill="{COLOURS[status]}" stroke="#777777" stroke-width="0.5"/>'
            )
        below = y + _SQUARE * bool(squares)
        parts += _bar(scores.by_status(one.others), _LEFT, below, (_WIDTH - _LEFT - 8) / longest)
    return "\n".join([*parts, "</svg>", ""])


def _bar(count: Mapping[str, int], left: float, y: float, unit: float) -> list[str]:
    parts = []
    for status, colour in COLOURS.items():
        width = count[status] * unit
        if count[status]:
            parts.append(
                f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="15" fill="{colour}" '
                'stroke="#777777" stroke-width="0.5"/>'
            )
        if width > 18:
            parts.append(
                f'<text x="{left + width / 2:.1f}" y="{y + 12}" font-size="12" text-anchor="middle">'
                f"{count[status]}</text>"
            )
        left += width
    return parts


def lines_around(what: str) -> tuple[str, str]:
    """Lines between which `replifed claims document` writes a block, such as the score, into a page."""
    return f"<!-- {what}: `replifed claims document` writes this -->", f"<!-- end of the {what} -->"


def inserted(text: str, what: str, block: str, name: str) -> str:
    """Text of a file called `name` with the block in place of the one between its lines."""
    first, last = lines_around(what)
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not (begin and end):
        raise ReplifedError(f"{name}: it needs the lines {first} and {last}, between which the {what} goes")
    return f"{before}{first}\n{block}{last}{after}"


def rules_of_claims() -> str:
    """Markdown, one line per rule below what it is on: the verdict that it gives, and its reason."""
    parts = []
    for on, several in rules.listed().items():
        lines = "".join(f"- *{one.verdict}*: {one.in_general}\n" for one in several)
        parts.append(f"**{on}**\n\n{lines}")
    return "\n".join(parts)


def rules_of_statuses() -> str:
    """Markdown, one line per rule: the status that it gives, and its reason."""
    lines = [row(f"**{one.verdict}**", one.in_general) for one in rules.of_statement(rules.Found())]
    return "".join([row("status", "when"), row("---", "---"), *lines])
