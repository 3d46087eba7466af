"""Verdicts on claims: what was measured, by itself and with the claim's family, held against the `rules`.

What is measured of an order leaves out copies of runs (`copies`). Orders, and values, of one artefact
and settings are a family, whose tests are corrected together (`multiplicity`); where runs are sensitive to
rounding, perturbed ones (`engine.perturbed`) take their place, too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from replifed.claims import printed, rules
from replifed.claims.claim import (
    DATA_KINDS,
    NUMBERS,
    Claim,
    Measured,
    MeasurementError,
    NotMeasurableError,
)
from replifed.claims.multiplicity import LEVEL, holm, holm_levels
from replifed.claims.rules import OPEN, Corrected
from replifed.claims.samples import copies_in_words, independent, originals
from replifed.errors import ReplifedError

COLUMNS = (
    *("id", "statement_id", "paper", "artefact", "place", "sentence", "statement", "kind", "part"),
    *("main", "informs", "evidence", "question", "reply"),
    *("options", "sources", "settings", "source", "departure", "replaces", "fitted_on"),
    *("needs", "family"),
    *("published", "measured", "unit", "ci_low", "ci_high", "pi_low", "pi_high", "rival", "tolerance"),
    *("effect", "direction", "p_value", "p_holm", "verdict_single", "verdict", "reason", "twins"),
    *("data", "scale", "seeds", "command", "note"),
)
NUMERIC = (
    *("published", "measured", "ci_low", "ci_high", "pi_low", "pi_high", "rival", "tolerance"),
    *("effect", "p_value", "p_holm"),
)
# Columns that files of older versions lack.
ADDED = ("reason",)
_SENSITIVE = "runs depend on rounding: perturbed in their last bits they end elsewhere"
_INSENSITIVE = "runs depend on rounding, but with perturbed ones in their place it comes out the same"
# With fewer repetitions a note says how many there are.
_FEW = 20
# In this share of cases the interval of the requested number of seeds is narrow enough.
ASSURANCE = 0.8
_MOST = 100_000


class Judged(NamedTuple):
    """A verdict with its reason and the numbers behind it; None where there is no such number."""

    verdict: str
    reason: str
    measured: float
    low: float | None
    high: float | None
    # Of an order or a value, two-sided: by itself, and after correction with its family.
    p_value: float | None
    p_holm: float | None
    predicted: tuple[float | None, float | None]  # of a value


def judge(claim: Claim, measured: Measured, corrected: Corrected | None = None) -> Judged:
    """Apply the rules to one measurement, real data or not; by itself, or `corrected` with its family.

    Rounding is not looked at.
    """
    case = rules.case(claim, measured, corrected)
    verdict, reason = rules.decide(rules.RULES[claim.kind](case))
    shown = case.mean if measured.shown is None else measured.shown
    low, high, *predicted = (x if math.isfinite(x) else None for x in (case.low, case.high, *case.predicted))
    p_holm = None if corrected is None else corrected.p_holm
    return Judged(verdict, reason, shown, low, high, case.p_value, p_holm, (predicted[0], predicted[1]))


# --- All claims of a paper ------------------------------------------------------------------------


class Result(NamedTuple):
    """What was measured of a claim, and where runs are sensitive to rounding, with perturbed ones, too."""

    data: str  # kind of the data
    measured: Measured | None = None
    lacking: Sequence[str] = ()  # keys of inputs that the run has not made
    refusal: str | None = None  # why the inputs cannot answer the claim
    # With the first and the second perturbed run in each run's place; empty where runs are not sensitive to
    # rounding, or where the verdict does not hang on it.
    perturbed: tuple[Measured, ...] = ()
    # Root mean square distance between a run and a perturbed one; infinite where too few were kept.
    distance: float = math.inf

    @property
    def perturbed_are_lost(self) -> bool:
        """True where perturbed runs were not kept, or cannot be measured: the run stands in their place."""
        return any(one.chaotic for one in self.perturbed)


def measure(claims: Sequence[Claim], inputs: Any, scale: str, command: Callable[[Claim], str] = lambda _: ""):
    """Measure and judge claims: a DataFrame with one line per claim and `COLUMNS`.

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
        _judge_all(claims, [one.perturbed[place] if one.perturbed else one.measured for one in results])
        for place in (0, 1)
    ]
    tests, rows = families(claims), []
    for claim, result in zip(claims, results, strict=True):
        perturbed = [place[claim.id][1].verdict for place in places if claim.id in place]
        row = _row(claim, result, judged.get(claim.id), perturbed, tests.get(claim.family, 1))
        rows.append(row | {"scale": scale, "command": command(claim)})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(NUMERIC, float))


def measured_on(inputs: Any, claim: Claim) -> Result:
    """Measure a claim on its runs, and on perturbed ones where its verdict may hang on rounding."""
    lacking = [key for key in claim.needs if not inputs.has(key)]
    if lacking:
        return Result("none", lacking=lacking)
    kinds = [inputs.data_kind(experiment)[0] for experiment in claim.experiments]
    data = max(kinds, key=DATA_KINDS.index, default="none")
    if claim.measure is None:
        return Result(data)
    try:
        measured = _measurement(claim, inputs)
    except NotMeasurableError as refusal:
        return Result(data, refusal=str(refusal))
    except MeasurementError as error:
        raise ReplifedError(f"{claim.id}: {error}") from error
    if not (measured.chaotic and claim.hangs_on_rounding):
        return Result(data, measured)
    try:
        perturbed = tuple(_measurement(claim, moved) for moved in inputs.of_perturbed())
    except NotMeasurableError:
        perturbed = measured, measured  # as where perturbed runs were not kept: they decide nothing
    distance = _distance(claim, measured, inputs)
    return Result(data, measured, perturbed=perturbed, distance=distance)


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
    note = "; ".join(filter(None, (measured.note, copies_in_words(len(kept), len(seeds)))))
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
    """Root mean square distance of values between runs and perturbed ones, over the seeds that have these."""
    try:
        kept, *perturbed = (_measurement(claim, one) for one in inputs.with_perturbed())
    except NotMeasurableError:
        return math.inf
    enough = len(kept.values) >= min(rules.PERTURBED, len(measured.values))
    if not enough or any(len(one.values) != len(kept.values) for one in perturbed):
        return math.inf
    distances = [one.values.astype(float) - kept.values.astype(float) for one in perturbed]
    return float(np.sqrt(np.mean(np.square(distances))))


def _judge_all(
    claims: Sequence[Claim], measurements: Sequence[Measured | None]
) -> dict[str, tuple[Judged, Judged]]:
    """Verdicts by id, of each claim by itself and corrected with its family, as far as it was measured."""
    there = {
        claim.id: (claim, one) for claim, one in zip(claims, measurements, strict=True) if one is not None
    }
    singles = {name: judge(claim, one) for name, (claim, one) in there.items()}
    corrected = _corrected(claims, singles)
    return {
        name: (singles[name], judge(claim, one, corrected.get(name))) for name, (claim, one) in there.items()
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


def _rounded(claim: Claim, result: Result, judged: Judged, perturbed: Sequence[str]) -> Judged:
    """The verdict, or that it hangs on rounding; what is open anyway stays so for its own reason."""
    measured = result.measured
    assert measured is not None
    if not (measured.chaotic and claim.hangs_on_rounding) or judged.verdict == OPEN:
        return judged
    on_rounding = rules.of_rounding(
        claim,
        measured,
        judged.verdict,
        perturbed,
        lost=result.perturbed_are_lost,
        distance=result.distance,
    )
    verdict, reason = rules.decide(on_rounding, (judged.verdict, judged.reason))
    return judged._replace(verdict=verdict, reason=reason)


def described(claim: Claim) -> dict[str, Any]:
    """Columns that are known before anything is measured."""
    row = {name: getattr(claim, name) for name in COLUMNS if hasattr(claim, name)}
    options, axes = claim.options, claim.axes
    row |= {"options": claim.settings, "settings": axes.names(options), "source": axes.source(options)}
    row |= {"sources": "; ".join(axes.sources(options))}
    row |= {"departure": axes.kind(options), "replaces": axes.replaces(options)}
    row |= {"fitted_on": claim.fitted_on}
    row |= {"needs": " ".join(claim.needs), "family": " ".join(filter(None, claim.family[1:]))}
    return row | {name: "yes" if getattr(claim, name) else "" for name in ("main", "informs")}


def _row(
    claim: Claim,
    result: Result,
    judged: tuple[Judged, Judged] | None,
    perturbed: Sequence[str],
    tests: int,
) -> dict[str, Any]:
    """Columns of a claim: its verdict by itself and with its family of `tests`, and on perturbed runs."""
    measured = result.measured
    row: dict[str, Any] = described(claim) | {"data": result.data, "seeds": 0, "twins": ""}
    notes = [claim.note]
    if measured is not None and judged is not None:
        single, whole = judged
        final = _rounded(claim, result, whole, perturbed)
        row |= {"verdict": final.verdict, "reason": final.reason, "verdict_single": single.verdict}
        row |= {"measured": whole.measured, "ci_low": whole.low, "ci_high": whole.high}
        row |= dict(zip(("pi_low", "pi_high"), whole.predicted, strict=True))
        row |= {"p_value": single.p_value, "p_holm": whole.p_holm}
        if result.perturbed and not result.perturbed_are_lost:
            row["twins"] = " ".join(perturbed)
        row |= _effect(claim, measured) | printed.settings(claim, measured, final.verdict)
        count = measured.count
        row["seeds"] = f"{count} of {claim.shared}" if claim.shared and count else count
        notes += _remarks(claim, measured, bool(result.perturbed), whole.verdict, final.verdict)
        if final.verdict == OPEN:
            wanted = needed(claim, measured, tests)
            notes.append(f"would need {wanted} seeds" if wanted and wanted > count else "")
    unchecked, reason = rules.decide(rules.unmeasured(claim, result.lacking, result.refusal, result.data))
    if unchecked:
        row |= {"verdict": unchecked, "reason": reason, "verdict_single": unchecked}
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


def _remarks(claim: Claim, measured: Measured, perturbed: bool, before: str, verdict: str) -> Iterator[str]:
    """What is to be known beside the reason of a verdict, `before` rounding was looked at and after."""
    yield measured.note
    if measured.bounds.any():
        yield f"{np.count_nonzero(measured.bounds)} of {len(measured.values)} values are only bounds"
    if measured.undecided and claim.kind not in NUMBERS:
        yield f"{measured.undecided} more seeds have no value"
    if measured.chaotic and verdict == before:
        yield _INSENSITIVE if perturbed and verdict != OPEN else _SENSITIVE
    if claim.kind == "value" and 1 < len(measured.values) < _FEW:
        yield f"of {len(measured.values)} repetitions alone"


def number_for(
    spread: float, half_width: float, known: int, level: float = LEVEL, theirs: float = 0.0
) -> int | None:
    """Minimum number of values of which the interval of the mean, at `level`, is narrow enough.

    None if `_MOST` are not enough. With `theirs`, one over the repetitions of another mean, the interval is
    that of a prediction of it.

    `spread` is the standard deviation of `known` values. The variance of n further values, over that of the
    known ones, follows an F distribution; its `ASSURANCE` quantile is taken.
    """
    # Far lighter to import than scipy.stats.
    from scipy.special import fdtri, stdtrit

    def enough(n: int) -> bool:
        variance = spread**2 * fdtri(n - 1, known - 1, ASSURANCE)
        return bool(stdtrit(n - 1, 1 - level / 2) ** 2 * variance * (1 / n + theirs) <= half_width**2)

    if not enough(_MOST):
        return None
    return 2 + bisect_left(range(2, _MOST), True, key=enough)


def needed(claim: Claim, measured: Measured, tests: int) -> int | None:
    """Number of seeds that a claim needs, by what was `measured` on some; None if it decides nothing.

    So it is where values are bounds or alternatives, where runs are sensitive to rounding, and of shapes and
    identities. A number far from the published one, or an order far from zero, needs a wider interval only:
    half of that distance is counted on. A prediction interval needs to exclude the rival; more seeds do not
    make it narrower than the paper's own repetitions allow. An order or a value is one of `tests` of its
    family, and is judged after correction.
    """
    values, n = measured.values.astype(float), len(measured.values)
    if claim.kind not in NUMBERS or n < 2 or measured.alternatives:
        return None
    if measured.chaotic and claim.hangs_on_rounding:
        return None
    mean, spread, within = values.mean(), values.std(ddof=1), claim.tolerance or 0.0
    level = LEVEL if claim.kind == "near" else LEVEL / tests
    beyond = mean - (claim.published or 0.0)
    if claim.kind == "value":
        allowed = within if claim.rival is None else abs(mean - claim.rival)
        half_width = allowed - claim.precision
        against, theirs = measured.bounds.any(), 1 / claim.repetitions
    else:
        of_value = claim.kind == "near"
        against = measured.bounds.any() if of_value else (measured.bounds * beyond < 0).any()
        half_width, theirs = max(within, (abs(beyond) - (within if of_value else 0.0)) / 2), 0.0
    if against or half_width <= 0 or half_width < measured.grid:
        return None
    number = number_for(spread, half_width, n, level, theirs)
    if number is None:
        return None
    # Values may be several a seed, or exist on some seeds alone.
    asked = math.ceil(number * (measured.seeds or n) / n)
    return max(asked, claim.fewest) if claim.kind == "order" else asked


def families(claims: Sequence[Claim]) -> Counter[tuple[str, ...]]:
    """Number of tests by family."""
    return Counter(claim.family for claim in claims if claim.is_tested)
