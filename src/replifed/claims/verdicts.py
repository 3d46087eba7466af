"""Claims of the papers, compared with what was measured.

The rules are fixed, and so are tolerances and readings before anything is run:

* a `value` is reproduced if the mean over seeds is within the tolerance of the published number and
  the half-width of its 95 % interval is at most the tolerance;
* an `order` is reproduced if the 95 % interval of the paired differences lies on the claimed side of zero;
* a `shape` is reproduced if it holds in the stated share of cases, all by default;
* an `identity` is reproduced if it holds without exception;
* where a run hangs on rounding (`replifed.twins`), orders, shapes and counts are `inconclusive`;
* an interval too wide to tell makes the verdict `inconclusive`; everything else `deviates`;
* claims on surrogate data, and those without a number or an order, stay `unchecked`.
"""

from __future__ import annotations

import math
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replifed.claims import tables
from replifed.errors import ConfigError, DataError, ReplifedError, unknown_name
from replifed.intervals import mean_interval

COLUMNS = (
    "id",
    "paper",
    "artefact",
    "statement",
    "kind",
    "reading",
    "published",
    "measured",
    "unit",
    "ci_low",
    "ci_high",
    "tolerance",
    "verdict",
    "data",
    "scale",
    "seeds",
    "note",
)
VERDICTS = ("reproduced", "deviates", "inconclusive", "unchecked")
# From the paper's own to none of it; a claim is as good as the worst of its data.
DATA_KINDS = ("synthetic", "original", "substitute", "surrogate")
# What a number is one of. Differences have the unit of what they are differences of.
UNITS = {
    "rounds": "rounds of communication",
    "count": "how often something was computed",
    "bits": "whole bits",
    "decades": "differences of decimal logarithms",
    "e-folds": "differences of natural logarithms",
    "ratio": "a quantity as a multiple of another",
    "exponent": "slope between two logarithms",
    "share": "part of a whole, between 0 and 1",
    "rate": "factor by which an error shrinks each round, between 0 and 1",
    "objective": "value of the objective",
    "distance": "norm of a difference of models",
    "eigenvalue": "eigenvalues of a Hessian",
    "grid": "a point of a grid of parameters",
}


# Units of what is counted.
COUNTED = ("rounds", "count", "ratio")


class NotMeasurableError(ReplifedError):
    """The runs at hand cannot answer a claim (a cut-down grid, say); the message says why."""


@dataclass(frozen=True)
class Measured:
    """What a claim's `measure` returns.

    Attributes
    ----------
    values : array, shape (n,)
        One per seed: numbers for a `value`; for an `order` paired differences, positive on the claimed
        side; booleans, one per seed or case, for a `shape` or an `identity`. Never NaN or infinite.
    bounds : int array, shape (n,)
        0 where the value is exact. 1 where the run ended before it was known and the truth is at least
        the value; -1 where it is at most the value. All 0 by default.
    shown : float, optional
        Number for the column `measured` instead of the mean or the share.
    seeds : int, optional
        Repetitions behind it; the number of values by default.
    note : str
    chaotic : bool
        Whether one of the runs behind it hangs on rounding (`replifed.twins`).
    """

    values: NDArray
    bounds: NDArray = field(default=None)  # type: ignore[arg-type]
    shown: float | None = None
    seeds: int | None = None
    note: str = ""
    chaotic: bool = False

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        bounds = (
            np.zeros(len(values), dtype=int) if self.bounds is None else np.asarray(self.bounds, dtype=int)
        )
        if values.ndim != 1 or not len(values) or bounds.shape != values.shape:
            raise ValueError("values and bounds must be lists of one length, with at least one entry")
        if not np.isfinite(values.astype(float)).all():
            raise ValueError(f"a measurement must be finite; mark what was not reached by `bounds`: {values}")
        if not np.isin(bounds, (-1, 0, 1)).all():
            raise ValueError(f"bounds must be -1, 0 or 1: {bounds}")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "bounds", bounds)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A checkable statement of a paper.

    Parameters
    ----------
    id : str
        Unique over all papers and readings.
    paper, artefact : str
        Where it belongs; `artefact` is the name of a target.
    statement : str
        In plain words, close to the paper's.
    kind : {"value", "order", "shape", "identity"}
    reading : str
        Which of the ways to read the paper this row takes; empty if there is one only.
    published : float, optional
        The paper's number, for a `value`.
    tolerance : float, optional
        For a `value`, as an absolute difference. For a `shape`, the share of cases in which it must hold.
    tolerance_reason : str
    needs : tuple of str
        Keys of the inputs, "run:EXPERIMENT/METHOD" or "tuned:EXPERIMENT/METHOD" or "partition:EXPERIMENT".
    unit : str
        One of `UNITS`, for a `value` or an `order`; a `shape` and an `identity` have none.
    measure : callable, optional
        Maps the inputs to a `Measured`, or to a plain array of its values. None if there is nothing to
        measure; the claim then stays unchecked.
    note : str
    shared : str
        What all seeds have in common where they do not draw their own, such as "one split"; shown behind
        their number.
    """

    id: str
    paper: str
    artefact: str
    statement: str
    kind: Literal["value", "order", "shape", "identity"]
    reading: str = ""
    published: float | None = None
    tolerance: float | None = None
    tolerance_reason: str = ""
    needs: tuple[str, ...] = ()
    unit: str = ""
    measure: Callable[[Any], Measured | ArrayLike] | None = None
    note: str = ""
    shared: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ("value", "order", "shape", "identity"):
            raise ValueError(f"{self.id}: unknown kind {self.kind!r}")
        if self.unit and self.unit not in UNITS:
            raise ValueError(f"{self.id}: unknown unit {self.unit!r}")
        if self.unit and self.kind in ("shape", "identity"):
            raise ValueError(f"{self.id}: what holds or does not hold has no unit")
        if self.measure is not None and self.kind == "value":
            if self.published is None or self.tolerance is None or not self.tolerance >= 0:
                raise ValueError(f"{self.id}: a value needs a published number and a tolerance")
            if not self.tolerance_reason:
                raise ValueError(f"{self.id}: the tolerance needs a reason")
        if self.kind == "shape" and not 0 < self.share <= 1:
            raise ValueError(f"{self.id}: a share must be above 0 and at most 1")

    @property
    def share(self) -> float:
        """Share of cases in which a `shape` must hold."""
        return 1.0 if self.tolerance is None else self.tolerance

    @property
    def experiments(self) -> list[str]:
        """Experiments whose results the claim needs."""
        return list(dict.fromkeys(key.split(":", 1)[1].split("/")[0] for key in self.needs))


class Judged(NamedTuple):
    """A verdict with the numbers behind it; None where there is no such number."""

    verdict: str
    measured: float | None
    low: float | None
    high: float | None


def judge(claim: Claim, measurement: Measured) -> Judged:
    """Apply the rules to one measurement, real data or not.

    Notes
    -----
    A censored value (see `Measured.bounds`) enters the mean as its bound, and counts only for a verdict
    that stays the same however far beyond its bound the truth lies. Where runs hang on rounding, so do counts
    and which of two is ahead; values get their verdict from their distribution over seeds.
    """
    judged = _judge(claim, measurement)
    counted = claim.kind != "value" or claim.unit in COUNTED
    return judged._replace(verdict="inconclusive") if measurement.chaotic and counted else judged


def _judge(claim: Claim, measurement: Measured) -> Judged:
    if claim.kind in ("shape", "identity"):
        holds = measurement.values.astype(bool)
        share = float(holds.mean())
        need = claim.share if claim.kind == "shape" else 1.0
        # A share such as 0.8 of 5 must not fail for the last bit of 0.8.
        verdict = "reproduced" if share >= need - 1e-12 else "deviates"
        return Judged(verdict, share if measurement.shown is None else measurement.shown, None, None)
    mean, low, high = mean_interval(measurement.values.astype(float))
    if claim.kind == "order":
        verdict = _judge_order(low, high, measurement.bounds)
    else:
        assert claim.published is not None and claim.tolerance is not None  # as every claim of a value has
        verdict = _judge_value(claim.published, claim.tolerance, mean, low, high, measurement.bounds)
    known = math.isfinite(low)
    return Judged(
        verdict,
        mean if measurement.shown is None else measurement.shown,
        low if known else None,
        high if known else None,
    )


def _judge_value(
    published: float, tolerance: float, mean: float, low: float, high: float, bounds: NDArray
) -> str:
    above, below = mean > published + tolerance, mean < published - tolerance
    if bounds.any():
        # The truth lies beyond the bounds, by an unknown distance.
        further = (above and low > published + tolerance and (bounds >= 0).all()) or (
            below and high < published - tolerance and (bounds <= 0).all()
        )
        return "deviates" if further else "inconclusive"
    half = (high - low) / 2
    # Floating-point subtraction makes 6.5 - 5 a hair more than 1.5.
    slack = 1e-12 * max(abs(published), tolerance, 1e-300)
    if abs(mean - published) <= tolerance + slack and half <= tolerance + slack:
        return "reproduced"
    # However wide, an interval that stays clear of every tolerated value is conclusive.
    clear = low > published + tolerance or high < published - tolerance
    return "inconclusive" if half > tolerance + slack and not clear else "deviates"


def _judge_order(low: float, high: float, bounds: NDArray) -> str:
    if low > 0:
        # Differences that are in truth smaller than their bound could end on the other side.
        return "inconclusive" if (bounds < 0).any() else "reproduced"
    if high < 0 or low == high == 0:
        return "inconclusive" if (bounds > 0).any() else "deviates"
    return "inconclusive"


def measure(claims: Sequence[Claim], inputs: Any, scale: str):
    """Measure and judge claims.

    Parameters
    ----------
    claims : sequence of Claim
    inputs : Inputs
        What `papers.inputs` offers: has(key), data_kind(experiment), and what the claims' measures call.
    scale : str
        "paper", or the name of the cut-down settings.

    Returns
    -------
    DataFrame
        One line a claim, with `COLUMNS`. Numbers that do not exist are missing.
    """
    import pandas as pd

    ids = [claim.id for claim in claims]
    doubled = sorted({name for name in ids if ids.count(name) > 1})
    if doubled:
        raise ValueError(f"claims with the same id: {', '.join(doubled)}")
    rows = [_row(claim, inputs, scale) for claim in claims]
    numbers = ("published", "measured", "ci_low", "ci_high", "tolerance")
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(numbers, float))


def _row(claim: Claim, inputs: Any, scale: str) -> dict[str, Any]:
    missing = [key for key in claim.needs if not inputs.has(key)]
    notes = [claim.note]
    judged, seeds, data = Judged("unchecked", None, None, None), 0, "none"
    if missing:
        notes.append(f"not measured: this run did not make {', '.join(missing)}")
    else:
        kinds = [inputs.data_kind(experiment)[0] for experiment in claim.experiments]
        data = max(kinds, key=DATA_KINDS.index, default="none")
        if claim.measure is None:
            notes.append("nothing to measure")
        else:
            try:
                measurement = claim.measure(inputs)
            except NotMeasurableError as reason:
                notes.append(f"not measured: {reason}")
            else:
                if not isinstance(measurement, Measured):
                    measurement = Measured(np.asarray(measurement))
                judged = judge(claim, measurement)
                seeds = len(measurement.values) if measurement.seeds is None else measurement.seeds
                notes.append(measurement.note)
                if measurement.bounds.any():
                    bounds = np.count_nonzero(measurement.bounds)
                    notes.append(f"{bounds} of {len(measurement.values)} values are only bounds")
                if measurement.chaotic:
                    notes.append("runs hang on rounding: moved by their last bits they go elsewhere")
                if claim.kind in ("value", "order") and judged.low is None:
                    notes.append("one seed only, so no interval")
                if data == "surrogate":
                    judged = judged._replace(verdict="unchecked")
                    notes.append("measured on surrogate data, which say nothing about the paper")
    if claim.tolerance_reason:
        notes.append(f"tolerance: {claim.tolerance_reason}")
    return {
        "id": claim.id,
        "paper": claim.paper,
        "artefact": claim.artefact,
        "statement": claim.statement,
        "kind": claim.kind,
        "reading": claim.reading,
        "published": claim.published,
        "measured": judged.measured,
        "unit": claim.unit,
        "ci_low": judged.low,
        "ci_high": judged.high,
        "tolerance": claim.tolerance,
        "verdict": judged.verdict,
        "data": data,
        "scale": scale,
        "seeds": f"{seeds} of {claim.shared}" if claim.shared and seeds else seeds,
        "note": "; ".join(filter(None, notes)),
    }


# --- Files ---------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read a file of claims, every field as text; a file of another kind is an error."""
    return tables.read(path, COLUMNS, "holds no claims")


def collect(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> None:
    """Join the claims of several papers into one file, in the order given."""
    rows = [row for file in files for row in read(file)]
    seen: set[str] = set()
    for row in rows:
        if row["id"] in seen:
            raise DataError(f"two claims are called {row['id']}")
        seen.add(row["id"])
    tables.write(out, COLUMNS, rows)


_COLOURS = {"reproduced": "32", "deviates": "31", "inconclusive": "33", "unchecked": "90"}
MARKS = {"reproduced": "✓", "deviates": "✗", "inconclusive": "?", "unchecked": "–"}


def show(
    path: str | os.PathLike[str],
    paper: str | None = None,
    verdict: str | None = None,
    out: TextIO | None = None,
) -> None:
    """Print claims, verdict first, and how many there are of each verdict.

    Parameters
    ----------
    path : path-like
        claims.csv.
    paper, verdict : str, optional
        Print only those of this paper, with this verdict.
    out : text stream
        Standard output by default; coloured if it is a terminal and NO_COLOR is not set.
    """
    out = sys.stdout if out is None else out
    rows = read(path)
    if verdict is not None and verdict not in VERDICTS:
        raise ConfigError(unknown_name("verdict", verdict, VERDICTS))
    papers = {row["paper"] for row in rows}
    if paper is not None and paper not in papers:
        raise ConfigError(unknown_name("paper", paper, papers))
    rows = [row for row in rows if paper in (None, row["paper"])]
    shown = [row for row in rows if verdict in (None, row["verdict"])]
    coloured = out.isatty() and "NO_COLOR" not in os.environ

    def paint(text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if coloured else text

    for row in shown:
        name = row["verdict"]
        parts = [row["id"], number_text(row), f"[{row['data']}, {row['scale']}]"]
        print(paint(f"{MARKS[name]} {name:12}", _COLOURS[name]), "  ".join(filter(None, parts)), file=out)
        for line in textwrap.wrap(row["statement"], 100):
            print(f"    {line}", file=out)
        if row["note"] and name in ("deviates", "inconclusive"):
            for line in textwrap.wrap(row["note"], 100):
                print(paint(f"    {line}", "90"), file=out)
    counts = {name: sum(row["verdict"] == name for row in rows) for name in VERDICTS}
    total = ", ".join(paint(f"{count} {name}", _COLOURS[name]) for name, count in counts.items())
    print(f"\n{len(rows)} claims: {total}", file=out)


def number_text(row: dict[str, str]) -> str:
    """Say published and measured numbers of a line of claims.csv in a few words."""

    def short(text: str) -> str:
        return f"{float(text):.4g}"

    if not row["measured"]:
        return ""
    interval = f" [{short(row['ci_low'])}, {short(row['ci_high'])}]" if row["ci_low"] else ""
    if row["kind"] == "shape":
        return f"holds in {100 * float(row['measured']):.4g} %"
    if row["kind"] == "identity" and not row["published"]:
        return "holds" if float(row["measured"]) == 1 else f"holds in {100 * float(row['measured']):.4g} %"
    published = f"published {short(row['published'])}" if row["published"] else ""
    tolerance = f" ± {short(row['tolerance'])}" if row["tolerance"] and published else ""
    what = "difference" if row["kind"] == "order" else "measured"
    return "  ".join(filter(None, [published + tolerance, f"{what} {short(row['measured'])}{interval}"]))
