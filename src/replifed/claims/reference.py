"""Reference measurements of the claims, which a change of the code must not move unnoticed.

A reference is a CSV with one line a claim, for one choice of data sets: what was measured, the verdict,
and how far a later run may be off. Verdicts against the papers are another matter (`verdicts`).
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

from replifed.claims import tables
from replifed.claims.verdicts import read
from replifed.errors import DataError

COLUMNS = ("id", "data", "measured", "verdict", "tolerance")


class Rule(NamedTuple):
    """How far a number may be off: a `share` of it, `most` at most, and `least` where it is nearly zero."""

    share: float
    most: float
    least: float


# By unit. Another processor's rounding changes the last bit of a product. That moves smooth quantities
# hardly, and others by what hangs on one comparison. No share reaches a tenth, except that of rounds: a
# change by two of them is always found.
RULES = {
    # Hard thresholding may swap a coordinate of a support, which costs a seed a round or two.
    "rounds": Rule(0.4, 1.5, 0.1),
    # One a round and client, over hundreds of rounds: a few rounds more or less.
    "count": Rule(0.05, math.inf, 0.1),
    # A spectrum on the edge between two allocations moves whole bits, and those must be found.
    "bits": Rule(0.05, 0.5, 1e-6),
    # Swapped coordinates move a curve by a few per cent; near machine precision by half of what is left.
    "decades": Rule(0.08, 0.2, 1e-5),
    # As decades, in natural logarithms.
    "e-folds": Rule(0.08, 0.4, 1e-5),
    # Quotients of mean rounds or errors, either of which moves by a few per cent.
    "ratio": Rule(0.08, math.inf, 1e-5),
    # A fit through logarithms: their common error leaves it alone.
    "exponent": Rule(0.05, 0.02, 1e-5),
    # A sample next to a decision boundary, or a round of many: a few per cent.
    "share": Rule(0.08, 0.02, 1e-6),
    # Smooth iterations; what a fit picks as its last round moves the third digit. Equal rates differ in the
    # seventh.
    "rate": Rule(0.08, 0.002, 1e-5),
    # Sums over samples, after runs on the same random numbers.
    "objective": Rule(0.05, math.inf, 1e-6),
    # Means over runs on the same random numbers, down to the smallest noise.
    "distance": Rule(0.05, math.inf, 1e-9),
    # A decomposition is exact to twelve digits; which round is nearest may change.
    "eigenvalue": Rule(0.05, math.inf, 1e-6),
    # The same point or another one: only printed digits may differ.
    "grid": Rule(1e-9, math.inf, 1e-12),
}


def compare(claims: str | os.PathLike[str], golden: str | os.PathLike[str]) -> tuple[int, list[str]]:
    """Compare measured claims with their references.

    Parameters
    ----------
    claims : path-like
        From `verdicts.collect`.
    golden : path-like

    Returns
    -------
    compared : int
        Claims that have a reference for their kind of data.
    faults : list of str
        One line for each that is off its reference by more than the tolerance, or that held in the
        reference and does not hold now, or that was measured there and is not now.
    """
    references = _read(golden)
    compared, faults = 0, []
    for row in read(claims):
        reference = references.get((row["id"], row["data"]))
        if reference is None:
            continue
        compared += 1
        was, now = reference["measured"], row["measured"]
        if bool(was) != bool(now):
            faults.append(
                f"{row['id']} ({row['data']}): measured {now or 'nothing'}, reference {was or 'nothing'}"
            )
        elif was and abs(float(now) - float(was)) > float(reference["tolerance"]):
            faults.append(
                f"{row['id']} ({row['data']}): measured {float(now):.6g}, reference {float(was):.6g}, "
                f"tolerance {float(reference['tolerance']):.3g}"
            )
        elif _holds_no_longer(row, reference):
            faults.append(f"{row['id']} ({row['data']}): {row['verdict']}, but reproduced in the reference")
    return compared, faults


def reference_of(claims: str | os.PathLike[str]) -> Path | None:
    """The reference of the claims' scale in the working folder, if there is one."""
    named = [Path("tests/golden", f"{scale}.csv") for scale in {row["scale"] for row in read(claims)}]
    return next((path for path in named if path.is_file()), None)


def lost(claims: str | os.PathLike[str], golden: str | os.PathLike[str]) -> list[str]:
    """Claims that held in the reference, for the same kind of data, and do not hold now: one line each."""
    references = _read(golden)
    return [
        f"{row['id']} ({row['data']}): {row['verdict']}, but reproduced in {os.fspath(golden)}"
        for row in read(claims)
        if _holds_no_longer(row, references.get((row["id"], row["data"]), row))
    ]


def _holds_no_longer(row: dict[str, str], reference: dict[str, str]) -> bool:
    return reference["verdict"] == "reproduced" and row["verdict"] != "reproduced"


def accept(claims: str | os.PathLike[str], golden: str | os.PathLike[str]) -> list[str]:
    """Make what was measured the reference; references for other kinds of data, and of other papers, stay.

    Those of claims that a paper no longer makes go.

    Returns
    -------
    list of str
        One line for each reference that is new or has moved: old, new and difference.
    """
    references = _read(golden) if Path(golden).exists() else {}
    moved = []
    for row in read(claims):
        key, now = (row["id"], row["data"]), row["measured"]
        old = references.get(key, {}).get("measured")
        if old is None:
            moved.append(f"{key[0]} ({key[1]}): new, {now or 'nothing'}")
        elif old != now:
            change = f", difference {float(now) - float(old):+.3g}" if old and now else ""
            moved.append(f"{key[0]} ({key[1]}): {old or 'nothing'} -> {now or 'nothing'}{change}")
        references[key] = {
            "id": row["id"],
            "data": row["data"],
            "measured": now,
            "verdict": row["verdict"],
            "tolerance": _tolerance(row),
        }
    ids, papers = ({row[column] for row in read(claims)} for column in ("id", "paper"))
    for key in sorted(references):
        if key[0].split(".")[0] in papers and key[0] not in ids:
            moved.append(f"{key[0]} ({key[1]}): gone, no claim is called so")
            del references[key]
    tables.write(golden, COLUMNS, (references[key] for key in sorted(references)))
    return moved


def _tolerance(row: dict[str, str]) -> str:
    """How far another processor's rounding may move a measurement; 0 for what holds or does not hold."""
    if not row["measured"] or row["kind"] in ("identity", "shape"):
        return "0"
    if row["unit"] not in RULES:
        raise DataError(f"{row['id']}: a number without a unit has no tolerance")
    return f"{tolerance(float(row['measured']), row['unit']):.3g}"


def tolerance(measured: float, unit: str) -> float:
    """How far another processor's rounding may move a number, by the rule of its unit."""
    rule = RULES[unit]
    return max(min(rule.most, rule.share * abs(measured)), rule.least)


def _read(path: str | os.PathLike[str]) -> dict[tuple[str, str], dict[str, str]]:
    rows = tables.read(path, COLUMNS, "is no list of references")
    return {(row["id"], row["data"]): row for row in rows}
