"""Reference measurements of the claims, which a change of the code must not move unnoticed.

A reference is a CSV with one line per claim, for one choice of data sets: what was measured, the verdict,
and how far a later run may be off; or the folder of the reference run (`runs.kept`), whose claims.csv has all
that is known of each. Verdicts against the papers are another matter (`verdicts`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from replifed.claims import tables
from replifed.claims.claim import Claim
from replifed.claims.files import read
from replifed.claims.rules import NOT_YET, UNCHECKED
from replifed.claims.units import UNITS, tolerance
from replifed.claims.verdicts import COLUMNS as CLAIM_COLUMNS
from replifed.claims.verdicts import described
from replifed.errors import DataError

COLUMNS = (
    *("id", "data", "measured", "ci_low", "ci_high", "pi_low", "pi_high", "p_holm", "verdict", "tolerance"),
)
# Of these what a run has found.
_FOUND = COLUMNS[1:-1]
# Of a claim that is newer than the run.
_WAITING = {"data": "none", "verdict": UNCHECKED, "reason": NOT_YET}
# Of claims.csv what a paper says of a claim's sentence and settings, whatever was measured.
_SAID = (
    *("statement_id", "place", "sentence", "part", "main", "informs", "evidence", "question", "reply"),
    *("options", "sources", "settings", "source", "departure", "replaces", "fitted_on"),
)

File = str | os.PathLike[str]
Row = Mapping[str, str]


def compare(claims: File, golden: File) -> tuple[int, list[str]]:
    """Compare measured claims, a file from `files.collect`, with their references.

    Returns the number of claims that have a reference for their kind of data, and one line for each error:
    off its reference by more than the tolerance, or held there and not now, or measured there and not now.
    """
    pairs = _pairs(read(claims), golden)
    lines = [f"{key}: {moved}" for key, row, reference in pairs if (moved := _moved(row, reference))]
    return sum(row is not None for _, row, _ in pairs), lines


def new(claims: File, golden: File) -> list[str]:
    """Measured claims that have no reference, for whatever data, by id."""
    referenced = {row["id"] for row in known(golden).values()}
    return [row["id"] for row in read(claims) if row["id"] not in referenced]


def _pairs(rows: Sequence[Row], golden: File) -> list[tuple[str, Row | None, Row]]:
    """Claims with their references, by key; None in the place of a claim that its paper no longer makes."""
    references = known(golden)
    measured = {_key(row): row for row in rows if _key(row) in references}
    keys = [*measured, *_gone(rows, references)]
    return [(key, measured.get(key), references[key]) for key in keys]


def _gone(rows: Iterable[Row], references: Mapping[str, Row]) -> list[str]:
    """References of the rows' papers that no claim has any more, whatever its data."""
    ids, papers = {row["id"] for row in rows}, {row["paper"] for row in rows}
    return [
        key
        for key, reference in references.items()
        if reference["id"].split(".")[0] in papers and reference["id"] not in ids
    ]


def _moved(row: Row | None, reference: Row) -> str:
    """Difference of a claim to its reference in words; "" if it is as good."""
    if row is None:
        return "no claim is called so any more"
    was, now, tolerated = reference["measured"], row["measured"], reference["tolerance"]
    if bool(was) != bool(now):
        return f"measured {now or 'nothing'}, reference {was or 'nothing'}"
    if was and not abs(float(now) - float(was)) <= float(tolerated):  # NaN is no number, and moved
        return f"measured {float(now):.6g}, reference {float(was):.6g}, tolerance {float(tolerated):.3g}"
    held = f"{row['verdict']}, but {reference['verdict']} in the reference"
    return held if _holds_no_longer(row, reference) else ""


# The run at the papers' scale; of other scales, numbers alone are kept.
FOLDER = Path("reference")


def reference_of(claims: Iterable[Row]) -> Path | None:
    """Reference of the claims' scale in the working folder, if there is one."""
    scales = {row["scale"] for row in claims}
    named = [FOLDER if scale == "paper" else Path("tests/golden", f"{scale}.csv") for scale in scales]
    return next((path for path in named if path.exists()), None)


def lost(claims: Sequence[Row], golden: File) -> list[str]:
    """Claims that held in the reference, for the same kind of data, and do not hold now: one line each."""
    return [
        f"{key}: {row['verdict'] if row else 'gone'}, but {reference['verdict']} in {os.fspath(golden)}"
        for key, row, reference in _pairs(claims, golden)
        if _holds_no_longer(row, reference)
    ]


def verdicts(claims: Iterable[Claim], golden: File) -> list[dict[str, str]]:
    """Lines of claims.csv, as far as they are known without measuring, with what a reference has measured."""
    references = {row["id"]: row for row in known(golden).values()}
    rows = []
    for claim in claims:
        found = references.get(claim.id)
        waiting = dict.fromkeys((*_FOUND, "effect", "p_value", "seeds"), "") | _WAITING
        known_of_it = waiting if found is None else {name: found.get(name, "") for name in waiting}
        rows.append(_stated(claim) | known_of_it)
    return rows


def restated(claims: Iterable[Claim], rows: Iterable[Row]) -> list[dict[str, str]]:
    """Lines of claims.csv as measured, but with what the papers say now of sentences and settings.

    Those of claims that are gone are left out; new ones stand behind the others of their paper, not run yet.
    """
    stated = {claim.id: _stated(claim) for claim in claims}
    measured = {row["id"]: row for row in rows if row["id"] in stated and not waits(row)}
    papers = [*dict.fromkeys(row["paper"] for row in measured.values())]
    lines = [{**row, **{name: stated[key][name] for name in _SAID}} for key, row in measured.items()]
    lines += [
        {**row, **_WAITING, "scale": "paper"}
        for key, row in stated.items()
        if row["paper"] in papers and key not in measured
    ]
    blank = dict.fromkeys(CLAIM_COLUMNS, "")
    return sorted((blank | line for line in lines), key=lambda line: papers.index(line["paper"]))


def waits(row: Row) -> bool:
    """True of a claim that is newer than the run."""
    return row.get("reason") == NOT_YET


def _stated(claim: Claim) -> dict[str, str]:
    """What is known of a claim without measuring."""
    return {name: "" if value is None else str(value) for name, value in described(claim).items()}


def _holds_no_longer(row: Row | None, reference: Row) -> bool:
    return reference["verdict"] == "holds" and (row is None or row["verdict"] != "holds")


def accept(claims: File, golden: File) -> list[str]:
    """Make what was measured the reference, a CSV; those for other kinds of data, and of other papers, stay.

    Those of claims that a paper no longer makes go. Returns one line for each reference that is new or has
    moved, old, new and difference, and for each other verdict.
    """
    references, moved = changes(claims, golden)
    tables.write(golden, COLUMNS, (references[key] for key in sorted(references)))
    return moved


def changes(claims: File, golden: File) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Lines of a reference once the claims are accepted, by key, and what `accept` says of them."""
    references = known(golden) if Path(golden).exists() else {}
    rows, moved = read(claims), []
    for row in rows:
        key, now, before = _key(row), row["measured"], references.get(_key(row))
        if before is None:
            moved.append(f"{key}: new, {now or 'nothing'}")
        elif (old := before["measured"]) != now:
            change = f", difference {float(now) - float(old):+.3g}" if old and now else ""
            moved.append(f"{key}: {old or 'nothing'} -> {now or 'nothing'}{change}")
        if before is not None and before["verdict"] != row["verdict"]:
            moved.append(f"{key}: {before['verdict']} -> {row['verdict']}")
        references[key] = {column: row[column] for column in COLUMNS} | {"tolerance": _tolerance(row)}
    for key in sorted(_gone(rows, references)):
        moved.append(f"{key}: gone, no claim is called so")
        del references[key]
    return references, moved


def _tolerance(row: Row) -> str:
    if not row["measured"] or row["kind"] in ("identity", "shape"):
        return "0"
    if row["unit"] not in UNITS:
        raise DataError(f"{row['id']}: a number without a unit has no tolerance")
    return f"{tolerance(float(row['measured']), row['unit']):.3g}"


def _key(row: Row) -> str:
    return f"{row['id']} ({row['data']})"


def known(path: File) -> dict[str, dict[str, str]]:
    """Read the lines of a reference, by "ID (DATA)", without claims that wait for a run."""
    if Path(path).is_dir():
        rows = read(Path(path, "claims.csv"))
        rows = [{**row, "tolerance": _tolerance(row)} for row in rows if not waits(row)]
    else:
        rows = tables.read(path, COLUMNS, "is no list of references")
        for row in rows:
            if row["measured"] and not all(map(tables.is_number, (row["measured"], row["tolerance"]))):
                raise DataError(f"{path}: {row['id']}: measured or tolerance is no number; restore the file")
    return {_key(row): row for row in rows}
