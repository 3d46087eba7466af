"""Verdicts on claims: rules that compare what was measured with what a paper says.

The rules, tolerances, axes and accounts are fixed before anything is run; what was changed after a run, and
why, is in the logs that a test guards (`tests/golden`). A claim holds, fails or is inconclusive:

* a `value` holds if it lies in the prediction interval of the mean that the paper printed (`intervals`), at
  a level of 5 % for all values of a table or figure as a whole, and the rival, the nearest other method's
  number, does not; with the rival inside, or without one an interval wider than was stated, it is
  inconclusive;
* a `near` holds if the mean over seeds is within the tolerance of the published number and the half-width
  of its 95 % interval is at most the tolerance; a mean, or the near end of a wider interval, closer to an
  end of the tolerance than a hundredth of that half-width decides nothing, since another processor may turn
  it;
* an `order` holds if the paired differences are on the claimed side of zero, or of the number that is
  to be exceeded (`multiplicity`: 5 % for the family of orders as a whole), so is the interval of their mean,
  and this is at least the least effect that was stated; it fails if they are as clearly on the other side,
  or if the interval says that both are equal but for that effect; repetitions that are copies of one run
  (`copies`) count as one, which alone has neither p-value nor interval; over fewer than five seeds an order
  is inconclusive;
* a `shape` holds if it does in the stated share of cases, all by default;
* an `identity` holds if it does without exception;
* where the paper may have meant several things, a verdict is that of all of them, or `inconclusive`;
* where a run is sensitive to rounding, orders, shapes and counts are told if they come out the same with
  either perturbed run (`engine.twins`) in its place, Holm's correction included, and a difference is more
  than three times the distance between run and perturbed run; else they are `inconclusive`;
* an interval too wide to decide makes the verdict `inconclusive`; everything else `fails`;
* claims on surrogate data, and those without a measure, stay `unchecked`.
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
from replifed.claims.claim import (
    DATA_KINDS,
    NUMBERS,
    Claim,
    Measured,
    MeasurementError,
    NotMeasurableError,
)
from replifed.claims.copies import independent, originals, told
from replifed.claims.multiplicity import LEVEL, holm, holm_levels, p_value
from replifed.claims.units import COUNTED
from replifed.errors import ReplifedError
from replifed.intervals import Prediction, mean_interval, prediction

COLUMNS = (
    *("id", "statement_id", "paper", "artefact", "place", "sentence", "statement", "kind", "part"),
    *("main", "informs", "fitted_on", "options", "sources", "account", "source", "departure"),
    *("evidence", "needs", "family"),
    *("published", "measured", "unit", "ci_low", "ci_high", "pi_low", "pi_high", "rival", "tolerance"),
    *("effect", "direction", "p_value", "p_holm", "verdict_single", "verdict", "twins"),
    *("data", "scale", "seeds", "command", "note"),
)
NUMERIC = (
    *("published", "measured", "ci_low", "ci_high", "pi_low", "pi_high", "rival", "tolerance"),
    *("effect", "p_value", "p_holm"),
)
VERDICTS = ("holds", "fails", "inconclusive", "unchecked")
_INSENSITIVE = "runs depend on rounding, but with their twins in their place it comes out the same"
# Seeds whose perturbed runs were kept, at least, before an order on runs sensitive to rounding is told.
_TWINNED = 5
# With fewer repetitions a note says that a prediction interval is wide.
_FEW = 20
# Share of an interval's half-width by which a `near` is clear of an end of its tolerance, at least: between
# two processors those of FedNL, which is sensitive to rounding, moved by up to 0.9 %, half of them by 0.4 %.
_CLEAR = 0.01
# Least ratio of a difference to the distance between a run and a perturbed one, for it to count.
_DISTANCES = 3.0


class Judged(NamedTuple):
    """A verdict with the numbers behind it; None where there is no such number."""

    verdict: str
    measured: float | None
    low: float | None
    high: float | None
    p_value: float | None = None  # of an order or a value, two-sided
    predicted: tuple[float | None, float | None] = (None, None)  # of a value


class Corrected(NamedTuple):
    """What a family's other claims make of one's test."""

    p_holm: float | None = None
    level: float = LEVEL  # of the interval of a value


def judge(claim: Claim, measurement: Measured, corrected: Corrected | None = None) -> Judged:
    """Apply the rules to one measurement, real data or not; by itself, or `corrected` with its family.

    A censored value (see `Measured.bounds`) enters the mean as its bound, and counts only for a verdict
    that stays the same however far beyond its bound the truth lies. Rounding is not looked at.
    """
    if claim.kind in ("shape", "identity"):
        judged = _judge_share(claim, measurement)
    elif claim.kind == "value":
        judged = _judge_value(claim, measurement, corrected or Corrected())
    elif claim.kind == "order":
        judged = _judge_order(claim, measurement, corrected or Corrected())
    else:
        judged = _judge_near(claim, measurement)
    if measurement.undecided and claim.kind not in ("shape", "identity"):
        judged = judged._replace(verdict="inconclusive")
    return judged if measurement.shown is None else judged._replace(measured=measurement.shown)


def _common(verdicts: set[str]) -> str:
    return verdicts.pop() if len(verdicts) == 1 else "inconclusive"


def _judge_share(claim: Claim, measurement: Measured) -> Judged:
    holds, undecided, more = measurement.values.astype(bool), measurement.bounds != 0, measurement.undecided
    # With all that is undecided against it, and for it.
    counts = (holds & ~undecided).sum(), (holds | undecided).sum() + more
    # A share such as 0.8 of 5 must not fail for the last bit of 0.8.
    verdicts = {
        "holds" if count / (len(holds) + more) >= claim.share - 1e-12 else "fails" for count in counts
    }
    return Judged(_common(verdicts), float(holds.mean()), None, None)


def _interval(measurement: Measured) -> tuple[float, float, float]:
    """Mean and 95 % interval, no narrower than the grid on which the values were read."""
    mean, low, high = mean_interval(measurement.values.astype(float))
    return mean, min(low, mean - measurement.grid), max(high, mean + measurement.grid)


def _numbers(
    verdict: str,
    mean: float,
    low: float,
    high: float,
    p: float | None = None,
    predicted: tuple[float | None, float | None] = (None, None),
) -> Judged:
    if not math.isfinite(low):  # one value alone
        return Judged(verdict, mean, None, None, p, predicted)
    return Judged(verdict, mean, low, high, p, predicted)


def predicted(claim: Claim, measurement: Measured) -> Prediction:
    """Prediction of the mean that the paper printed."""
    return prediction(
        measurement.values,
        claim.repetitions,
        data_sets=measurement.data_sets,
        spread=claim.spread,
        widened=claim.precision + measurement.grid,
    )


def _judge_value(claim: Claim, measurement: Measured, corrected: Corrected) -> Judged:
    published, theirs = claim.published, predicted(claim, measurement)
    assert published is not None  # as every claim of a value has
    mean, low, high = _interval(measurement)
    p, ends = theirs.p_value(published), theirs.interval(corrected.level)
    bounds = measurement.bounds
    if bounds.any():
        # The truth lies beyond the bounds, by an unknown distance.
        further = (ends[0] > published and (bounds >= 0).all()) or (
            ends[1] < published and (bounds <= 0).all()
        )
        verdict = "fails" if further else "inconclusive"
    elif (p if corrected.p_holm is None else corrected.p_holm) <= LEVEL:
        verdict = "fails"
    elif claim.rival is not None:
        verdict = "inconclusive" if ends[0] <= claim.rival <= ends[1] else "holds"
    else:
        assert claim.tolerance is not None
        verdict = "holds" if (ends[1] - ends[0]) / 2 <= claim.tolerance * (1 + 1e-12) else "inconclusive"
    shown = ends if math.isfinite(ends[0]) else (None, None)
    return _numbers(verdict, mean, low, high, p, predicted=shown)


def _judge_near(claim: Claim, measurement: Measured) -> Judged:
    mean, low, high = _interval(measurement)
    if not measurement.alternatives:
        return _numbers(_near(claim, mean, low, high, measurement.bounds), mean, low, high)
    exact, values = np.zeros(1), measurement.values
    verdict = _common({_near(claim, one, one, one, exact) for one in values})
    return _numbers(verdict, mean, values.min(), values.max())


def _near(claim: Claim, mean: float, low: float, high: float, bounds: NDArray) -> str:
    published, tolerance = claim.published, claim.tolerance
    assert published is not None and tolerance is not None  # as every claim of a number has
    margin = _CLEAR * (high - low) / 2
    # However wide, an interval that stays clear of every tolerated value is conclusive.
    above, below = low - margin > published + tolerance, high + margin < published - tolerance
    if bounds.any():
        # The truth lies beyond the bounds, by an unknown distance.
        further = (above and (bounds >= 0).all()) or (below and (bounds <= 0).all())
        return "fails" if further else "inconclusive"
    # Floating-point subtraction makes 6.5 - 5 a hair more than 1.5.
    allowed = tolerance + 1e-12 * max(abs(published), tolerance, 1e-300)
    narrow, off = (high - low) / 2 <= allowed, abs(mean - published)
    if narrow and off <= allowed:
        return "holds" if off <= allowed - margin else "inconclusive"
    return "fails" if (narrow and off > allowed + margin) or above or below else "inconclusive"


def _judge_order(claim: Claim, measurement: Measured, corrected: Corrected) -> Judged:
    beyond, least = claim.published or 0.0, claim.tolerance
    assert least is not None  # as every claim of an order has
    mean, low, high = _interval(measurement)
    if measurement.copies and len(measurement.values) == 1:
        return Judged("inconclusive", mean, None, None)
    single = p_value(measurement.values - beyond, measurement.grid, measurement.of_mean)
    p, bounds = single if corrected.p_holm is None else corrected.p_holm, measurement.bounds
    if _too_few(claim, measurement):
        verdict = "inconclusive"
    elif p <= LEVEL and mean - beyond >= least and low >= beyond:
        # Differences that are in truth smaller than their bound could end on the other side.
        verdict = "inconclusive" if (bounds < 0).any() else "holds"
    elif p <= LEVEL and mean - beyond <= -least and high <= beyond:
        verdict = "inconclusive" if (bounds > 0).any() else "fails"
    else:
        equal = -least <= low - beyond and high - beyond <= least
        verdict = "fails" if equal and not bounds.any() else "inconclusive"
    return _numbers(verdict, mean, low, high, single)


def _too_few(claim: Claim, measurement: Measured) -> bool:
    count = len(measurement.values) if measurement.seeds is None else measurement.seeds
    return claim.kind == "order" and count < claim.fewest


# --- All claims of a paper ------------------------------------------------------------------------


class Result(NamedTuple):
    """What was measured of a claim, and where runs are sensitive to rounding, with perturbed ones, too."""

    data: str  # kind of the data
    missing: str  # why nothing was measured
    measured: Measured | None
    # With the first and the second twin in each run's place; empty where runs are not sensitive to rounding,
    # or where the verdict does not hang on it.
    twins: tuple[Measured, ...] = ()
    # Root mean square distance between a run and a twin; infinite where too few were kept.
    distance: float = math.inf

    @property
    def twins_are_lost(self) -> bool:
        """True where perturbed runs were not kept, or cannot be measured: the run stands in their place."""
        return any(one.chaotic for one in self.twins)


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
    judged = _judge_all(claims, [one.measured for one in results])
    places = [
        _judge_all(claims, [one.twins[place] if one.twins else one.measured for one in results])
        for place in (0, 1)
    ]
    orders = seeds.families(claims)
    rows = [
        _row(claim, result, judged.get(claim.id), [place.get(claim.id) for place in places], orders)
        | {"scale": scale, "command": command(claim)}
        for claim, result in zip(claims, results, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(NUMERIC, float))


def measured_on(inputs: Any, claim: Claim) -> Result:
    """Measure a claim on its runs, and on perturbed ones where its verdict may hang on rounding."""
    missing = [key for key in claim.needs if not inputs.has(key)]
    if missing:
        return Result("none", f"not measured: this run did not make {', '.join(missing)}", None)
    kinds = [inputs.data_kind(experiment)[0] for experiment in claim.experiments]
    data = max(kinds, key=DATA_KINDS.index, default="none")
    if claim.measure is None:
        return Result(data, "nothing to measure", None)
    try:
        measured = _measurement(claim, inputs)
    except NotMeasurableError as reason:
        return Result(data, f"not measured: {reason}", None)
    except MeasurementError as error:
        raise ReplifedError(f"{claim.id}: {error}") from error
    if not (measured.chaotic and _hangs_on_rounding(claim)):
        return Result(data, "", measured)
    try:
        twins = tuple(_measurement(claim, moved) for moved in inputs.of_twins())
    except NotMeasurableError:
        twins = measured, measured  # as where perturbed runs were not kept: they decide nothing
    return Result(data, "", measured, twins, _distance(claim, measured, inputs))


def _hangs_on_rounding(claim: Claim) -> bool:
    """Orders, shapes and counts; other numbers have their distribution over seeds."""
    return claim.kind not in ("value", "near") or claim.unit in COUNTED


def _measurement(claim: Claim, inputs: Any) -> Measured:
    assert claim.measure is not None
    measured = claim.measure(inputs)
    measured = measured if isinstance(measured, Measured) else Measured(np.asarray(measured))
    return _without_copies(claim, measured, inputs) if claim.kind == "order" else measured


def _without_copies(claim: Claim, measured: Measured, inputs: Any) -> Measured:
    """Leave out differences of repetitions that are copies of others in all runs that the claim reads."""
    keys = [key.removeprefix("run:").split("/") for key in claim.needs if key.startswith("run:")]
    histories = [inputs.run(*names) for names in keys] if hasattr(inputs, "run") else []
    if not histories or any("replicate" not in history for history in histories):
        return measured
    runs = [originals(history) for history in histories]
    seeds = sorted(set.intersection(*map(set, runs)))
    kept = independent(*runs)
    if len(kept) == len(seeds):
        return measured
    note = "; ".join(filter(None, (measured.note, told(len(kept), len(seeds)))))
    measured = replace(measured, copies=len(seeds) - len(kept), note=note)
    n = len(measured.values)
    names = seeds if measured.names is None and n == len(seeds) else measured.names
    if len(kept) == 1:
        which = [0]
    elif names is not None and set(names) <= set(seeds):
        first: dict[tuple, int] = {}
        for place, name in enumerate(names):
            first.setdefault(tuple(one[name] for one in runs), place)
        which = [*first.values()]
    else:  # values that are not one a seed cannot be told apart by it
        return replace(measured, seeds=min(n, len(kept)))
    values, bounds = measured.values[which], measured.bounds[which]
    return replace(measured, values=values, bounds=bounds, names=None, seeds=len(which))


def _distance(claim: Claim, measured: Measured, inputs: Any) -> float:
    """Root mean square distance of values between runs and twins, over the seeds whose twins were kept."""
    try:
        kept, *twins = (_measurement(claim, one) for one in inputs.of_twinned())
    except NotMeasurableError:
        return math.inf
    enough = len(kept.values) >= min(_TWINNED, len(measured.values))
    if not enough or any(len(one.values) != len(kept.values) for one in twins):
        return math.inf
    distances = [one.values.astype(float) - kept.values.astype(float) for one in twins]
    return float(np.sqrt(np.mean(np.square(distances))))


def _judge_all(
    claims: Sequence[Claim], measurements: Sequence[Measured | None]
) -> dict[str, tuple[Judged, Judged, Corrected]]:
    """Verdicts by id, of each claim by itself and corrected with its family, as far as it was measured."""
    there = {
        claim.id: (claim, one) for claim, one in zip(claims, measurements, strict=True) if one is not None
    }
    singles = {name: judge(claim, one) for name, (claim, one) in there.items()}
    corrected = _corrected(claims, singles)
    return {
        name: (singles[name], judge(claim, one, corrected.get(name)), corrected.get(name, Corrected()))
        for name, (claim, one) in there.items()
    }


def _corrected(claims: Sequence[Claim], singles: Mapping[str, Judged]) -> dict[str, Corrected]:
    """Holm's correction of all tests that a family was declared with; what was not measured counts as one."""
    families: dict[tuple[str, ...], list[str]] = {}
    for claim in claims:
        if claim.is_tested:
            families.setdefault(claim.family, []).append(claim.id)
    corrected: dict[str, Corrected] = {}
    for ids in families.values():
        p_values = [singles[name].p_value if name in singles else None for name in ids]
        both = zip(holm(p_values), holm_levels(p_values), strict=True)
        corrected |= {name: Corrected(*one) for name, one in zip(ids, both, strict=True)}
    return corrected


def _told(claim: Claim, result: Result, judged: Judged, twins: Sequence[Judged]) -> Judged:
    """The verdict, or `inconclusive` where it hangs on rounding."""
    assert result.measured is not None
    if not (result.measured.chaotic and _hangs_on_rounding(claim)):
        return judged
    same, lost = all(one.verdict == judged.verdict for one in twins), result.twins_are_lost
    if claim.kind == "order" and not lost:
        beyond = abs(float(result.measured.values.astype(float).mean()) - (claim.published or 0.0))
        lost = not beyond > _DISTANCES * result.distance
    return judged if same and not lost else judged._replace(verdict="inconclusive")


def described(claim: Claim) -> dict[str, Any]:
    """Columns that are known before anything is measured."""
    row = {name: getattr(claim, name) for name in COLUMNS if hasattr(claim, name)}
    options, axes = claim.options, claim.axes
    row |= {"options": claim.reading, "account": axes.accounts(options), "source": axes.source(options)}
    row |= {"sources": "; ".join(axes.sources(options))}
    row |= {"departure": axes.kind(options), "evidence": axes.evidence(options)}
    row |= {"needs": " ".join(claim.needs), "family": " ".join(filter(None, claim.family[1:]))}
    return row | {name: "yes" if getattr(claim, name) else "" for name in ("main", "informs", "fitted_on")}


def _row(
    claim: Claim,
    result: Result,
    judged: tuple[Judged, Judged, Corrected] | None,
    places: Sequence[tuple[Judged, Judged, Corrected] | None],
    orders: Mapping[tuple[str, ...], int],
) -> dict[str, Any]:
    measured = result.measured
    row: dict[str, Any] = described(claim) | {"data": result.data, "seeds": 0, "twins": ""}
    row |= {"verdict": "unchecked", "verdict_single": "unchecked"}
    notes = [claim.note, result.missing]
    if measured is not None and judged is not None:
        single, whole, corrected = judged
        told = _told(claim, result, whole, [place[1] for place in places if place is not None])
        if result.data != "surrogate":
            row |= {"verdict": told.verdict, "verdict_single": single.verdict}
        row |= {"measured": whole.measured, "ci_low": whole.low, "ci_high": whole.high}
        row |= dict(zip(("pi_low", "pi_high"), whole.predicted, strict=True))
        row |= {"p_value": single.p_value, "p_holm": corrected.p_holm}
        if result.twins and not result.twins_are_lost:
            row["twins"] = " ".join(place[1].verdict for place in places if place is not None)
        row |= _effect(claim, measured)
        count = len(measured.values) if measured.seeds is None else measured.seeds
        row["seeds"] = f"{count} of {claim.shared}" if claim.shared and count else count
        notes += _remarks(claim, result, told)
        wanted = (
            seeds.needed(claim, measured, orders.get(claim.family, 1))
            if told.verdict == "inconclusive"
            else None
        )
        notes.append(f"would need {wanted} seeds" if wanted and wanted > count else "")
    if claim.tolerance_reason:
        named = {"order": "least effect", "value": "width"}.get(claim.kind, "tolerance")
        notes.append(f"{named}: {claim.tolerance_reason}")
    return row | {"note": "; ".join(filter(None, notes))}


def _effect(claim: Claim, measured: Measured) -> dict[str, Any]:
    """Distance of a number to the published one, or size of a difference, and its side."""
    if claim.kind not in NUMBERS or measured.alternatives:
        return {}
    effect = float(measured.values.astype(float).mean()) - (claim.published or 0.0)
    within = abs(effect) < (claim.tolerance or claim.precision)
    above, below = ("as claimed", "against") if claim.kind == "order" else ("above", "below")
    return {"effect": effect, "direction": "none" if within else above if effect > 0 else below}


def _remarks(claim: Claim, result: Result, told: Judged) -> list[str]:
    measured = result.measured
    assert measured is not None
    notes = [measured.note]
    if measured.bounds.any():
        bounds = np.count_nonzero(measured.bounds)
        notes.append(f"{bounds} of {len(measured.values)} values are only bounds")
    if measured.undecided:
        notes.append(f"of {measured.undecided} seeds more nothing is known")
    if measured.chaotic:
        depends = "runs depend on rounding: moved by their last bits they go elsewhere"
        notes.append(_INSENSITIVE if result.twins and told.verdict != "inconclusive" else depends)
        notes.append("no perturbed runs to judge by" if result.twins_are_lost else "")
    if claim.kind in NUMBERS and told.low is None:
        notes.append("one seed only, so no interval")
    if _too_few(claim, measured):
        notes.append(f"fewer than {claim.fewest} seeds decide no order")
    if claim.kind == "value" and 1 < len(measured.values) < _FEW:
        notes.append(f"{len(measured.values)} repetitions, so that the interval is wide")
    if result.data == "surrogate":
        notes.append("measured on surrogate data, which say nothing about the paper")
    return notes
