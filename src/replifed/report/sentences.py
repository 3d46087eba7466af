"""A page for each paper: its finding, its main claims, what it leaves open, and every claimed sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple

from replifed.claims import scores
from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.files import number_text
from replifed.claims.rules import FAILS, NOT_RUN, NOT_YET
from replifed.claims.scores import Row
from replifed.claims.sentences import Sentence, merged, read
from replifed.claims.why import also_in_words, others_in_words
from replifed.errors import counted
from replifed.parts import part, sentences_file
from replifed.report.by_settings import picture

MOST = 2  # claims of which the numbers are shown
_HEAD = """\
# {name}

{citation} Verdicts are those of the [reference run](../runs.md).
`[a, b]` is a 95 % confidence interval of the mean or, beside a published value without ±, a 95 % prediction
interval for it. A factor above 1 or a difference above 0 speaks for the claim; a decade is a factor of ten.

"""
_MAIN = """\
## Main claims

{score}; {printed}.{rests}
*Printed settings* are those that the text states; where it states none, we chose before any run{inferred}.
[What the words mean](../verdicts.md#from-verdicts-to-a-status)

"""
_INFERRED = """.
*Inferred settings* are one other choice, which gives some of the published numbers"""
_SENTENCES = """\
## {other}entences

{claimed} sentences and cells with claims: {score}.{rests}{met}{rest}
`replifed claims --reference --why {example}` explains a status.
"""
_RESTS = " The evidence, unless stated otherwise: {}."
_REST = " {} no claim; `not_claimed.csv` says why."


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
    text += _sentences(sentences, statements, claims)
    listed = [
        f"**{one.place}**: {one.printed.removesuffix('.')}. *Corrected*: {one.corrected}" for one in errata
    ]
    if listed:
        text += "\n## Errata\n\n" + "".join(f"- {' '.join(one.split())}\n" for one in listed)
    return text, {f"{name}.svg": svg for name, svg in pictures.items()}


def _pictures(main: Iterable[Row], claims: Iterable[Row]) -> dict[str, str]:
    groups = {
        one["statement_id"]: [row for row in claims if row["statement_id"] == one["statement_id"]]
        for one in main
    }
    return {name: svg for name, group in groups.items() if (svg := picture(group))}


def _main_claims(main: Sequence[Row], claims: Sequence[Row], pictures: Mapping[str, str], axes: Axes) -> str:
    """A list of the main claims, each with what came out, the question to the authors, and its picture."""
    by_id, usual = {row["id"]: row for row in claims}, _usual(main)
    text = _MAIN.format(
        score=scores.in_words(main, zeros=False),
        rests=_RESTS.format(usual) * bool(usual),
        printed=scores.printed_in_words(main),
        inferred=_INFERRED if axes.inferred else "",
    )
    for number, one in enumerate(main, 1):
        name = one["statement_id"]
        place, numbers = one["place"], measured(one, by_id)
        failing = _failing(one, by_id)
        parts = [
            f"**{one['statement']}**{f' ({place})' * bool(place)}",
            f"{in_full(one, bool(axes.inferred), usual)}. {f'Measured: {numbers}. ' * bool(numbers)}`{name}`",
            _fails(failing, alone=len(one["claims"].split()) == 1) if failing else "",
            f"To the authors: {one['question']}" if one["question"] else "",
            f"Reply, {one['reply']}" if one["reply"] else "",
            f"![Measured, by settings]({name}.svg)" if name in pictures else "",
        ]
        begin = f"{number}. "
        for paragraph in filter(None, parts):
            text += f"{begin}{' '.join(paragraph.split())}\n\n"
            begin = " " * len(begin)
    return text


def _fails(claim: Row, alone: bool) -> str:
    """What fails of several claims, and why, as far as it is known."""
    what = "" if alone else f"Fails: {claim['statement']} ({_numbers(claim)}) "
    return what + f"Likely cause: {claim['note']}." * bool(claim["note"])


def _failing(statement: Row, by_id: Mapping[str, Row]) -> Row | None:
    """Of a statement that deviates, the first claim that fails in the settings that decided."""
    rows = (by_id[name] for name in statement["claims"].split())
    return next((one for one in rows if one["verdict"] == FAILS and statement["status"] == "deviates"), None)


def in_full(statement: Row, inferred: bool, usual: str) -> str:
    """A status in bold with what it rests on, if not on the usual, its reason, and where else it holds."""
    status, also = statement["status"], statement["also"]
    text = statement["reason"] if status != "reproduced" else ""  # as the word says
    if status == "conditional":
        worst = {FAILS: "it fails as printed", NOT_RUN: "as printed it cannot be run"}
        text = f"{worst.get(statement['printed'], 'as printed it is open')}; {text}"
    else:
        text += others_in_words(statement) * (not also)
    if also and "holds only" not in text:
        text += also_in_words(statement)
    if inferred and statement["inferred"] != statement["printed"] and "inferred" not in text:
        text += f"; in the inferred settings: {statement['inferred']}"
    text = text.removeprefix("; ")
    evidence = statement["evidence"] if statement["evidence"] != usual else ""
    return f"**{status}**{caveats(statement, evidence)}{f': {text}' * bool(text)}"


def _usual(statements: Iterable[Row]) -> str:
    """What most statements rest on."""
    on = Counter(one["evidence"] for one in statements if one["evidence"])
    return on.most_common(1)[0][0] if on else ""


def caveats(statement: Row, *others: str) -> str:
    """In brackets what it rests on, if given, whether it fills gaps, and data that are not the paper's."""
    data = statement["data"] if statement["data"] in ("substitute", "surrogate") else ""
    data = f"{data} data" if data and not any(data in one for one in others) else ""
    known = ", ".join(filter(None, (*others, statement["gap"], data)))
    return f" ({known})" * bool(known)


def measured(statement: Row, by_id: Mapping[str, Row]) -> str:
    """Numbers of a statement's claims that decided its status, or how many of them hold."""
    rows = [by_id[name] for name in statement["claims"].split()]
    if statement["status"] in ("untestable", NOT_YET):
        return ""
    if len(rows) <= MOST:
        return "; ".join(filter(None, map(_numbers, rows)))
    held = sum(one["verdict"] == "holds" for one in rows)
    return f"{held} of {len(rows)} claims hold{', and all have to' * (held < len(rows))}"


def _left_open(axes: Axes, text: str) -> str:
    """A list of the open questions, with the options of the printed settings, of the inferred, or of both."""
    lines = []
    for axis in axes.axes.values():
        chosen = {"Printed": axes.printed[axis.name]}
        if axes.inferred:
            chosen["Inferred"] = axes.inferred[axis.name]
        if len(set(chosen.values())) < len(chosen):
            chosen = {"Printed and inferred": axes.printed[axis.name]}
        parts = [f"*{where}*: {_of_option(axis.options[one])}." for where, one in chosen.items() if one]
        if others := [one for one in axis.options.values() if one.name not in chosen.values()]:
            parts.append(f"*Other options*: {_named(others)}.")
        lines.append(f"- {' '.join([asked(axis), *parts])}\n")
    if axes.inferred:
        names = ", ".join(f"`{name}`" for name in axes.fitted_on)
        lines.append(f"\nFitted on {f'{names} alone' if names else 'nothing that is claimed'}.\n")
    parts = ["".join(lines)] * bool(axes.axes) + [f"{text}\n"] * bool(text)
    return "\n".join(["## What the paper leaves open\n", *parts, ""]) if parts else ""


def asked(axis: Axis) -> str:
    """An open question, and how many options were tried, if not all are there."""
    tried = f" {axis.tried} options were tried." if axis.tried > len(axis.options) else ""
    return f"**{axis.name}**: {axis.question}{tried}"


def _of_option(option: Option) -> str:
    but = f"; but {option.against}" if option.against else ""
    return f"`{option.name}` ({option.source}): {option.grounds}{but}"


def _named(options: Iterable[Option]) -> str:
    """Options with their grounds, or with the reason why they were not run, once for neighbours."""
    named = []
    for why, group in groupby(options, key=lambda one: one.not_run):
        if why:
            named.append(f"{', '.join(f'`{one.name}`' for one in group)} (not run: {why})")
        else:
            named += [f"`{one.name}` ({one.grounds})" for one in group]
    return "; ".join(named)


def _sentences(sentences: Sequence[Sentence], statements: Sequence[Row], claims: Sequence[Row]) -> str:
    """A list of all sentences with claims but the main ones, by place, in the paper's order."""
    main = any(map(scores.is_main, statements))
    others = [one for one in statements if not scores.is_main(one)]
    listed = [one for one in sentences if not (one.why or one.main)]
    rest = sum(bool(one.why) for one in sentences)
    by_name, by_id = {one["statement_id"]: one for one in statements}, {one["id"]: one for one in claims}
    usual = _usual(others)
    met = scores.values_met(statements)
    more = f"{counted(rest, 'more sentence')} {'has' if rest == 1 else 'have'}"
    text = _SENTENCES.format(
        other="Other s" if main else "S",
        claimed=len(listed),
        score=scores.in_words(others, zeros=False),
        rests=_RESTS.format(usual) * bool(usual),
        met=f" Printed values matched: {met.in_words}." * bool(met.total),
        rest=_REST.format(more) * bool(rest),
        example=next((one.name for one in listed), "NAME"),
    )
    last = place = ""
    for one in listed:
        statement, came = by_name.get(one.name), "*no status*: its claims do not count"
        if statement is not None:
            evidence = statement["evidence"] if statement["evidence"] != usual else ""
            came = f"**{statement['status']}**{caveats(statement, evidence)}"
            claim = None if scores.is_main(statement) else _failing(statement, by_id)
            if claim is not None:
                why = "as above" if claim["note"] == last != "" else claim["note"]
                came += f": {'; '.join(filter(None, (_numbers(claim), why)))}"
                last = claim["note"]
        text += f"\n**{one.place}**\n\n" * (one.place != place)
        text += f"- {' '.join(f'{one.says} {came}'.split())} `{one.name.partition('.')[2]}`\n"
        place = one.place
    return text


def _numbers(claim: Row) -> str:
    return number_text(claim).replace("  ", ", ")


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |\n"
