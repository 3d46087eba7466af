"""A page for each paper: its finding, its main claims, what it leaves open, and every checkable sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from replifed.claims import scores
from replifed.claims.axes import INFERRED, PRINTED, Axes
from replifed.claims.files import number_text
from replifed.claims.rules import FAILS, NOT_RUN, NOT_YET
from replifed.claims.scores import Row
from replifed.claims.sentences import Sentence, merged, read
from replifed.claims.why import also_in_words, others_in_words
from replifed.parts import part, sentences_file
from replifed.report.by_settings import picture

MOST = 2  # claims of which the numbers are told
_HEAD = """\
# {name}

{citation} Verdicts are those of the [reference run](../runs.md) at the paper's settings;
`replifed claims document` writes this page. An interval `[a, b]` is one at 95 %: of the mean or, beside a
printed value, of what the paper should have printed.

"""
_MAIN = """\
## Main claims

What title, abstract, contributions and conclusion promise, with their
[status](../verdicts.md#from-verdicts-to-a-status). *Printed settings* are those of the text, or where it has
none our choice before any run{inferred}.

| the paper says | status, and what would change it | rests on | printed | inferred | measured |
| --- | --- | --- | --- | --- | --- |
"""
_INFERRED = """.
*Inferred settings* are one other choice for the whole paper, made since published numbers come out with it"""
_AXES = """\
| open | option | part of | source | kind | grounds | but |
| --- | --- | --- | --- | --- | --- | --- |
"""
_SENTENCES = """\
## All sentences

In the paper's order, {claimed} sentences and cells with claims, and {rest} without, for the reason given.
Main claims apart: {score}. Printed values matched: {met}.
`replifed claims --why` with the name of a statement prints what decided its status.

| place | the paper says | status, and what it rests on | statement, or why none |
| --- | --- | --- | --- |
"""
_DEVIATIONS = """
## What deviates

The first claim on each statement that fails in the settings that decide, by
[these rules](../verdicts.md#from-runs-to-a-verdict).

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
    axes: str


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
    text += _left_open(axes, texts.axes)
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
    text = _MAIN.format(inferred=_INFERRED if axes.inferred else "")
    for one in main:
        says = f"{one['statement']} ({one['place']})" if one["place"] else one["statement"]
        both = one["printed"], one["inferred"] if axes.inferred else ""
        text += row(says, in_full(one), one["evidence"], *both, measured(one, by_id))
    met = f"\n{scores.in_words(main, zeros=False).capitalize()}; {scores.printed_in_words(main)}.\n"
    met += _questions(main)
    for one in main:
        if one["statement_id"] in pictures:
            met += f"\n*{one['statement']}* Measured in each of its settings:\n\n"
            met += f"![{one['statement_id']}]({one['statement_id']}.svg)\n"
    return f"{text}{met}\n"


def _questions(statements: Iterable[Row]) -> str:
    """What the authors are asked, and what they replied."""
    text = ""
    for one in statements:
        if one["question"]:
            reply = f" Reply, {one['reply']}" if one["reply"] else ""
            text += f"- *{one['statement']}* {one['question']}{reply}\n"
    return f"\n### To the authors\n\n{text}" if text else ""


def in_full(statement: Row) -> str:
    """A status in bold and its kind, its reason, and where else it holds."""
    status, also = statement["status"], statement["also"]
    told = statement["reason"]
    if status == "conditional":
        worst = {FAILS: "it fails as printed", NOT_RUN: "as printed it cannot be run"}
        told = f"{worst.get(statement['printed'], 'as printed it is open')}; {told}"
    else:
        told += others_in_words(statement) * (not also)
    if also:
        told += also_in_words(statement)
    return f"**{status}**{caveats(statement)}: {told}"


def in_short(statement: Row) -> str:
    """A status in bold, its kind, and what it rests on."""
    return f"**{statement['status']}**{caveats(statement)}, {statement['evidence']}"


def caveats(statement: Row) -> str:
    """Whether a conditional statement fills gaps, and data that are not the paper's, in brackets."""
    data = f"{statement['data']} data" if statement["data"] in ("substitute", "surrogate") else ""
    known = ", ".join(filter(None, (statement["gap"], data)))
    return f" ({known})" * bool(known)


def measured(statement: Row, by_id: Mapping[str, Row]) -> str:
    """Numbers of a statement's claims that decided its status, or how many of them hold."""
    rows = [by_id[name] for name in statement["claims"].split()]
    if statement["status"] in ("untestable", NOT_YET):
        return ""
    if len(rows) <= MOST:
        return "; ".join(filter(None, map(_numbers, rows)))
    return f"{sum(one['verdict'] == 'holds' for one in rows)} of {len(rows)} claims hold"


def _left_open(axes: Axes, text: str) -> str:
    lines = []
    for axis in axes.axes.values():
        tried = f" {axis.tried} were tried." if axis.tried > len(axis.options) else ""
        question = f"**{axis.name}**: {axis.question}{tried}"
        whole = {PRINTED: axis.printed, INFERRED: (axes.inferred or {}).get(axis.name)}
        for option in axis.options.values():
            within = ", ".join(name for name, chosen in whole.items() if chosen == option.name)
            within = f"{within}{', ' * bool(within)}not run: {option.not_run}" if option.not_run else within
            cells = (within, option.source, option.kind, option.grounds, option.against)
            lines.append(row(question, f"`{option.name}`", *cells))
            question = ""
    if axes.inferred:
        names = ", ".join(f"`{name}`" for name in axes.fitted_on)
        lines.append(f"\nFitted on {f'{names} alone' if names else 'nothing that is claimed'}.\n")
    parts = [_AXES + "".join(lines)] * bool(lines) + [f"{text}\n"] * bool(text)
    return "\n".join(["## What the paper leaves open\n", *parts, ""]) if parts else ""


def _all_sentences(sentences: Sequence[Sentence], statements: Sequence[Row], claims: Sequence[Row]) -> str:
    claimed = sum(not one.why for one in sentences)
    others = [one for one in statements if not scores.is_main(one)]
    text = _SENTENCES.format(
        claimed=claimed,
        rest=len(sentences) - claimed,
        score=scores.in_words(others),
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
        return row(sentence.place, sentence.says, "not judged", named)
    says = sentence.says + " **Main claim.**" * sentence.main
    return row(sentence.place, says, in_short(statement), named)


def _deviations(statements: Sequence[Row], claims: Sequence[Row]) -> str:
    """Of each statement that deviates the first claim that fails: what was measured, by how much, and why."""
    if not statements:
        return ""
    text, last, by_id = _DEVIATIONS, "", {one["id"]: one for one in claims}
    for one in statements:
        deciding = [by_id[name] for name in one["claims"].split()]
        failing = [claim for claim in deciding if claim["verdict"] == FAILS]
        for claim in failing[:1]:
            why = "as above" if claim["note"] == last != "" else claim["note"]
            last = claim["note"]
            of = f" ({len(failing)} of {len(deciding)} claims fail)" * (len(deciding) > 1)
            text += row(f"`{claim['id']}`{of}", claim["statement"], _numbers(claim), _off_by(claim), why)
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
