"""Verdicts on claims: rules that compare what was measured with what a paper says.

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
* where a run is sensitive to rounding, orders, shapes and counts are `inconclusive`, but for shapes that come
  out the same with either perturbed run (`engine.twins`) in its place;
* an interval too wide to decide makes the verdict `inconclusive`; everything else `deviates`;
* claims on surrogate data, and those without a number or an order, stay `unchecked`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.claims import seeds
from replifed.claims.claim import DATA_KINDS, Claim, Measured, NotMeasurableError
from replifed.claims.multiplicity import LEVEL, holm, p_value
from replifed.claims.units import COUNTED
from replifed.intervals import mean_interval

COLUMNS = (
    *("id", "statement_id", "paper", "artefact", "statement", "kind", "reading", "basis", "nearness"),
    *("published", "measured", "unit", "ci_low", "ci_high", "tolerance", "effect", "direction"),
    *("p_value", "p_holm", "verdict_single", "verdict", "data", "scale", "seeds", "command", "note"),
)
_INSENSITIVE = "runs depend on rounding, but with their twins in their place it comes out the same"
_NUMBERS = ("published", "measured", "ci_low", "ci_high", "tolerance", "effect", "p_value", "p_holm")
VERDICTS = ("reproduced", "consistent", "deviates", "inconclusive", "unchecked")
HOLDS = ("reproduced", "consistent")


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
    that stays the same however far beyond its bound the truth lies. Where runs are sensitive to rounding, so
    are counts and which of two is ahead (of shapes see `_with_twins`); values get their verdict from their
    distribution over seeds. An order is judged by `p`, by default its own.
    """
    low: float | None
    high: float | None
    if claim.kind in ("shape", "identity"):
        holds = measurement.values.astype(bool)
        mean, low, high = float(holds.mean()), None, None
        undecided = measurement.bounds != 0
        verdict = _common({_judge_share(claim, one) for one in (holds & ~undecided, holds | undecided)})
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
            verdict = _common({_judge_value(claim, one, one, one, exact) for one in measurement.values})
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


def _common(verdicts: set[str]) -> str:
    return verdicts.pop() if len(verdicts) == 1 else "inconclusive"


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
    results = [measured_on(inputs, claim) for claim in claims]
    singles = {
        claim.id: judge(claim, measured)
        for claim, (_, _, measured) in zip(claims, results, strict=True)
        if measured is not None
    }
    adjusted, orders = _adjusted(claims, singles), seeds.families(claims)
    rows = [
        _row(claim, *result, singles.get(claim.id), adjusted.get(claim.id), orders[claim.family])
        | {"scale": scale, "command": command(claim)}
        for claim, result in zip(claims, results, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(_NUMBERS, float))


def measured_on(inputs: Any, claim: Claim) -> tuple[str, str, Measured | None]:
    """Kind of the data, why nothing was measured, and the measurement."""
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
            measurement = _with_twins(claim, inputs, measurement)
    except NotMeasurableError as reason:
        return data, f"not measured: {reason}", None
    return data, "", measurement


def _measurement(claim: Claim, inputs: Any) -> Measured:
    assert claim.measure is not None
    measured = claim.measure(inputs)
    return measured if isinstance(measured, Measured) else Measured(np.asarray(measured))


def _with_twins(claim: Claim, inputs: Any, measurement: Measured) -> Measured:
    """A shape is insensitive to rounding if either perturbed run, in each run's place, gives its verdict."""
    twins = [_measurement(claim, perturbed) for perturbed in inputs.of_twins()]
    if any(one.chaotic for one in twins):  # what these recorded was not kept
        return measurement
    insensitive = replace(
        measurement, chaotic=False, note=f"{measurement.note}; {_INSENSITIVE}".removeprefix("; ")
    )
    verdicts = {judge(claim, one).verdict for one in (insensitive, *twins)}
    return insensitive if len(verdicts) == 1 else measurement


def _adjusted(claims: Sequence[Claim], singles: Mapping[str, Judged]) -> dict[str, float | None]:
    """P-values of orders by id, after Holm's correction over all orders that a family was declared with."""
    families: dict[tuple[str, str, str], list[str]] = {}
    for claim in claims:
        if claim.is_measured_order:
            families.setdefault(claim.family, []).append(claim.id)
    adjusted: dict[str, float | None] = {}
    for ids in families.values():
        p_values = [singles[name].p_value if name in singles else None for name in ids]
        adjusted |= dict(zip(ids, holm(p_values), strict=True))
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
        if data != "surrogate":
            row |= {"verdict": judged.verdict, "verdict_single": single.verdict}
        row |= {"measured": judged.measured, "ci_low": judged.low, "ci_high": judged.high}
        row |= {"p_value": single.p_value, "p_holm": p}
        row |= _effect(claim, measured)
        count = len(measured.values) if measured.seeds is None else measured.seeds
        row["seeds"] = f"{count} of {claim.shared}" if claim.shared and count else count
        notes += _remarks(claim, measured, judged, data)
        wanted = seeds.needed(claim, measured, orders) if judged.verdict == "inconclusive" else None
        notes.append(f"would need {wanted} seeds" if wanted and wanted > count else "")
    if claim.tolerance_reason:
        notes.append(f"{'least effect' if claim.kind == 'order' else 'tolerance'}: {claim.tolerance_reason}")
    return row | {"note": "; ".join(filter(None, notes))}


def _effect(claim: Claim, measured: Measured) -> dict[str, Any]:
    """Distance of a value to the published one, or size of a difference, and its side."""
    if claim.kind not in ("value", "order") or measured.alternatives:
        return {}
    effect = float(measured.values.astype(float).mean()) - (claim.published or 0.0)
    within = abs(effect) < (claim.tolerance or 0.0)
    above, below = ("as claimed", "against") if claim.kind == "order" else ("above", "below")
    return {"effect": effect, "direction": "none" if within else above if effect > 0 else below}


def _remarks(claim: Claim, measured: Measured, judged: Judged, data: str) -> list[str]:
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
    if data == "surrogate":
        notes.append("measured on surrogate data, which say nothing about the paper")
    return notes
