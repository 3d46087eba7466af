"""Claims of the papers, compared with what was measured.

The rules, tolerances and readings are fixed before anything is run; what was changed after a run, and why, is
in the logs that a test guards (`tests/golden`):

* a `value` is reproduced if the mean over seeds is within the tolerance of the published number and
  the half-width of its 95 % interval is at most the tolerance;
* an `order` is reproduced if the paired differences are on the claimed side of zero, or of the number that is
  to be exceeded (`multiplicity`: 5 % for the family of orders as a whole), so is the interval of their mean,
  and this is at least the least effect that was stated; it deviates if they are as clearly on the other side,
  or if the interval says that both are equal but for that effect;
* a `shape` is reproduced if it holds in the stated share of cases, all by default;
* an `identity` is reproduced if it holds without exception;
* what would be reproduced is `consistent` if a setting was chosen because the number comes out;
* where the paper may have meant several things, a verdict is that of all of them, or `inconclusive`;
* where a run depends on rounding (`replifed.engine.twins`), orders, shapes and counts are `inconclusive`,
  but for shapes that come out the same with either twin in its place;
* an interval too wide to tell makes the verdict `inconclusive`; everything else `deviates`;
* claims on surrogate data, and those without a number or an order, stay `unchecked`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replifed.claims import seeds
from replifed.claims.multiplicity import LEVEL, holm, p_value
from replifed.claims.units import COUNTED, UNITS
from replifed.errors import ReplifedError
from replifed.intervals import mean_interval

COLUMNS = (
    *("id", "statement_id", "paper", "artefact", "statement", "kind", "reading", "basis", "nearness"),
    *("published", "measured", "unit", "ci_low", "ci_high", "tolerance", "effect", "direction"),
    *("p_value", "p_holm", "verdict_single", "verdict", "data", "scale", "seeds", "command", "note"),
)
_TOLD = "runs depend on rounding, but with their twins in their place it comes out the same"
_NUMBERS = ("published", "measured", "ci_low", "ci_high", "tolerance", "effect", "p_value", "p_holm")
VERDICTS = ("reproduced", "consistent", "deviates", "inconclusive", "unchecked")
HOLDS = ("reproduced", "consistent")
# Where the settings of a claim come from: all from the paper; ours, fixed beforehand; ours, chosen because
# the published number comes out.
BASES = ("stated", "chosen", "fitted")
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
    # or at most the value; of a `shape`, not 0 where a case could be told otherwise. All 0 by default.
    bounds: NDArray = None  # type: ignore[assignment]
    shown: float | None = None  # for the column `measured`, instead of the mean or the share
    seeds: int | None = None  # repetitions behind it; the number of values by default
    note: str = ""
    chaotic: bool = False  # whether one of the runs behind it depends on rounding
    # How coarsely the values are read, as a round between two records: no interval is narrower than this to
    # either side.
    grid: float = 0.0
    undecided: int = 0  # seeds left out, since nothing is known of them, not even a bound
    # Whether the values stand for a mean, and only their own mean says something: a seed's sign does not.
    of_mean: bool = False
    # Whether the values are not of seeds, but of what the paper may have meant: all must have one verdict.
    alternatives: bool = False

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
    # Of the sentence or cell that it tests, in whatever reading; its own id if there is no other.
    statement_id: str = ""
    basis: str = "chosen"
    nearness: int = 0  # of readings with one basis, that with the lowest number is nearest to the text
    # The paper's number, for a `value`; of an `order` what is exceeded, if it is not a difference.
    published: float | None = None
    # For a `value`, an absolute difference; for a `shape`, the share of cases in which it must hold; for an
    # `order`, the least effect, by default that of its unit.
    tolerance: float | None = None
    tolerance_reason: str = ""
    # Keys of the inputs: "run:EXPERIMENT/METHOD", "tuned:EXPERIMENT/METHOD", "partition:EXPERIMENT".
    needs: tuple[str, ...] = ()
    unit: str = ""  # one of `UNITS`, for a `value` or an `order` alone
    # Maps the inputs to a `Measured` or a plain array of its values; None leaves the claim unchecked.
    measure: Callable[[Any], Measured | ArrayLike] | None = None
    expression: Any = None  # what `measure` computes, as a `quantities.Quantity`
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
        if self.basis not in BASES:
            raise ValueError(f"{self.id}: unknown basis {self.basis!r}")
        if not self.statement_id:
            object.__setattr__(self, "statement_id", self.id)
        if self.kind == "identity" and not self.needs:  # a formula's; runs have settings
            object.__setattr__(self, "basis", "stated")
        if self.kind == "order" and self.measure is not None:
            if self.tolerance is None:
                least = UNITS[self.unit].effect if self.unit else None
                object.__setattr__(self, "tolerance", least)
            if self.tolerance is None or not self.tolerance > 0:
                raise ValueError(f"{self.id}: an order needs a least effect above 0, its unit has none")
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
    def family(self) -> tuple[str, str, str]:
        """The orders among which its error is controlled: paper, artefact and reading."""
        return self.paper, self.artefact, self.reading

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
    p_value: float | None = None  # of an order, two-sided


def judge(claim: Claim, measurement: Measured, p: float | None = None) -> Judged:
    """Apply the rules to one measurement, real data or not.

    A censored value (see `Measured.bounds`) enters the mean as its bound, and counts only for a verdict
    that stays the same however far beyond its bound the truth lies. Where runs depend on rounding, so do
    counts and which of two is ahead (of shapes see `_told_by_twins`); values get their verdict from their
    distribution over seeds. An order is judged by `p`, by default its own.
    """
    low: float | None
    high: float | None
    if claim.kind in ("shape", "identity"):
        holds = measurement.values.astype(bool)
        mean, low, high = float(holds.mean()), None, None
        open_cases = measurement.bounds != 0
        told = {_judge_share(claim, one) for one in (holds & ~open_cases, holds | open_cases)}
        verdict = told.pop() if len(told) == 1 else "inconclusive"
    else:
        mean, low, high = mean_interval(measurement.values.astype(float))
        low, high = min(low, mean - measurement.grid), max(high, mean + measurement.grid)
        if claim.kind == "order":
            beyond = claim.published or 0.0
            if p is None:
                p = p_value(measurement.values - beyond, measurement.grid, measurement.of_mean)
            verdict = _judge_order(claim, mean - beyond, low - beyond, high - beyond, p, measurement.bounds)
        elif measurement.alternatives:
            low, high = measurement.values.min(), measurement.values.max()
            exact = np.zeros(1)
            each = {_judge_value(claim, one, one, one, exact) for one in measurement.values}
            verdict = each.pop() if len(each) == 1 else "inconclusive"
        else:
            verdict = _judge_value(claim, mean, low, high, measurement.bounds)
        if not math.isfinite(low):
            low = high = None
    by_rounding = measurement.chaotic and (claim.kind != "value" or claim.unit in COUNTED)
    if by_rounding or measurement.undecided:
        verdict = "inconclusive"
    if verdict == "reproduced" and claim.basis == "fitted":
        verdict = "consistent"
    return Judged(verdict, mean if measurement.shown is None else measurement.shown, low, high, p)


def _judge_share(claim: Claim, holds: NDArray) -> str:
    # A share such as 0.8 of 5 must not fail for the last bit of 0.8.
    return "reproduced" if holds.mean() >= claim.share - 1e-12 else "deviates"


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


def _judge_order(claim: Claim, mean: float, low: float, high: float, p: float, bounds: NDArray) -> str:
    least = claim.tolerance
    assert least is not None  # as every claim of an order has
    if p <= LEVEL and mean >= least and low >= 0:
        # Differences that are in truth smaller than their bound could end on the other side.
        return "inconclusive" if (bounds < 0).any() else "reproduced"
    if p <= LEVEL and mean <= -least and high <= 0:
        return "inconclusive" if (bounds > 0).any() else "deviates"
    equal = -least <= low and high <= least
    return "deviates" if equal and not bounds.any() else "inconclusive"


def measure(claims: Sequence[Claim], inputs: Any, scale: str, command: Callable[[Claim], str] = lambda _: ""):
    """Measure and judge claims: a DataFrame with one line a claim and `COLUMNS`.

    Inputs are what `papers.inputs` offers: has(key), data_kind(experiment), and what the measures call. Scale
    is "paper", or the name of the cut-down settings; `command` says how a claim is measured again. Numbers
    that do not exist are missing.
    """
    import pandas as pd

    doubled = sorted(name for name, count in Counter(claim.id for claim in claims).items() if count > 1)
    if doubled:
        raise ValueError(f"claims with the same id: {', '.join(doubled)}")
    found = [measured_on(inputs, claim) for claim in claims]
    singles = [None if m is None else judge(claim, m) for claim, (_, _, m) in zip(claims, found, strict=True)]
    adjusted, orders = _adjusted(claims, singles), seeds.families(claims)
    rows = [
        _row(claim, *one, single, p, orders[claim.family]) | {"scale": scale, "command": command(claim)}
        for claim, one, single, p in zip(claims, found, singles, adjusted, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(_NUMBERS, float))


def measured_on(inputs: Any, claim: Claim) -> tuple[str, str, Measured | None]:
    """Kind of the data, why nothing was measured, and what was."""
    missing = [key for key in claim.needs if not inputs.has(key)]
    if missing:
        return "none", f"not measured: this run did not make {', '.join(missing)}", None
    kinds = [inputs.data_kind(experiment)[0] for experiment in claim.experiments]
    data = max(kinds, key=DATA_KINDS.index, default="none")
    if claim.measure is None:
        return data, "nothing to measure", None
    try:
        measurement = _measurement(claim, inputs)
        if measurement.chaotic and claim.kind == "shape":
            measurement = _told_by_twins(claim, inputs, measurement)
    except NotMeasurableError as reason:
        return data, f"not measured: {reason}", None
    return data, "", measurement


def _measurement(claim: Claim, inputs: Any) -> Measured:
    assert claim.measure is not None
    found = claim.measure(inputs)
    return found if isinstance(found, Measured) else Measured(np.asarray(found))


def _told_by_twins(claim: Claim, inputs: Any, measurement: Measured) -> Measured:
    """A shape does not depend on rounding if its verdict is the same with either twin in each run's place."""
    twins = [_measurement(claim, moved) for moved in inputs.of_twins()]
    if any(one.chaotic for one in twins):  # what these recorded was not kept
        return measurement
    calm = replace(measurement, chaotic=False, note=f"{measurement.note}; {_TOLD}".removeprefix("; "))
    return calm if len({judge(claim, one).verdict for one in (calm, *twins)}) == 1 else measurement


def _adjusted(claims: Sequence[Claim], singles: Sequence[Judged | None]) -> list[float | None]:
    """P-values of orders after Holm's correction, each over all orders that its family was declared with."""
    families: dict[tuple[str, str, str], list[int]] = {}
    for number, claim in enumerate(claims):
        if claim.kind == "order" and claim.measure is not None:
            families.setdefault(claim.family, []).append(number)
    adjusted: list[float | None] = [None] * len(claims)
    for members in families.values():
        known = [single.p_value if (single := singles[number]) is not None else None for number in members]
        for number, p in zip(members, holm(known), strict=True):
            adjusted[number] = p
    return adjusted


def _row(
    claim: Claim,
    data: str,
    missing: str,
    measured: Measured | None,
    single: Judged | None,
    p: float | None,
    orders: int,
) -> dict[str, Any]:
    row = {name: getattr(claim, name) for name in COLUMNS if hasattr(claim, name)}
    row |= {"verdict": "unchecked", "verdict_single": "unchecked", "data": data, "seeds": 0}
    notes = [claim.note, missing]
    if measured is not None and single is not None:
        judged = single if p is None else judge(claim, measured, p)
        surrogate = data == "surrogate"
        if not surrogate:
            row |= {"verdict": judged.verdict, "verdict_single": single.verdict}
        row |= {"measured": judged.measured, "ci_low": judged.low, "ci_high": judged.high}
        row |= {"p_value": single.p_value, "p_holm": p}
        row |= _effect(claim, measured)
        count = len(measured.values) if measured.seeds is None else measured.seeds
        row["seeds"] = f"{count} of {claim.shared}" if claim.shared and count else count
        notes += _remarks(claim, measured, judged, surrogate)
        wanted = seeds.needed(claim, measured, orders) if judged.verdict == "inconclusive" else None
        notes.append(f"would need {wanted} seeds" if wanted and wanted > count else "")
    if claim.tolerance_reason:
        notes.append(f"{'least effect' if claim.kind == 'order' else 'tolerance'}: {claim.tolerance_reason}")
    return row | {"note": "; ".join(filter(None, notes))}


def _effect(claim: Claim, measured: Measured) -> dict[str, Any]:
    """How far a value is from the published one, or how large a difference is, and on which side."""
    if claim.kind not in ("value", "order") or measured.alternatives:
        return {}
    effect = float(measured.values.astype(float).mean()) - (claim.published or 0.0)
    within = abs(effect) < (claim.tolerance or 0.0)
    above, below = ("as claimed", "against") if claim.kind == "order" else ("above", "below")
    return {"effect": effect, "direction": "none" if within else above if effect > 0 else below}


def _remarks(claim: Claim, measured: Measured, judged: Judged, surrogate: bool) -> list[str]:
    notes = [measured.note]
    if measured.bounds.any():
        bounds = np.count_nonzero(measured.bounds)
        notes.append(f"{bounds} of {len(measured.values)} values are only bounds")
    if measured.undecided:
        notes.append(f"of {measured.undecided} seeds more nothing is known")
    if measured.chaotic:
        notes.append("runs depend on rounding: moved by their last bits they go elsewhere")
    if claim.kind in ("value", "order") and judged.low is None:
        notes.append("one seed only, so no interval")
    if surrogate:
        notes.append("measured on surrogate data, which say nothing about the paper")
    return notes
