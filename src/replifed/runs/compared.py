"""Differences between two runs: columns of histories and tables, tuned values, claims and statements."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from replifed.claims.rules import NOT_YET
from replifed.claims.units import UNITS, tolerance
from replifed.errors import DataError, one_line
from replifed.progress import Progress, silent
from replifed.runs import frames
from replifed.runs.causes import Causes, Found, differing, in_words
from replifed.runs.frames import IDENTICAL, MISSING, MOVED, WITHIN
from replifed.runs.opened import Run

DAMAGED, TURNED = "damaged", "verdict changed"
# From the worst on.
OUTCOMES = (DAMAGED, MISSING, TURNED, MOVED, WITHIN, IDENTICAL)
SOUND = (WITHIN, IDENTICAL)
_ORIGIN = "origin"  # in the place of a column: numbers are equal, and what made them is not
_NO_ENTRY = "no entry"  # of a search's outcome, where the other one has some, even null
_KINDS = {"histories": "history", "tuned": "tuned", "tables": "table"}


class Difference(NamedTuple):
    """Outcome of one part of two runs, or of one of its columns.

    `share` is the largest difference as a multiple of what is allowed.
    """

    kind: str  # history, tuned, table, claim or statement
    name: str
    column: str
    outcome: str
    share: float = 0.0
    text: str = ""
    cause: str = ""
    at: int = -1  # row of a history
    by_perturbed: bool = False  # it is within tolerance since the run differs as much from its perturbed runs


def compare(a: Run, b: Run, progress: Progress = silent) -> list[Difference]:
    """Compare two runs; the worst differences come first.

    Papers that one of them lacks are left out, and so is what a reference does not keep.

    Raises
    ------
    DataError
        They have no paper in common, or are of different scales.
    """
    scales = {run.place: _scale(run) for run in (a, b)}
    if len({*scales.values()} - {""}) > 1:
        text = ", ".join(f"{place} is of scale {scale}" for place, scale in scales.items())
        kept = (
            "; tests/golden/small.csv has the references of small runs" if "small" in scales.values() else ""
        )
        raise DataError(f"{text}: compare runs of one scale{kept}")
    shared = papers(a) & papers(b)
    if not shared:
        raise DataError(f"{a.place} and {b.place} have no paper in common: there is nothing to compare")
    causes = Causes(a, b)
    found: list[Difference] = []
    names = {folder: sorted({*a.of_kind(folder), *b.of_kind(folder)}) for folder in _KINDS}
    number, total = count(), sum(map(len, names.values()))
    for folder, kind in _KINDS.items():
        compared = {"histories": _history, "tuned": _tuned, "tables": _table}[folder]
        for name in names[folder]:
            progress("files compared", next(number), total)
            paper = name.split("/")[1]
            if paper not in shared or not all(run.keeps(folder, paper) for run in (a, b)):
                continue
            if gone := [run for run in (a, b) if name not in run]:
                if paper in gone[0].partial:
                    continue
                found.append(Difference(kind, name, "", MISSING, float("inf"), f"not in {gone[0].place}"))
                continue
            ours, theirs = a.read(name), b.read(name)
            if ours == theirs:
                found.append(Difference(kind, name, "", IDENTICAL))
                continue
            try:
                found += compared(name, ours, theirs, causes)
            except DataError as error:
                found.append(Difference(kind, name, "", DAMAGED, float("inf"), one_line(error)))
    progress("files compared", total, total)
    found = list(_with_causes(found, a, b, causes))
    moved = {one.name for one in found if one.outcome not in (IDENTICAL, MISSING)}
    for kind in ("claim", "statement"):
        found += _rows(kind, shared, a, b, moved, causes)
    return sorted(
        found, key=lambda one: (OUTCOMES.index(one.outcome), -one.share, one.kind, one.name, one.column)
    )


def papers(run: Run) -> set[str]:
    """Return the papers of which a run has parts, or claims."""
    return {name.split("/")[1] for kind in _KINDS for name in run.of_kind(kind)} | _judged(run)


def _judged(run: Run) -> set[str]:
    return {row["paper"] for row in run.rows("claims.csv")} if "claims.csv" in run else set()


def _scale(run: Run) -> str:
    """Return the scale of a run; "" if it does not say, as references do not."""
    rows = run.rows("claims.csv") if "claims.csv" in run else ()
    scales = {row["scale"] for row in rows if row.get("scale")}
    return ", ".join(sorted(scales)) or str(run.entries("settings.json").get("scale", ""))


def left_out(a: Run, b: Run) -> list[str]:
    """Say which papers with claims only one of two runs has; `compare` leaves them out."""
    pairs = ((a, _judged(a) - papers(b)), (b, _judged(b) - papers(a)))
    lines = [
        f"not compared, only in {run.place}: {', '.join(sorted(names))}" for run, names in pairs if names
    ]
    for run, other in ((a, b), (b, a)):
        for paper in sorted(run.partial & papers(other)):
            gone = sum(
                name not in run and name.split("/")[1] == paper
                for kind in _KINDS
                for name in other.of_kind(kind)
            )
            lines.append(f"not made in {run.place}: {gone} files of {paper}")
    return lines


def _history(name: str, a: bytes, b: bytes, causes: Causes) -> Iterator[Difference]:
    from replifed.store.histories import read_history

    (ours, from_a), (theirs, from_b) = (read_history(Path(name), content) for content in (a, b))
    origins = causes.of_histories(name.split("/")[1], from_a, from_b)
    sensitive = "chaotic" in ours and bool(ours["chaotic"].astype(bool).any())
    columns = list(frames.columns(ours, theirs))
    for one in columns:
        text = f"{one.text}; some of its runs are sensitive to rounding" if sensitive else one.text
        found = Difference("history", name, one.name, one.outcome)
        if one.outcome != IDENTICAL:
            found = found._replace(share=one.share, text=text, at=one.at, by_perturbed=one.by_perturbed)
            found = found._replace(cause=in_words(origins))
        yield found
    if all(one.outcome == IDENTICAL for one in columns) and _is_another(origins):
        text = "equal numbers of another origin"
        yield Difference("history", name, _ORIGIN, WITHIN, 0.0, text, in_words(origins))


def _is_another(origins: Found) -> bool:
    """True if two parts were made from something else, on whatever machine."""
    return any(text for aspect, text in origins.items() if aspect != "processor")


def _tuned(name: str, a: bytes, b: bytes, causes: Causes) -> Iterator[Difference]:
    try:
        ours, theirs = json.loads(a), json.loads(b)
        from_a, from_b = (one.pop("meta") for one in (ours, theirs))
        origins = causes.of_histories(name.split("/")[1], from_a, from_b)
        leaves = [dict(_leaves(one)) for one in (ours, theirs)]
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError) as error:
        raise DataError(f"{name}: not the outcome of a search") from error
    names = {**leaves[0], **leaves[1]}
    pairs = {key: tuple(one.get(key, _NO_ENTRY) for one in leaves) for key in names}
    changed = {key: (x, y) for key, (x, y) in pairs.items() if x != y}
    cause = in_words(origins)
    if not changed:
        outcome, column = (WITHIN, _ORIGIN) if _is_another(origins) else (IDENTICAL, "")
        text = "equal values of another origin" if column else ""
        yield Difference("tuned", name, column, outcome, 0.0, text, cause if column else "")
    for key, (x, y) in changed.items():
        share = float("inf")
        if isinstance(x, float) and isinstance(y, float):
            share = abs(x - y) / (frames.RELATIVE * max(abs(x), abs(y)))
        outcome = WITHIN if share <= 1 else MOVED  # of a number against none, the share is none
        yield Difference("tuned", name, key, outcome, share, f"{x} against {y}", cause)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list) and value:
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(one, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _table(name: str, a: bytes, b: bytes, causes: Causes) -> Iterator[Difference]:
    try:
        ours, theirs = frames.read_csv(a), frames.read_csv(b)
    except ValueError as error:  # pandas' own errors and those of decoding are of this class
        raise DataError(f"{name}: not a table: {error}") from error
    for one in frames.columns(ours, theirs):
        yield Difference("table", name, one.name, one.outcome, one.share, one.text)


def _with_causes(found: list[Difference], a: Run, b: Run, causes: Causes) -> Iterator[Difference]:
    """Say of tables which of their runs differ, or what else of their paper does.

    What follows from runs within tolerance is within it, too.
    """
    worst: dict[str, tuple[int, float]] = {}  # place of the outcome, and how far it is off, negative
    excused = set()
    for one in found:
        if one.kind in ("history", "tuned") and one.outcome != IDENTICAL and one.column != _ORIGIN:
            badness = (OUTCOMES.index(one.outcome), -one.share)
            worst[one.name] = min(worst.get(one.name, badness), badness)
            excused |= {one.name} if one.by_perturbed else set()
    settings = [run.entries("settings.json") for run in (a, b)]
    for one in found:
        if one.kind != "table" or one.outcome not in (MOVED, WITHIN):
            yield one
            continue
        known = {*_sources(one.name, settings, worst)} & set(worst)
        used = sorted(known, key=lambda name: (worst[name], name))
        sound = all(OUTCOMES[worst[name][0]] in SOUND for name in used)
        # Rows that are gone, and other words, do not follow.
        followed = excused & set(used) and sound and math.isfinite(one.share)
        paper = one.name.split("/")[1]
        if used:
            more = f" and {len(used) - 1} more" if len(used) > 1 else ""
            why = f"from {used[0]}{more}", differing({"processor": causes.of_paper(paper)["processor"]})
        else:
            because = causes.of_paper(paper)
            kept = all(run.keeps("histories", paper) for run in (a, b)) and not differing(because)
            why = "no run of it is known to differ" if kept else "", in_words(because)
        yield one._replace(
            outcome=WITHIN if followed else one.outcome,  # a table follows its runs
            cause="; ".join(filter(None, why)),
        )


def _sources(table: str, settings: list[dict[str, Any]], known: Iterable[str]) -> Iterator[str]:
    """Yield the histories and searches of an artefact: those that the settings of either run name, or all."""
    paper = table.split("/")[1]
    try:
        stated = [one[paper]["artefacts"].get(Path(table).stem, {}) for one in settings if paper in one]
        if not stated:
            yield from (name for name in known if name.split("/")[1] == paper)
        for artefact in stated:
            for key, form in (("runs", "histories/{}/{}/{}.parquet"), ("tuned", "tuned/{}/{}/{}.json")):
                for experiment, methods in artefact.get(key, {}).items():
                    yield from (form.format(paper, experiment, method) for method in methods)
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"settings.json is damaged: it does not say what {table} is made from") from error


def _rows(
    kind: str, papers: set[str], a: Run, b: Run, moved: set[str], causes: Causes
) -> Iterator[Difference]:
    """Compare the claims on papers, or the status of their statements, with the causes of differences."""
    file, key, verdict = {
        "claim": ("claims.csv", ("id", "data"), "verdict"),
        "statement": ("statements.csv", ("statement_id",), "status"),
    }[kind]
    rows: list[dict[str, dict[str, Any]]] = [{}, {}]  # of each run, by paper and name
    for run, by_paper in zip((a, b), rows, strict=True):
        for row in run.rows(file) if file in run else ():
            if NOT_YET in (row.get("reason"), row.get("status")):
                continue
            by_paper.setdefault(row["paper"], {})[" ".join(row[name] for name in key)] = row
    alone = a.verdicts_alone or b.verdicts_alone
    for paper in sorted(papers):
        ours, theirs = (one.get(paper, {}) for one in rows)
        partly = any(paper in run.partial for run in (a, b))
        if bool(ours) != bool(theirs) and not (alone and kind == "statement") and not partly:
            text = f"{kind}s on it are not in {(b if ours else a).place}"
            yield Difference(kind, paper, "", MISSING, float("inf"), text)
        for name in _comparable(ours, theirs, alone):
            x, y = ours.get(name), theirs.get(name)
            if x is None or y is None:
                if paper in (a if x is None else b).partial:
                    continue
                text = f"not in {(a if x is None else b).place}"
                yield Difference(kind, name, "", MISSING, float("inf"), text)
                continue
            found = _row(kind, verdict, name, x, y)
            if found.outcome != IDENTICAL:
                cause = _of_claim(x, moved) or in_words(causes.of_paper(paper))
                if kind == "claim" and x.get("twins"):
                    cause += "; its runs are sensitive to rounding, as perturbed ones say"
                found = found._replace(cause=cause)
            yield found


def _comparable(ours: Mapping[str, Any], theirs: Mapping[str, Any], alone: bool) -> list[str]:
    """Return the names of lines to compare; `alone` if one of the two is a CSV of references.

    That has no statements, and may have a claim on several choices of data sets, of which a run has one.
    """
    if not (ours and theirs):
        return []
    names = {**ours, **theirs}
    if not alone:
        return [*names]
    ids = [{row["id"] for row in rows.values()} for rows in (ours, theirs)]
    same = ours.keys() & theirs.keys()
    return [key for key, row in names.items() if key in same or not all(row["id"] in one for one in ids)]


def _row(kind: str, verdict: str, name: str, x: Mapping[str, str], y: Mapping[str, str]) -> Difference:
    """Compare two lines on a claim or a statement, `verdict` being the column with what came of it."""
    if x[verdict] != y[verdict]:
        text = f"{x[verdict]} against {y[verdict]}"
        if kind == "claim":
            text += f", measured {x['measured'] or 'nothing'} against {y['measured'] or 'nothing'}"
        return Difference(kind, name, verdict, TURNED, float("inf"), text)
    return _measured(name, x, y) if kind == "claim" else Difference(kind, name, verdict, IDENTICAL)


def _measured(name: str, x: Mapping[str, str], y: Mapping[str, str]) -> Difference:
    was, now = x["measured"], y["measured"]
    if was == now:
        return Difference("claim", name, "measured", IDENTICAL)
    unit = x.get("unit") or y.get("unit", "")  # references have none
    if not (was and now and math.isfinite(float(was)) and math.isfinite(float(now))) or unit not in UNITS:
        text = f"{was or 'nothing'} against {now or 'nothing'}"
        return Difference("claim", name, "measured", MOVED, float("inf"), text)
    share = abs(float(was) - float(now)) / tolerance(float(now), unit)
    outcome = MOVED if share > 1 else WITHIN
    text = f"{float(was):.6g} against {float(now):.6g} {unit}"
    return Difference("claim", name, "measured", outcome, share, text)


def _of_claim(row: Mapping[str, str], moved: set[str]) -> str:
    """Name the first of the differing histories that a claim is measured on."""
    for key in row.get("needs", "").split():
        kind, _, rest = key.partition(":")
        paper = row["paper"]
        name = f"histories/{paper}/{rest}.parquet" if kind == "run" else f"tuned/{paper}/{rest}.json"
        if name in moved:
            return f"from {name}"
    return ""


def grouped(found: list[Difference]) -> list[Difference]:
    """Join the columns of a part with the same outcome into its worst one; what is identical is left out."""
    worst: dict[tuple[str, str, str], Difference] = {}
    others: dict[tuple[str, str, str], int] = {}
    for one in found:
        key = (one.kind, one.name, one.outcome)
        if one.outcome == IDENTICAL:
            continue
        if key in worst:
            others[key] = others.get(key, 0) + 1
        worst.setdefault(key, one)
    return [
        one._replace(column=f"{one.column} and {others[key]} more" if key in others else one.column)
        for key, one in worst.items()
    ]


def as_text(lines: list[Difference]) -> str:
    """Three lines a difference: where, what, and why."""
    texts = []
    for one in lines:
        texts.append(f"{one.outcome:16}  {one.kind} {one.name} {one.column}".rstrip())
        texts += [f"{'':18}{text}" for text in (one.text, one.cause) if text]
    return "\n".join([*texts, ""] if texts else [])


def as_markdown(lines: list[Difference]) -> str:
    """A table of Markdown."""
    rows = [("outcome", "what", "name", "column", "A against B", "cause"), ("---",) * 6]
    rows += [(one.outcome, one.kind, f"`{one.name}`", one.column, one.text, one.cause) for one in lines]
    table = "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows)
    return f"{table}\n" if lines else ""


def summary(found: list[Difference]) -> str:
    """A line a kind: how many columns, values, claims and statements have which outcome."""
    names = {"history": "columns of histories", "tuned": "tuned values", "table": "columns of tables"}
    lines = []
    for kind in ("history", "tuned", "table", "claim", "statement"):
        counts = Counter(one.outcome for one in found if one.kind == kind)
        if counts:
            said = ", ".join(
                f"{counts[outcome]} {outcome}" for outcome in reversed(OUTCOMES) if counts[outcome]
            )
            lines.append(f"{names.get(kind, f'{kind}s')}: {said}")
    bad = sum(one.outcome not in SOUND for one in found)
    lines.append("nothing moved" if not bad else f"{bad} of {len(found)} differ")
    return "\n".join(lines)
