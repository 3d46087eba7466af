"""What decided a verdict, or the status of a statement, from lines of claims.csv."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from replifed.claims import scores
from replifed.claims.files import number_text
from replifed.claims.scores import Row
from replifed.errors import ConfigError, unknown_name

# Claims that decided a statement's status, up to which each is told in full.
_MOST = 3


def why(rows: Sequence[Row], name: str, grounds: Callable[[str], Mapping[str, str]]) -> list[str]:
    """Lines on a claim and its statement, or on a statement, the claims that decided it, and the others.

    `grounds` gives what speaks for and against the options of each claim of a paper, by its id.
    """
    of_claim = [row for row in rows if row["id"] == name]
    of_statement = [row for row in rows if row["statement_id"] == name]
    if not of_claim and not of_statement:
        known = {row[key] for row in rows for key in ("id", "statement_id")}
        raise ConfigError(unknown_name("claim or statement", name, known))
    statement = of_claim[0]["statement_id"] if of_claim else name
    group = [row for row in rows if row["statement_id"] == statement]
    lines = list(_of_statement(statement, group))
    decided = [name for one in scores.statements(group) for name in one["claims"].split()]
    for row in of_claim or of_statement:
        if of_claim or (len(decided) <= _MOST and (row["id"] in decided or row["informs"])):
            lines += ["", *_of_claim(row, rows, grounds(row["paper"]).get(row["id"])), ""]
        else:
            lines.append(f"{row['id']}: {row['verdict']}  {number_text(row)}".rstrip())
    return lines


def _of_statement(name: str, group: Sequence[Row]) -> Iterator[str]:
    row, found = group[0], scores.statements(group)
    status = found[0]["status"] if found else ""
    yield f"{name}: {status or 'no statement, its claims only inform'}"
    yield from _field("sentence", ", ".join(filter(None, (row["place"], "main claim" * bool(row["main"])))))
    yield from _field("", row["sentence"] or row["statement"])
    if not found:
        return
    yield from _field("since", found[0]["reason"] + others_in_words(found[0]))
    yield from _field("also in", found[0]["also"].replace(" | ", "; and in "))
    yield from _field("evidence", found[0]["evidence"])
    for one in scores.by_settings([row for row in group if not row["informs"]]):
        names = " and ".join(one.names)
        beside = f" ({names})" if names else f" ({one.kind})" if one.kind else ""
        yield from _field("settings", f"{one.verdict} in {one.in_words}{beside}")
    yield from _field("question", row["question"])
    yield from _field("reply", row["reply"])


def others_in_words(statement: Row) -> str:
    """In how many settings beside the printed ones a statement holds, and in which not."""
    hold, ran = int(statement["hold"]), int(statement["others"])
    if not ran:
        return ""
    if hold == ran:
        return f"; it holds in {'the others' if ran == 1 else f'all {ran} others'}"
    if not hold:
        return f"; it holds in none of {ran} others" if ran > 1 else "; it does not hold in the others"
    fail_in = statement["fail_in"].replace(" | ", " and not in ")
    return f"; it holds in {hold} of {ran} others, not in {fail_in}"


def _of_claim(row: Row, rows: Iterable[Row], grounds: str | None) -> Iterator[str]:
    informs = ", which informs and does not count" * bool(row["informs"])
    yield f"{row['id']}: {row['verdict']}{informs}"
    kind = ", ".join(filter(None, (row["kind"], row["unit"])))
    yield from _field("claim", f"{row['statement']} ({kind})")
    yield from _field("settings", grounds or row["options"] or "nothing is left open")
    yield from _field("part of", " and ".join(row["settings"].split()) or "neither printed nor inferred ones")
    yield from _field("replaces", row["replaces"])
    yield from _field("runs", row["needs"] or "none, a formula")
    yield from _field("command", row["command"])
    if row["measured"]:
        on = f"on {row['data']} data" if row["data"] != "none" else "by a formula"
        yield from _field("measured", f"{_number(row, 'measured')} {on}, seeds: {row['seeds']}")
        yield from _field("interval", _interval(row, "ci", "of the mean, at 95 %"))
        yield from _field("", _interval(row, "pi", "in which the published number is to lie"))
    if row["published"]:
        rival = f", rival {_number(row, 'rival')}" if row["rival"] else ""
        yield from _field("published", f"{_number(row, 'published')}{rival}")
    if row["tolerance"]:
        named = {"order": "least effect", "shape": "share", "value": "width"}.get(row["kind"], "tolerance")
        yield from _field(named, _number(row, "tolerance"))
    if row["p_value"]:
        family = sum(all(other[key] == row[key] for key in ("paper", "family", "kind")) for other in rows)
        yield from _field("test", f"p = {_number(row, 'p_value')}, by itself: {row['verdict_single']}")
        corrected = f"p = {_number(row, 'p_holm')}" if row["p_holm"] else "none"
        yield from _field(
            "Holm", f"{corrected} among the {family} {row['kind']}s of {row['artefact']} in these settings"
        )
    if row["twins"]:
        first, second = row["twins"].split()
        yield from _field(
            "twins", f"{first} with the first perturbed runs in place, with the second {second}"
        )
    yield from _field("verdict", ": ".join(filter(None, (row["verdict"], row["reason"]))))
    if not row["reason"]:
        yield from _field("", "its file is of an older version, without reasons; the command measures anew")
    yield from _field("note", row["note"])


def _number(row: Row, name: str) -> str:
    return f"{float(row[name]):.4g}"


def _interval(row: Row, which: str, what: str) -> str:
    if not row[f"{which}_low"]:
        return ""
    return f"[{_number(row, f'{which}_low')}, {_number(row, f'{which}_high')}] {what}"


def _field(name: str, text: str) -> Iterator[str]:
    """Lines with a name before the first; none without a text."""
    for line in textwrap.wrap(text, 96, break_long_words=False, break_on_hyphens=False):
        yield f"    {name:11} {line}"
        name = ""
