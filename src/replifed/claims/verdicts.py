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
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replifed.claims import tables
from replifed.claims.units import COUNTED, UNITS
from replifed.errors import ConfigError, DataError, ReplifedError, unknown_name
from replifed.intervals import mean_interval

COLUMNS = (
    *("id", "paper", "artefact", "statement", "kind", "reading"),
    *("published", "measured", "unit", "ci_low", "ci_high", "tolerance", "verdict"),
    *("data", "scale", "seeds", "note"),
)
VERDICTS = ("reproduced", "deviates", "inconclusive", "unchecked")
# From the paper's own to none of it; a claim is as good as the worst of its data.
DATA_KINDS = ("synthetic", "original", "substitute", "surrogate")
Kind = Literal["value", "order", "shape", "identity"]


class NotMeasurableError(ReplifedError):
    """The runs at hand cannot answer a claim (a cut-down grid, say); the message says why."""


@dataclass(frozen=True)
class Measured:
    """What a claim's `measure` returns; arrays of shape (n,).

    Values are one per seed: numbers for a `value`; for an `order` paired differences, positive on the claimed
    side; booleans, one per seed or case, for a `shape` or an `identity`. Never NaN or infinite.
    """

    values: NDArray
    # 0 where the value is exact; 1 or -1 where the run ended before it was known, and the truth is at least
    # or at most the value. All 0 by default.
    bounds: NDArray = None  # type: ignore[assignment]
    shown: float | None = None  # for the column `measured`, instead of the mean or the share
    seeds: int | None = None  # repetitions behind it; the number of values by default
    note: str = ""
    chaotic: bool = False  # whether one of the runs behind it hangs on rounding

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        bounds = np.asarray(np.zeros(len(values)) if self.bounds is None else self.bounds, dtype=int)
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
    """A checkable statement of a paper, in plain words close to the paper's."""

    id: str  # unique over all papers and readings
    paper: str
    artefact: str  # the target where it belongs
    statement: str
    kind: Kind
    reading: str = ""  # which of the ways to read the paper it takes; empty if there is one only
    published: float | None = None  # the paper's number, for a `value`
    # For a `value`, an absolute difference; for a `shape`, the share of cases in which it must hold.
    tolerance: float | None = None
    tolerance_reason: str = ""
    # Keys of the inputs: "run:EXPERIMENT/METHOD", "tuned:EXPERIMENT/METHOD", "partition:EXPERIMENT".
    needs: tuple[str, ...] = ()
    unit: str = ""  # one of `UNITS`, for a `value` or an `order` alone
    # Maps the inputs to a `Measured` or a plain array of its values; None leaves the claim unchecked.
    measure: Callable[[Any], Measured | ArrayLike] | None = None
    note: str = ""
    # What all seeds have in common where they do not draw their own, such as "one split".
    shared: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
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
        """Share of cases in which a `shape` or an `identity` must hold."""
        return 1.0 if self.tolerance is None or self.kind == "identity" else self.tolerance

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

    A censored value (see `Measured.bounds`) enters the mean as its bound, and counts only for a verdict
    that stays the same however far beyond its bound the truth lies. Where runs hang on rounding, so do counts
    and which of two is ahead; values get their verdict from their distribution over seeds.
    """
    low: float | None
    high: float | None
    if claim.kind in ("shape", "identity"):
        mean, low, high = float(measurement.values.astype(bool).mean()), None, None
        # A share such as 0.8 of 5 must not fail for the last bit of 0.8.
        verdict = "reproduced" if mean >= claim.share - 1e-12 else "deviates"
    else:
        mean, low, high = mean_interval(measurement.values.astype(float))
        if claim.kind == "order":
            verdict = _judge_order(low, high, measurement.bounds)
        else:
            verdict = _judge_value(claim, mean, low, high, measurement.bounds)
        if not math.isfinite(low):
            low = high = None
    if measurement.chaotic and (claim.kind != "value" or claim.unit in COUNTED):
        verdict = "inconclusive"
    return Judged(verdict, mean if measurement.shown is None else measurement.shown, low, high)


def _judge_value(claim: Claim, mean: float, low: float, high: float, bounds: NDArray) -> str:
    published, tolerance = claim.published, claim.tolerance
    assert published is not None and tolerance is not None  # as every claim of a value has
    # However wide, an interval that stays clear of every tolerated value is conclusive.
    above, below = low > published + tolerance, high < published - tolerance
    if bounds.any():
        # The truth lies beyond the bounds, by an unknown distance.
        further = (above and (bounds >= 0).all()) or (below and (bounds <= 0).all())
        return "deviates" if further else "inconclusive"
    # Floating-point subtraction makes 6.5 - 5 a hair more than 1.5.
    allowed = tolerance + 1e-12 * max(abs(published), tolerance, 1e-300)
    narrow = (high - low) / 2 <= allowed
    if narrow and abs(mean - published) <= allowed:
        return "reproduced"
    return "deviates" if narrow or above or below else "inconclusive"


def _judge_order(low: float, high: float, bounds: NDArray) -> str:
    if low > 0:
        # Differences that are in truth smaller than their bound could end on the other side.
        return "inconclusive" if (bounds < 0).any() else "reproduced"
    if high < 0 or low == high == 0:
        return "inconclusive" if (bounds > 0).any() else "deviates"
    return "inconclusive"


def measure(claims: Sequence[Claim], inputs: Any, scale: str):
    """Measure and judge claims: a DataFrame with one line a claim and `COLUMNS`.

    Inputs are what `papers.inputs` offers: has(key), data_kind(experiment), and what the measures call. Scale
    is "paper", or the name of the cut-down settings. Numbers that do not exist are missing.
    """
    import pandas as pd

    doubled = sorted(name for name, count in Counter(claim.id for claim in claims).items() if count > 1)
    if doubled:
        raise ValueError(f"claims with the same id: {', '.join(doubled)}")
    rows = [_row(claim, inputs) | {"scale": scale} for claim in claims]
    numbers = ("published", "measured", "ci_low", "ci_high", "tolerance")
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(numbers, float))


def _row(claim: Claim, inputs: Any) -> dict[str, Any]:
    row = {name: getattr(claim, name) for name in COLUMNS if hasattr(claim, name)}
    row |= {"verdict": "unchecked", "data": "none", "seeds": 0}
    notes = [claim.note]
    missing = [key for key in claim.needs if not inputs.has(key)]
    if missing:
        notes.append(f"not measured: this run did not make {', '.join(missing)}")
    else:
        kinds = [inputs.data_kind(experiment)[0] for experiment in claim.experiments]
        row["data"] = max(kinds, key=DATA_KINDS.index, default="none")
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
                row |= _measured(claim, measurement, row["data"] == "surrogate", notes)
    if claim.tolerance_reason:
        notes.append(f"tolerance: {claim.tolerance_reason}")
    return row | {"note": "; ".join(filter(None, notes))}


def _measured(claim: Claim, measurement: Measured, surrogate: bool, notes: list[str]) -> dict[str, Any]:
    """Verdict, numbers and seeds of a claim; adds to its notes."""
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
    if surrogate:
        notes.append("measured on surrogate data, which say nothing about the paper")
    return {
        "verdict": "unchecked" if surrogate else judged.verdict,
        "measured": judged.measured,
        "ci_low": judged.low,
        "ci_high": judged.high,
        "seeds": f"{seeds} of {claim.shared}" if claim.shared and seeds else seeds,
    }


# --- Files ---------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read a file of claims, every field as text; a file of another kind is an error."""
    return tables.read(path, COLUMNS, "holds no claims")


def collect(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> None:
    """Join the claims of several papers into one file, in the order given."""
    rows = [row for file in files for row in read(file)]
    for name, count in Counter(row["id"] for row in rows).items():
        if count > 1:
            raise DataError(f"two claims are called {name}")
    tables.write(out, COLUMNS, rows)


_COLOURS = {"reproduced": "32", "deviates": "31", "inconclusive": "33", "unchecked": "90"}
MARKS = {"reproduced": "✓", "deviates": "✗", "inconclusive": "?", "unchecked": "–"}


def show(path: str | os.PathLike[str], paper: str | None = None, verdict: str | None = None) -> None:
    """Print the claims of a file, verdict first, and how many there are of each verdict.

    With `paper` or `verdict` those alone; in colours on a terminal, unless NO_COLOR is set.
    """
    rows = read(path)
    papers = {row["paper"] for row in rows}
    for kind, name, known in (("verdict", verdict, VERDICTS), ("paper", paper, papers)):
        if name is not None and name not in known:
            raise ConfigError(unknown_name(kind, name, known))
    rows = [row for row in rows if paper in (None, row["paper"])]
    shown = [row for row in rows if verdict in (None, row["verdict"])]
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def paint(text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if coloured else text

    for row in shown:
        name = row["verdict"]
        parts = [row["id"], number_text(row), f"[{row['data']}, {row['scale']}]"]
        print(paint(f"{MARKS[name]} {name:12}", _COLOURS[name]), "  ".join(filter(None, parts)))
        for line in textwrap.wrap(row["statement"], 100):
            print(f"    {line}")
        for line in textwrap.wrap(row["note"], 100) if name in ("deviates", "inconclusive") else ():
            print(paint(f"    {line}", "90"))
    counts = Counter(row["verdict"] for row in rows)
    total = ", ".join(paint(f"{counts[name]} {name}", _COLOURS[name]) for name in VERDICTS)
    print(f"\n{len(rows)} claims: {total}")


def number_text(row: dict[str, str]) -> str:
    """Say published and measured numbers of a line of claims.csv in a few words."""

    def short(text: str) -> str:
        return f"{float(text):.4g}"

    if not row["measured"]:
        return ""
    if row["kind"] == "identity" and not row["published"] and float(row["measured"]) == 1:
        return "holds"
    if row["kind"] == "shape" or (row["kind"] == "identity" and not row["published"]):
        return f"holds in {100 * float(row['measured']):.4g} %"
    interval = f" [{short(row['ci_low'])}, {short(row['ci_high'])}]" if row["ci_low"] else ""
    published = f"published {short(row['published'])}" if row["published"] else ""
    tolerance = f" ± {short(row['tolerance'])}" if row["tolerance"] and published else ""
    what = "difference" if row["kind"] == "order" else "measured"
    return "  ".join(filter(None, [published + tolerance, f"{what} {short(row['measured'])}{interval}"]))
