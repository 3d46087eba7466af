"""A page for each paper: its finding, its main claims, what it leaves open, and every checkable sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from replifed.claims import scores
from replifed.claims.axes import EXPLAINED, PRINTED, Axes
from replifed.claims.files import number_text
from replifed.claims.scores import Row
from replifed.claims.sentences import Sentence, merged, read
from replifed.parts import part, sentences_file
from replifed.report.by_reading import picture

MOST = 2  # claims of which the numbers are told
_HEAD = """\
# {name}

{citation} Verdicts are those of the [reference run](../runs.md) at the paper's settings;
`replifed claims document` writes this page.

"""
_MAIN = """\
## Main claims

What title, abstract, contributions and conclusion promise. A claim is `reproduced` if it holds in the
*printed account*, where all is as the text has it, or else as was chosen before any run{explained}.
*Other readings* change what may have been meant.

| the paper says | status | printed | explained | other readings | measured |
| --- | --- | --- | --- | --- | --- |
"""
_EXPLAINED = """; `consistent` if it holds in the
*explained account*, one other choice for the whole paper, made because numbers come out"""
_AXES = """\
| open | option | account | source | kind | evidence | but |
| --- | --- | --- | --- | --- | --- | --- |
"""
_SENTENCES = """\
## All sentences

In the paper's order, {claimed} sentences and cells with claims, and {rest} without, for the reason given.
Main claims apart: {score}. Values met: {met}.
`replifed claims --why` with the name of a statement prints what decided its status.

| place | the paper says | status | statement |
| --- | --- | --- | --- |
"""
_DEVIATIONS = """
## What deviates

Claims that fail in the account that decides, by [these rules](../verdicts.md#from-runs-to-a-verdict).

| claim | the paper says | measured | off by | why, as far as it is known |
| --- | --- | --- | --- | --- |
"""


def of_paper(paper: str) -> list[Sentence]:
    """Return the checkable sentences of a paper in its order, with and without claims."""
    claimed = getattr(import_module(part(paper, "claims")), "SENTENCES", ())
    return merged(claimed, read(paper, sentences_file(paper)))


class Texts(NamedTuple):
    """What a paper's folder says in Markdown."""

    finding: str
    readings: str


def page(
    paper: Mapping[str, str],
    texts: Texts,
    axes: Axes,
    sentences: Sequence[Sentence],
    claims: Sequence[Row],
    errata: Iterable[Any],
) -> tuple[str, dict[str, str]]:
    """Markdown page of a paper, and its pictures as SVG, by the names of their files.

    `claims` are the paper's rows of claims.csv.
    """
    statements = scores.statements(claims)
    main = [*filter(scores.is_main, statements)]
    pictures = _pictures(main, claims)
    text = _HEAD.format(**paper)
    text += f"## Finding\n\n{texts.finding}\n\n" * bool(texts.finding)
    text += _main_claims(main, claims, pictures, axes) if main else ""
    text += _left_open(axes, texts.readings)
    text += _all_sentences(sentences, statements, claims)
    text += _deviations([one for one in statements if one["status"] == "deviates"], claims)
    rows = [row(one.place, one.printed, one.corrected) for one in errata]
    if rows:
        text += "\n## Errata\n\n| place | as printed | corrected |\n| --- | --- | --- |\n" + "".join(rows)
    return text, {f"{name}.svg": svg for name, svg in pictures.items()}


def _pictures(main: Iterable[Row], claims: Iterable[Row]) -> dict[str, str]:
    groups = {
        one["statement_id"]: [row for row in claims if row["statement_id"] == one["statement_id"]]
        for one in main
    }
    return {name: svg for name, group in groups.items() if (svg := picture(group))}


def _main_claims(main: Sequence[Row], claims: Sequence[Row], pictures: Mapping[str, str], axes: Axes) -> str:
    by_id = {row["id"]: row for row in claims}
    text = _MAIN.format(explained=_EXPLAINED if axes.explained else "")
    for one in main:
        says = f"{one['statement']} ({one['place']})" if one["place"] else one["statement"]
        accounts = one["printed"], one["explained"] if axes.explained else ""
        status = f"**{one['status']}**{caveats(one)}"
        text += row(says, status, *accounts, other_readings(one), measured(one, by_id))
    met = f"\n{scores.printed_in_words(main).capitalize()}.\n"
    for one in main:
        if one["statement_id"] in pictures:
            met += f"\n*{one['statement']}* Measured in each reading:\n\n"
            met += f"![{one['statement']}]({one['statement_id']}.svg)\n"
    return f"{text}{met}\n"


def caveats(statement: Row) -> str:
    """What is to be known beside a status: its data, and whether the explained account was fitted on it."""
    fit = statement["fit"] if statement["status"] == "consistent" else ""
    data = f"{statement['data']} data" if statement["data"] in ("substitute", "surrogate") else ""
    known = ", ".join(filter(None, (fit, data)))
    return f" ({known})" * bool(known)


def other_readings(statement: Row) -> str:
    """In how many readings beside the printed account a statement holds, and which fail."""
    hold, ran = int(statement["hold"]), int(statement["readings"])
    if not ran:
        return "no other"
    if hold == ran:
        return f"{'robust: ' if statement['robust'] else ''}{hold} of {ran}"
    if not hold:
        return f"none of {ran}" if ran > 1 else "not in the other"
    failing = "; ".join(f"`{reading}`" for reading in statement["fail_in"].split(" | "))
    return f"{hold} of {ran}, not {failing}"


def measured(statement: Row, by_id: Mapping[str, Row]) -> str:
    """Numbers of a statement's claims that decided its status, or how many of them hold."""
    rows = [by_id[name] for name in statement["claims"].split()]
    if statement["status"] == "untestable":
        return ""
    if len(rows) <= MOST:
        return "; ".join(filter(None, map(_numbers, rows)))
    return f"{sum(one['verdict'] == 'holds' for one in rows)} of {len(rows)} claims hold"


def _left_open(axes: Axes, readings: str) -> str:
    lines = []
    for axis in axes.axes.values():
        tried = f" {axis.tried} were tried." if axis.tried > len(axis.options) else ""
        question = f"**{axis.name}**: {axis.question}{tried}"
        accounts = {PRINTED: axis.printed, EXPLAINED: (axes.explained or {}).get(axis.name)}
        for option in axis.options.values():
            within = ", ".join(name for name, chosen in accounts.items() if chosen == option.name)
            cells = (within, option.source, option.kind, option.evidence, option.against)
            lines.append(row(question, f"`{option.name}`", *cells))
            question = ""
    parts = [_AXES + "".join(lines)] * bool(lines) + [f"{readings}\n"] * bool(readings)
    return "\n".join(["## What the paper leaves open\n", *parts, ""]) if parts else ""


def _all_sentences(sentences: Sequence[Sentence], statements: Sequence[Row], claims: Sequence[Row]) -> str:
    claimed = sum(not one.why for one in sentences)
    others = [one for one in statements if not scores.is_main(one)]
    text = _SENTENCES.format(
        claimed=claimed,
        rest=len(sentences) - claimed,
        score=scores.in_words(scores.by_status(others)),
        met=scores.values_met(statements).in_words,
    )
    by_name = {one["statement_id"]: one for one in statements}
    counts = Counter(one["statement_id"] for one in claims)
    return text + "".join(_line(one, by_name.get(one.name), counts[one.name]) for one in sentences)


def _line(sentence: Sentence, statement: Row | None, count: int) -> str:
    if sentence.why:
        return row(sentence.place, sentence.says, "", f"none: {sentence.why}")
    named = f"`{sentence.name}`" + f" ({count} claims)" * (count > 1)
    if statement is None:
        return row(sentence.place, sentence.says, "informs alone", named)
    says = sentence.says + " **Main claim.**" * sentence.main
    status = statement["status"] + caveats(statement)
    if int(statement["readings"]):
        status += f"; {other_readings(statement)}"
    return row(sentence.place, says, status, named)


def _deviations(statements: Sequence[Row], claims: Sequence[Row]) -> str:
    """Claims that fail in the account that decides: what was measured, how far off it is, and the reason."""
    if not statements:
        return ""
    text, last, by_id = _DEVIATIONS, "", {one["id"]: one for one in claims}
    for one in statements:
        for claim in (by_id[name] for name in one["claims"].split()):
            if claim["verdict"] == "fails":
                why = "as above" if claim["note"] == last != "" else claim["note"]
                last = claim["note"]
                text += row(f"`{claim['id']}`", claim["statement"], _numbers(claim), _off_by(claim), why)
    return text


def _numbers(claim: Row) -> str:
    return number_text(claim).replace("  ", ", ")


def _off_by(claim: Row) -> str:
    """Distance of a measured number to the published one, with its unit where it has a name."""
    if claim["kind"] not in ("value", "near") or not claim["measured"] or not claim["published"]:
        return ""
    unit = claim["unit"] if claim["unit"] in ("rounds", "bits", "decades", "e-folds") else ""
    return f"{float(claim['measured']) - float(claim['published']):+.3g} {unit}".rstrip()


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |\n"
