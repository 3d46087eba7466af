"""Rules of verdicts and of statuses: of each list the first that applies decides, and says why.

`replifed claims --why`, the column `reason`, the report and docs/verdicts.md print these sentences; nothing
else words them. Facts stand in braces. Limits are fixed before anything is run; what was changed after a run,
and why, is in the logs that a test guards (`tests/golden`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.claims.claim import Claim, Measured
from replifed.claims.multiplicity import LEVEL, p_value
from replifed.claims.printed import Printed
from replifed.intervals import mean_interval, prediction

HOLDS, FAILS, OPEN, UNCHECKED = VERDICTS = ("holds", "fails", "inconclusive", "unchecked")
NOT_RUN = "not run"  # of a statement in settings
# Of settings in which a statement holds: they answer what the text leaves open, or replace what it prints.
GAPS = FILLS, AGAINST = ("fills gaps", "against the text")
NOT_YET = "not run yet"  # the reason of a claim that is newer than the run
# Share of an interval's half-width by which a `near` is clear of an end of its tolerance, at least: between
# two processors those of FedNL, which is sensitive to rounding, moved by up to 0.9 %, half of them by 0.4 %.
_CLEAR = 0.01
# Seeds whose perturbed runs were kept, at least, before an order on runs sensitive to rounding is decided.
PERTURBED = 5
# Least ratio of a difference to the distance between a run and a perturbed one, for it to count.
_DISTANCES = 3
_BEYOND = "however far the bounds are off"
_SENSITIVE = "runs are sensitive to rounding"


class Rule(NamedTuple):
    """Whether a rule applies, the verdict or status that it gives, and why."""

    applies: Any
    verdict: str
    reason: str
    facts: Mapping[str, Any] = MappingProxyType({})

    @property
    def in_general(self) -> str:
        """The reason with names in capitals in the place of facts."""
        return re.sub(r"{(\w+)}", lambda fact: fact[1].replace("_", " ").upper(), self.reason)


def decide(rules: Iterable[Rule], otherwise: tuple[str, str] = ("", "")) -> tuple[str, str]:
    """Verdict and reason of the first rule that applies; if none does, `otherwise`."""
    found = ((rule.verdict, rule.reason.format_map(rule.facts)) for rule in rules if rule.applies)
    return next(found, otherwise)


class Corrected(NamedTuple):
    """What a family's other claims make of one's test."""

    p_holm: float | None = None
    level: float = LEVEL  # of the interval of a value


@dataclass(frozen=True)
class Case:
    """A measurement of a claim, with the numbers that the rules compare."""

    claim: Claim
    measured: Measured
    mean: float  # over seeds; of a shape or an identity, the share of cases
    # Ends of its 95 % interval, no narrower than the grid on which values were read; infinite of one value.
    low: float
    high: float
    # Of an order or a value, two-sided: by itself, None where all repetitions copy one run, and after
    # correction with its family.
    p_value: float | None = None
    p: float = 1.0
    # Ends of the interval in which the mean that a paper printed is to lie.
    predicted: tuple[float, float] = (-math.inf, math.inf)


def case(claim: Claim, measured: Measured, corrected: Corrected | None = None) -> Case:
    """The numbers of a measurement by itself, or `corrected` with its family."""
    p_holm, level = corrected or Corrected()
    if claim.kind in ("shape", "identity", "printed"):
        return Case(claim, measured, float(measured.values.astype(bool).mean()), -math.inf, math.inf)
    values, published = measured.values.astype(float), claim.published or 0.0
    mean, low, high = mean_interval(values)
    low, high = min(low, mean - measured.grid), max(high, mean + measured.grid)
    if claim.kind == "near" and measured.alternatives:
        return Case(claim, measured, mean, float(values.min()), float(values.max()))
    if claim.kind == "value":
        theirs = prediction(
            values,
            claim.repetitions,
            data_sets=measured.data_sets,
            spread=claim.spread,
            widened=claim.precision + measured.grid,
        )
        single, ends = theirs.p_value(published), theirs.interval(level)
        return Case(claim, measured, mean, low, high, single, single if p_holm is None else p_holm, ends)
    if claim.kind == "near" or (measured.copies and len(values) == 1):
        return Case(claim, measured, mean, low, high)
    single = p_value(values - published, measured.grid, measured.of_mean)
    return Case(claim, measured, mean, low, high, single, single if p_holm is None else p_holm)


# --- Claims ---------------------------------------------------------------------------------------

# A censored value (see `Measured.bounds`) enters the mean as its bound, and counts only for a verdict that
# stays the same however far beyond its bound the truth lies.


def _value(case: Case) -> list[Rule]:
    published, rival, bounds = case.claim.published or 0.0, case.claim.rival, case.measured.bounds
    low, high = case.predicted
    further = _further(bounds, low > published, high < published)
    narrow = (high - low) / 2 <= (case.claim.tolerance or 0.0) * (1 + 1e-12)
    has_rival, facts = rival is not None, {"rival": f"{rival or 0.0:.4g}"}
    too = rival is not None and low <= rival <= high
    return [
        _undecided(case),
        Rule(further, FAILS, f"the published number is outside the prediction interval, {_BEYOND}"),
        _bounded(case),
        Rule(case.p <= LEVEL, FAILS, "the published number is outside the prediction interval"),
        _alone(low),
        Rule(too, OPEN, "the prediction interval also contains the rival's number, {rival}", facts),
        Rule(has_rival, HOLDS, "the prediction interval contains the published number, but not the rival's"),
        Rule(narrow, HOLDS, "the prediction interval contains the published number, and is narrow enough"),
        Rule(True, OPEN, "the prediction interval is wider than the claim allows"),
    ]


def _near(case: Case) -> list[Rule]:
    if case.measured.alternatives:
        return _meanings(case)
    published, tolerance = case.claim.published or 0.0, case.claim.tolerance or 0.0
    half, off, allowed = (case.high - case.low) / 2, abs(case.mean - published), _allowed(case.claim)
    narrow, margin = half <= allowed, _CLEAR * half
    inside = narrow and off <= allowed - margin
    # However wide, an interval that stays clear of every tolerated value is conclusive; no other one fails.
    above, below = case.low - margin > published + tolerance, case.high + margin < published - tolerance
    further = _further(case.measured.bounds, above, below)
    return [
        _undecided(case),
        Rule(further, FAILS, f"the whole interval is outside the tolerance, {_BEYOND}"),
        _bounded(case),
        _alone(case.low),
        Rule(inside, HOLDS, "the mean is within the tolerance, and the interval is narrow enough"),
        Rule(above or below, FAILS, "the whole interval is outside the tolerance"),
        Rule(narrow, OPEN, "the interval overlaps the tolerance, but the mean is not clearly inside"),
        Rule(True, OPEN, "the interval is wider than the tolerance"),
    ]


def _meanings(case: Case) -> list[Rule]:
    """Of numbers that are not of seeds, but of what the paper may have meant."""
    within = np.abs(case.measured.values - (case.claim.published or 0.0)) <= _allowed(case.claim)
    return [
        _undecided(case),
        Rule(within.all(), HOLDS, "the number is within the tolerance, whatever the paper meant"),
        Rule(not within.any(), FAILS, "the number is outside the tolerance, whatever the paper meant"),
        Rule(True, OPEN, "whether the number is within the tolerance depends on what the paper meant"),
    ]


def _allowed(claim: Claim) -> float:
    """Tolerance of a `near`: floating-point subtraction makes 6.5 - 5 a hair more than 1.5."""
    published, tolerance = claim.published or 0.0, claim.tolerance or 0.0
    return tolerance + 1e-12 * max(abs(published), tolerance, 1e-300)


def _order(case: Case) -> list[Rule]:
    beyond, least, bounds = case.claim.published or 0.0, case.claim.tolerance or 0.0, case.measured.bounds
    effect, low, high = case.mean - beyond, case.low - beyond, case.high - beyond
    significant = case.p <= LEVEL
    above = significant and effect >= least and low >= 0
    below = significant and effect <= -least and high <= 0
    equal = -least <= low and high <= least
    hidden = equal and bounds.any()
    smaller, larger = above and (bounds < 0).any(), below and (bounds > 0).any()
    single = not significant and case.p_value is not None and case.p_value <= LEVEL
    seeds, fewest = case.measured.count, case.claim.fewest
    facts = {"seeds": seeds, "p": f"{case.p:.2g}"}
    return [
        _undecided(case),
        Rule(case.p_value is None, OPEN, "all repetitions are equal, so that there is only one run"),
        Rule(seeds < fewest, OPEN, f"an order needs at least {fewest} seeds, and there are {{seeds}}", facts),
        Rule(
            smaller, OPEN, "the difference is on the claimed side, but may be smaller: some values are bounds"
        ),
        Rule(above, HOLDS, "the difference is on the claimed side, and reaches the least effect"),
        Rule(larger, OPEN, "the difference is on the other side, but may be larger: some values are bounds"),
        Rule(below, FAILS, "the difference is on the other side, and reaches the least effect"),
        Rule(hidden, OPEN, "the difference is below the least effect, but some values are bounds"),
        Rule(equal, FAILS, "the difference and its whole interval are below the least effect"),
        Rule(
            single, OPEN, "the difference is significant alone, not after Holm's correction: p = {p}", facts
        ),
        Rule(not significant, OPEN, "the difference is not significant: p = {p}", facts),
        Rule(abs(effect) < least, OPEN, "the difference is below the least effect, but its interval is not"),
        Rule(True, OPEN, "the difference is significant, but its interval reaches the other side"),
    ]


def _share(case: Case) -> list[Rule]:
    holds, known = case.measured.values.astype(bool), case.measured.bounds == 0
    unknown = int((~known).sum()) + case.measured.undecided
    cases, sure = len(holds) + case.measured.undecided, int((holds & known).sum())
    possible = int((holds | ~known).sum()) + case.measured.undecided
    # A share such as 0.8 of 5 must not fail for the last bit of 0.8.
    least = case.claim.share - 1e-12
    enough, few = sure / cases >= least, possible / cases < least
    counts = {"sure": sure, "possible": possible, "some": unknown, "cases": cases}
    facts = {**counts, "share": f"{100 * case.claim.share:.4g} %"}
    return [
        Rule(enough, HOLDS, "it is true in {sure} of {cases} cases; the claim needs {share}", facts),
        Rule(few, FAILS, "it is true in at most {possible} of {cases} cases; the claim needs {share}", facts),
        Rule(True, OPEN, "{some} of {cases} cases are unknown, and could change the verdict", facts),
    ]


def _printed(case: Case) -> list[Rule]:
    one = case.measured
    assert isinstance(one, Printed)
    found, facts = one.found, one.facts
    return [
        Rule(not found, FAILS, "no rule gives the printed numbers; the nearest is {rule}: {misses}", facts),
        Rule(
            one.chance > LEVEL,
            OPEN,
            "{rule} gives the printed digits, but one of {tried} rules matches them by chance with "
            "probability {chance}",
            facts,
        ),
        Rule(
            one.as_stated, HOLDS, "{rule}, as stated, gives the printed numbers (by chance: {chance})", facts
        ),
        Rule(
            True,
            HOLDS,
            "{rule}, which the text does not state, gives the printed numbers; one of {tried} rules matches "
            "them by chance with probability {chance}",
            facts,
        ),
    ]


def _undecided(case: Case) -> Rule:
    undecided = case.measured.undecided
    return Rule(undecided > 0, OPEN, "{seeds} more seeds have no value", {"seeds": undecided})


def _further(bounds: NDArray, above: bool, below: bool) -> bool:
    """True if some values are bounds, and the truth beyond all of them only lies further off."""
    one_side = (above and (bounds >= 0).all()) or (below and (bounds <= 0).all())
    return bool(bounds.any() and one_side)


def _bounded(case: Case) -> Rule:
    return Rule(case.measured.bounds.any(), OPEN, "some values are only bounds, and could change the verdict")


def _alone(low: float) -> Rule:
    return Rule(not math.isfinite(low), OPEN, "a single value has no interval")


# By kind, on a measurement alone: data and rounding are not looked at.
RULES: dict[str, Callable[[Case], list[Rule]]] = {
    **{"value": _value, "near": _near, "order": _order},
    **{"shape": _share, "identity": _share, "printed": _printed},
}


# --- Rounding, and what is not measured -----------------------------------------------------------


def of_rounding(
    claim: Claim, measured: Measured, verdict: str, perturbed: Sequence[str], lost: bool, distance: float
) -> list[Rule]:
    """The rules on orders, shapes and counts, of runs sensitive to rounding, that had a `verdict` so far.

    Parameters
    ----------
    perturbed : verdicts with the first and the second perturbed runs in the runs' place, corrected alike.
    lost : these were not kept, or cannot be measured.
    distance : root mean square distance of values between runs and perturbed ones; infinite if too few were
        kept.
    """
    difference = abs(float(measured.values.astype(float).mean()) - (claim.published or 0.0))
    other = set(perturbed) != {verdict}
    few = claim.kind == "order" and math.isinf(distance)
    within = claim.kind == "order" and not difference > _DISTANCES * distance
    times = f"{difference / distance if distance else 0.0:.2g}"
    facts = {"verdict": _in_words(perturbed), "ratio": times}
    return [
        Rule(lost, OPEN, f"{_SENSITIVE}, and there are no perturbed runs to judge by"),
        Rule(other, OPEN, f"{_SENSITIVE}: with the perturbed runs the claim {{verdict}}", facts),
        Rule(few, OPEN, f"{_SENSITIVE}, and fewer than {PERTURBED} seeds have perturbed runs"),
        Rule(
            within,
            OPEN,
            f"{_SENSITIVE}: the difference is {{ratio}} times the shift that it causes; it must exceed "
            f"{_DISTANCES}",
            facts,
        ),
    ]


def _in_words(verdicts: Sequence[str]) -> str:
    """Two verdicts, such as "holds and is inconclusive"."""
    return " and ".join(f"is {one}" if one == OPEN else one for one in dict.fromkeys(verdicts))


def unmeasured(claim: Claim, lacking: Sequence[str], refusal: str | None, data: str) -> list[Rule]:
    """The rules on claims that stay unchecked.

    Parameters
    ----------
    lacking : keys of inputs that the run has not made.
    refusal : why the inputs cannot answer the claim, if they cannot.
    data : kind of the data.
    """
    facts, surrogate = {"runs": ", ".join(lacking), "why": refusal}, data == "surrogate"
    return [
        Rule(lacking, UNCHECKED, "not measured: this run lacks {runs}", facts),
        Rule(claim.measure is None, UNCHECKED, "nothing to measure"),
        Rule(refusal is not None, UNCHECKED, "not measured: {why}", facts),
        Rule(surrogate, UNCHECKED, "measured on generated stand-in data, which say nothing about the paper"),
    ]


# --- Statements -----------------------------------------------------------------------------------


class Found(NamedTuple):
    """What came of a statement in the settings in which it was run."""

    measured: bool = False  # on data that say something about the paper
    printed: str = NOT_RUN  # verdict in the printed settings
    inferred: bool = False  # it holds in the inferred settings, which were not fitted on it
    other: bool = False  # it holds in other settings that were not fitted on it
    unfitted: frozenset[str] = frozenset()  # verdicts in all other settings without a fitted option
    algebra_fails: bool = False  # it rests on formulas, and fails in some settings
    only_fitted: bool = False  # it holds in settings that were fitted on it
    gap: str = FILLS  # of the settings in which it holds: whether they fill gaps
    replaces: str = ""  # the printed options that these replace
    miss: str = ""  # what the inferred settings give, or others with a fitted option, where it fails there


def of_statement(found: Found) -> list[Rule]:
    """The rules of a statement's status."""
    which = "fill gaps" if found.gap == FILLS else f"replace {found.replaces}"
    facts = {"fill_gaps_or_replace_options": which, "outcome": found.miss}
    printed, not_run = found.printed, found.printed == NOT_RUN
    others_fail = found.unfitted == {FAILS}
    misses = not_run and not found.unfitted and found.miss
    return [
        Rule(not found.measured, "untestable", "nothing was measured, or only on generated stand-in data"),
        Rule(printed == HOLDS, "reproduced", "it holds in the printed settings"),
        Rule(
            found.inferred,
            "conditional",
            "it holds in the inferred settings, which {fill_gaps_or_replace_options} and were not fitted "
            "on it",
            facts,
        ),
        Rule(
            found.other,
            "conditional",
            "it holds in other settings, which {fill_gaps_or_replace_options} and were not fitted on it; "
            "its orders are corrected for the number of settings",
            facts,
        ),
        Rule(printed == FAILS, "deviates", "it fails in the printed settings"),
        Rule(found.algebra_fails, "deviates", "it fails by algebra, whatever the settings"),
        Rule(
            not_run and others_fail,
            "deviates",
            "the printed settings cannot be run, and it fails in all others that have no fitted option",
        ),
        Rule(found.only_fitted, "inconclusive", "it holds only with settings that were fitted on it"),
        Rule(
            misses,
            "inconclusive",
            "the printed settings cannot be run; the fitted ones do not give it: {outcome}",
            facts,
        ),
        Rule(True, "inconclusive", "no settings decide it"),
    ]


def listed() -> dict[str, list[Rule]]:
    """All rules on claims, by what they are on, of a case that stands for any."""
    claim = Claim(id="", paper="", artefact="", statement="", kind="near", published=0.0, tolerance=1.0)
    any_case = case(claim, Measured(np.zeros(2)))
    return {
        "value": _value(any_case),
        "near": _near(any_case),
        "near, of several meanings": _meanings(any_case),
        "order": _order(any_case),
        "shape or identity": _share(any_case),
        "printed": _printed(replace(any_case, measured=Printed(np.zeros(2), rule="last"))),
        "runs sensitive to rounding": of_rounding(
            claim, any_case.measured, HOLDS, (), lost=False, distance=1.0
        ),
        "not measured": unmeasured(claim, (), None, ""),
    }
