"""A page for each paper: every checkable sentence in its order, its claims and what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replifed.claims import scores
from replifed.claims.sentences import Sentence

_HEAD = """\
# {name}

{citation} Verdicts are those of the reference run at the paper's settings, `tests/golden/paper.csv`;
`replifed claims document` writes this page.

{readings}## Sentences and claims

Of {total} checkable sentences and cells, {claimed} have claims and {rest} have none, for the reason given.
The claims are on {count} statements: {score}. A statement's verdict is the worst one in the reading nearest
to the text; `consistent` means that a setting was fitted to the number.

| place | the paper says | claims on it | verdict |
| --- | --- | --- | --- |
"""


def page(
    paper: Mapping[str, str],
    readings: str,
    sentences: Sequence[Sentence],
    claims: Sequence[Mapping[str, str]],
    errata: Iterable[Any],
) -> str:
    """Markdown: how the paper is read, a table of its sentences, one of the errata.

    `readings` is the text on that, and `claims` are the paper's rows of claims.csv.
    """
    statements = scores.statements(claims)
    found = {one["statement_id"]: one for one in statements}
    claimed = sum(bool(one.statements) for one in sentences)
    text = _HEAD.format(
        name=paper["name"],
        readings=f"## What the paper leaves open\n\n{readings}\n" if readings else "",
        citation=paper["citation"],
        total=len(sentences),
        claimed=claimed,
        rest=len(sentences) - claimed,
        count=len(statements),
        score=scores.in_words(Counter(one["status"] for one in statements)),
    )
    text += "".join(_line(one, found) for one in sentences)
    rows = [row(one.place, one.printed, one.corrected) for one in errata]
    if rows:
        text += "\n## Errata\n\n| place | as printed | corrected |\n| --- | --- | --- |\n" + "".join(rows)
    return text


def _line(sentence: Sentence, found: Mapping[str, Mapping[str, str]]) -> str:
    if sentence.why:
        return row(sentence.place, sentence.says, f"none: {sentence.why}", "")
    claims, verdicts = [], []
    for name in sentence.statements:
        count, data = len(found[name]["claims"].split()), found[name]["data"]
        claims.append(f"`{name}`" + (f" ({count} claims)" if count > 1 else ""))
        shown = "" if data in ("original", "synthetic", "") else f" ({data} data)"
        verdicts.append(found[name]["status"] + shown)
    return row(sentence.place, sentence.says, "<br>".join(claims), "<br>".join(verdicts))


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |\n"
