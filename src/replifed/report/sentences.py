"""A page for each paper: every checkable sentence in its order, its claims and their verdicts."""

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

Of the {total} rows below {claimed} have claims and {rest} have none, for the reason given. A row is a
checkable sentence, or cells of a table that say one thing; it may hold several statements, and rows may share
one.

The claims are on {count} statements: {score}. A statement's verdict is the worst one in the reading nearest
to the text; `consistent` means that a setting was fitted to the number. Where other readings come out
otherwise, they follow in brackets.

| place | the paper says | claims on it | verdict |
| --- | --- | --- | --- |
"""

_DEVIATIONS = """
## What deviates

Each in the reading nearest to the text. An order holds if its number is above zero by
more than its interval and the least effect that counts.

| claim | the paper says | measured | why, as far as it is known |
| --- | --- | --- | --- |
"""


def page(
    paper: Mapping[str, str],
    readings: str,
    sentences: Sequence[Sentence],
    claims: Sequence[Mapping[str, str]],
    errata: Iterable[Any],
) -> str:
    """Markdown page of a paper: its readings, tables of its sentences, of deviations, and of the errata.

    `readings` is the text on them, and `claims` are the paper's rows of claims.csv.
    """
    statements = scores.statements(claims)
    by_id = {one["statement_id"]: one for one in statements}
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
    others = scores.otherwise(claims, statements)
    text += "".join(_line(one, by_id, others) for one in sentences)
    deviating = [one for one in statements if one["status"] == "deviates"]
    text += _deviations(deviating, {one["id"]: one for one in claims}) if deviating else ""
    rows = [row(one.place, one.printed, one.corrected) for one in errata]
    if rows:
        text += "\n## Errata\n\n| place | as printed | corrected |\n| --- | --- | --- |\n" + "".join(rows)
    return text


def _line(
    sentence: Sentence,
    statements: Mapping[str, Mapping[str, str]],
    others: Mapping[str, Mapping[str, Sequence[str]]],
) -> str:
    if sentence.why:
        return row(sentence.place, sentence.says, f"none: {sentence.why}", "")
    claims, verdicts = [], []
    for name in sentence.statements:
        count, data = len(statements[name]["claims"].split()), statements[name]["data"]
        claims.append(f"`{name}`" + (f" ({count} claims)" if count > 1 else ""))
        shown = "" if data in ("original", "synthetic", "none", "") else f" ({data} data)"
        other = "; ".join(
            f"{verdict}: {', '.join(f'`{reading}`' if reading else 'as it stands' for reading in readings)}"
            for verdict, readings in others[name].items()
        )
        verdicts.append(statements[name]["status"] + shown + (f" ({other})" if other else ""))
    return row(sentence.place, sentence.says, "<br>".join(claims), "<br>".join(verdicts))


def _deviations(statements: Sequence[Mapping[str, str]], claims: Mapping[str, Mapping[str, str]]) -> str:
    """Claims that deviate in the reading nearest to the text: statement, measurement, and reason."""
    text, last = _DEVIATIONS, ""
    for one in statements:
        for claim in (claims[name] for name in one["claims"].split()):
            if claim["verdict"] == "deviates":
                measured = _with_unit(claim["measured"], claim)
                if claim["kind"] == "value":
                    measured += f", published {_with_unit(claim['published'], claim)}"
                why = "as above" if claim["note"] == last != "" else claim["note"]
                text, last = text + row(f"`{claim['id']}`", claim["statement"], measured, why), claim["note"]
    return text


def _with_unit(number: str, claim: Mapping[str, str]) -> str:
    """A number to four digits, or the words for a statement that does not hold."""
    if claim["kind"] in ("identity", "shape"):
        return "does not hold"
    unit = claim["unit"] if claim["unit"] in ("rounds", "bits", "decades", "e-folds") else ""
    return f"{float(number):.4g} {unit}".rstrip()


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |\n"
