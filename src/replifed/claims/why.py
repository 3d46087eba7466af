"""What decided a verdict, or the status of a statement, from lines of claims.csv."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from replifed.claims import scores
from replifed.claims.claim import FITTED_ON_IT
from replifed.claims.files import number, number_text, unit_text, width
from replifed.claims.scores import Row
from replifed.errors import ConfigError, counted, unknown_name

# Claims that are named, of the printed or inferred settings and of others; and settings that are.
_MOST, _MOST_OF_OTHERS, _FEW = 3, 1, 2
_ASKS_ELSE = ", which asks another question"


def why(
    rows: Sequence[Row], name: str, grounds: Callable[[str], Mapping[str, str]], everything: bool = False
) -> list[str]:
    """Lines on a statement with the claims that decide it in each of its settings, or on a claim, in full.

    A name of both is the statement's. A claim that alone decided the status is shown in full, and with
    `everything` each claim of the statement.
    `grounds` gives what speaks for and against the options of each claim of a paper, by its id.
    """
    group = [row for row in rows if row["statement_id"] == name]
    if not group:
        of_claim = [row for row in rows if row["id"] == name]
        if not of_claim:
            known = {row[key] for row in rows for key in ("id", "statement_id")}
            raise ConfigError(unknown_name("claim or statement", name, known))
        group = [row for row in rows if row["statement_id"] == of_claim[0]["statement_id"]]
        shown = of_claim
    else:
        shown = _deciding(group)
    lines = [*_of_statement(group[0]["statement_id"], group), ""]
    if everything:
        shown = [*shown, *(row for row in group if row not in shown)]
    elif len(shown) > 1:
        shown = []
    for row in shown:
        lines += [*_of_claim(row, rows, grounds(row["paper"]).get(row["id"])), ""]
    if left := [row["id"] for row in group if row not in shown]:
        lines.append(f"{counted(len(left), 'claim')} not shown in full: --all")
    return lines


def _deciding(group: Sequence[Row]) -> list[Row]:
    """Claims that decided a statement's status: the worst of the settings that did, or those that inform."""
    found = scores.statements(group)
    named = found[0]["claims"].split() if found else [row["id"] for row in group]
    return scores.worst([row for row in group if row["id"] in named])


def _of_statement(name: str, group: Sequence[Row]) -> Iterator[str]:
    row, found = group[0], scores.statements(group)
    status = found[0]["status"] if found else ""
    yield f"{name}: {status or 'no status, since none of its claims counts'}"
    yield from _field("sentence", ", ".join(filter(None, (row["place"], "main claim" * bool(row["main"])))))
    yield from _field("", row["sentence"] or row["statement"])
    if not found:
        return
    yield from _field("since", found[0]["reason"] + others_in_words(found[0]))
    yield from _field("evidence", found[0]["evidence"])
    settings = scores.by_settings([row for row in group if not row["informs"]])
    # The printed ones first, then the inferred: those of the most names, of which "printed" sorts last.
    settings.sort(key=lambda one: (bool(one.names), max(one.names, default="")), reverse=True)
    for one in settings:
        names = " and ".join(one.names)
        beside = "" if one is settings[0] else one.beside(settings[0].options)
        text = f"{one.verdict} {'with' if beside else 'in'} {beside or one.in_words}"
        fitted = f" (fitted on {one.fitted})" * bool(one.fitted)
        yield from _field(names or "other", f"{text}{fitted}{_ASKS_ELSE * (one.kind == 'different')}")
        worst, most = scores.worst(one.rows), _MOST if one.names else _MOST_OF_OTHERS
        for row in worst[:most]:
            yield from _field("", f"by {row['id']}: {number_text(row) or row['verdict']}")
        if len(worst) > most:
            yield from _field("", f"and by {len(worst) - most} more of {counted(len(one.rows), 'claim')}")
    yield from _field("question", row["question"])
    yield from _field("reply", row["reply"])


def others_in_words(statement: Row) -> str:
    """In how many settings beside the printed ones a statement holds, and in which not."""
    hold, ran = int(statement["hold"]), int(statement["others"])
    if not ran:
        return ""
    if hold == ran:
        return f"; it also holds in {'the' if ran == 1 else f'all {ran}'} other settings"
    if not hold:
        return (
            f"; it holds in none of {ran} other settings"
            if ran > 1
            else "; it does not hold in the other settings"
        )
    fail_in = statement["fail_in"].split(" | ")
    named = f", not in {' and not in '.join(fail_in)}" * (len(fail_in) <= _FEW)
    return f"; it holds in {hold} of {ran} other settings{named}"


def also_in_words(statement: Row) -> str:
    """With which settings a statement holds beyond its status; of many their number."""
    also = statement["also"].split(" | ") if statement["also"] else []
    if len(also) <= _FEW:
        return f"; it also holds with {'; with '.join(also)}, which does not count" * bool(also)
    fitted = sum(one.endswith(f"fitted on {FITTED_ON_IT})") for one in also)
    of_it = f", {'all' if fitted == len(also) else fitted} fitted on it" * bool(fitted)
    return f"; it also holds in {len(also)} settings{of_it}, which do not count (`--why` lists them)"


def _of_claim(row: Row, rows: Iterable[Row], grounds: str | None) -> Iterator[str]:
    informs = ", which does not count for the status" * bool(row["informs"])
    yield f"{row['id']}: {row['verdict']}{informs}"
    kind = ", ".join(filter(None, (row["kind"], unit_text(row))))
    yield from _field("claim", f"{row['statement']} ({kind})")
    yield from _field("settings", grounds or row["options"] or "nothing is left open")
    yield from _field(
        "part of", " and ".join(row["settings"].split()) or "neither printed nor inferred settings"
    )
    yield from _field("replaces", row["replaces"])
    yield from _field("runs", row["needs"] or "none: it is a formula")
    yield from _field("command", row["command"])
    if row["measured"]:
        on = f"on {row['data']} data" if row["data"] != "none" else "by a formula"
        yield from _field("measured", f"{number(row, 'measured')} {on}, seeds: {row['seeds']}")
        yield from _field("interval", _interval(row, "ci", "of the mean, at 95 %"))
        yield from _field("", _interval(row, "pi", "for the published number, at 95 %"))
    if row["published"]:
        rival = f", rival {number(row, 'rival')}" if row["rival"] else ""
        yield from _field("published", f"{number(row, 'published')}{rival}")
    if row["tolerance"]:
        named = {"order": "least effect", "shape": "share", "value": "width"}.get(row["kind"], "tolerance")
        yield from _field(named, number(row, "tolerance"))
    if row["p_value"]:
        family = sum(all(other[key] == row[key] for key in ("paper", "family", "kind")) for other in rows)
        yield from _field("test", f"p = {number(row, 'p_value')}, alone: {row['verdict_single']}")
        corrected = f"p = {number(row, 'p_holm')}" if row["p_holm"] else "none"
        yield from _field(
            "Holm", f"{corrected} among the {family} {row['kind']}s of {row['artefact']} in these settings"
        )
    if row["twins"]:
        first, second = row["twins"].split()
        yield from _field("perturbed", f"{first} with the first perturbed runs, {second} with the second")
    yield from _field("verdict", ": ".join(filter(None, (row["verdict"], row["reason"]))))
    if not row["reason"]:
        yield from _field(
            "", "its file is from an older version, without reasons; the command measures it again"
        )
    yield from _field("note", row["note"])


def _interval(row: Row, which: str, what: str) -> str:
    if not row[f"{which}_low"]:
        return ""
    return f"[{number(row, f'{which}_low')}, {number(row, f'{which}_high')}] {what}"


def _field(name: str, text: str) -> Iterator[str]:
    """Lines with a name before the first; none without a text."""
    for line in textwrap.wrap(text, width() - 16, break_long_words=False, break_on_hyphens=False):
        yield f"    {name:11} {line}"
        name = ""
