"""Measures of curves for this paper's claims: rounds, final values, roughness, traffic."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.claim import Measured, NotMeasurableError
from replifed.claims.curves import (
    Curves,
    at,
    curves,
    first,
    last,
    level,
    roughness,
    round_at,
    rounds_to,
    slowness,
)
from replifed.claims.quantities import as_it_stands, joined, least, quantity
from replifed.claims.samples import Sample, paired
from replifed.claims.searches import within
from replifed.papers.fedht.paper import METHODS, ordered_levels
from replifed.papers.fedht.simulations import NAME, support_distance, supports

# Least effect of an order where the text names none.
ANY = 1e-9


@quantity
def batches(history: pd.DataFrame, full: bool = False) -> pd.DataFrame:
    """The lines of a history with full batches, or with small ones."""
    return history[(history["batch"] == "full") == full]


@quantity
def at_level(history: pd.DataFrame, experiment: str, place: int) -> pd.DataFrame:
    """The lines at the level of heterogeneity number `place`, mildest first."""
    levels = ordered_levels(history["level"])
    if not -len(levels) <= place < len(levels):
        raise NotMeasurableError(f"{experiment} ran at {len(levels)} level(s) of heterogeneity")
    return history[history["level"] == levels[place]]


# --- Pairs of curves -----------------------------------------------------------------------------


# How far down to the level that all curves end at they are followed. Objectives are means over all clients,
# so that minibatches hardly show: rounds are counted without a window, which would only delay them.
_DESCENT = 0.9
_TARGET = "nine tenths of the descent that all make"


def easier_target(*several: Curves) -> Sample:
    """For each seed, nine tenths of the way down from the start to the highest of the levels they end at.

    A curve comes to rest at its own last level only at the very end of the run, however early it is near it.
    Curves that diverged, or end no lower than they began, are left out. The others reach the target unless
    they leap above it near the end. Infinite where no curve is left.
    """
    ends = np.stack([level(one).values for one in several])
    starts = np.stack([one.values[:, 0] for one in several])
    with np.errstate(invalid="ignore"):
        left = np.where(ends < starts, ends + (1.0 - _DESCENT) * (starts - ends), -np.inf)
    highest = left.max(axis=0)
    return several[0].sample(np.where(np.isfinite(highest), highest, np.inf))


def _at_least_one(rounds: Sample) -> Sample:
    return rounds.map(lambda values: np.maximum(values, 1.0))


def _more(many: Sample, few: Sample, target: Sample) -> Sample:
    """The difference of what two curves take to a target; zero where neither went down."""
    difference = as_it_stands(many - few)
    failed = ~np.isfinite(target.values)
    values, bounds = (np.where(failed, 0, array) for array in (difference.values, difference.bounds))
    return replace(difference, values=values, bounds=bounds)


@quantity
def fewer(fast: Curves, slow: Curves, *costs: float) -> Measured:
    """Rounds that `slow` needs more than `fast` to the target of `easier_target`.

    With costs, bits a round of both, the difference is one of decimal logarithms of bits.
    """
    fast, slow = paired(fast, slow)
    target = easier_target(fast, slow)
    a, b = rounds_to(fast, target), rounds_to(slow, target)
    rounds = f"{a.mean:.4g} against {b.mean:.4g}{lost(fast, slow)}"
    note = f"mean rounds to {_TARGET}{_share_left(target, fast)}: {rounds}"
    if costs:
        a, b = ((_at_least_one(one) * cost).map(np.log10) for one, cost in zip((a, b), costs, strict=True))
    return _more(b, a, target).measured(note=note)


def _share_left(target: Sample, curve: Curves) -> str:
    """How much of the objective is left at a target, as text for a note; "" where it is at none."""
    share = target.values / curve.values[:, 0]
    share = share[np.isfinite(share)]
    return f" (where {share.mean():.3g} of f(0) is left)" if len(share) else ""


@quantity
def capped(values: Sample, start: Sample) -> Sample:
    """Objective as a share of its start, at most 1; a bound where it has diverged."""
    share = values / start
    infinite = ~np.isfinite(share.values)
    capped_values = np.where(infinite, 1.0, np.minimum(share.values, 1.0))
    return Sample(capped_values, infinite.astype(int), share.seeds, share.chaotic)


def lost(*several: Curves) -> str:
    """Number of seeds that diverged, if any, as text for a note."""
    counts = [int((~one.survived).sum()) for one in several]
    if not any(counts):
        return ""
    return f"; diverged seeds: {' and '.join(map(str, counts))} of {len(several[0].seeds)}"


# --- Figure 2 ------------------------------------------------------------------------------------


@quantity
def slower(one: Curves, other: Curves) -> Measured:
    """Mean share of the initial objective that is left over the run, less that of `other`."""
    a, b = slowness(one), slowness(other)
    note = f"mean share of the initial objective that is left over the run: {b.mean:.3g} and {a.mean:.3g}"
    return (a - b).measured(note=f"{note}{lost(other, one)}")


# --- Figure 3 ------------------------------------------------------------------------------------


@quantity
def against_baseline(fast: Curves, base: Curves, baseline_rounds: int, *, ratio: bool) -> Measured:
    """Rounds that FedIterHT needs to what Distributed-IHT has after `baseline_rounds`, or the ratio."""
    fast, base = paired(fast, base)
    target, t = at(base, baseline_rounds), round_at(base, baseline_rounds)
    if t < baseline_rounds:
        raise NotMeasurableError(f"Distributed-IHT ran for {t} rounds alone, not for {baseline_rounds}")
    known = np.isfinite(target.values)
    if not known.any():
        raise NotMeasurableError("Distributed-IHT diverged on all seeds, so there is no objective to reach")
    reached = _at_least_one(rounds_to(fast, target.take(known)))
    # Of the seeds left out, too, whether they depend on rounding.
    chaotic = fast.sample(fast.seeds).chaotic or target.chaotic
    notes = [f"to an objective{_share_left(target, base)}"]
    if reached.bounds.any():
        count, end = int(reached.bounds.sum()), int(fast.rounds[-1])
        notes.append(f"FedIterHT does not get there in {end} rounds on {count} of {known.sum()} seeds")
    if not known.all():
        notes.append(f"{int((~known).sum())} seeds left out, on which Distributed-IHT diverged")
    result = t / reached if ratio else reached
    return replace(result, chaotic=chaotic).measured(note="; ".join(notes))


@quantity
def sooner(one: Curves, other: Curves, base: Curves, baseline_rounds: int) -> Measured:
    """Rounds that `other` needs more than `one` to what Distributed-IHT has after `baseline_rounds`."""
    a, b = (against_baseline(curve, base, baseline_rounds, ratio=False) for curve in (one, other))
    if a.bounds.any() or b.bounds.any() or len(a.values) != len(b.values):
        raise NotMeasurableError("a method does not get there on every seed")
    note = f"mean rounds: {a.values.mean():.4g} and {b.values.mean():.4g}"
    return Measured(b.values - a.values, note=note, chaotic=a.chaotic or b.chaotic)


@quantity
def lower_at(fast: Curves, base: Curves, fast_rounds: int, baseline_rounds: int) -> Measured:
    """Objective of Distributed-IHT after `baseline_rounds` less that of FedIterHT after `fast_rounds`."""
    fast, base = paired(fast, base)
    t = round_at(base, baseline_rounds)
    s = max(fast_rounds * t // baseline_rounds, 1)
    a, b = capped(at(fast, s), first(fast)), capped(at(base, t), first(base))
    note = f"objectives as shares of f(0), rounds {round_at(fast, s)} and {t}{lost(fast, base)}"
    return as_it_stands(b - a).measured(note=note)


@quantity
def bits_a_round(history: pd.DataFrame, *columns: str) -> float:
    """Bits that are sent each round."""
    one = history[history["round"] > 0].sort_values("round").iloc[0]
    return float(sum(one[column] for column in columns)) / int(one["round"])


# --- Figure 1 ------------------------------------------------------------------------------------


@quantity
def curves_by_k(history: pd.DataFrame, value: str = "objective") -> dict[int, Curves]:
    """Curves of each K."""
    numbers = sorted(history["local_steps"].unique().tolist())
    return {K: curves(history, value, local_steps=K) for K in numbers}


@quantity
def by_local_steps(history: pd.DataFrame, reading: str) -> dict[int, Curves]:
    """Curves of each K, of the seeds that all of them have."""
    several = curves_by_k(history[history["reading"] == reading])
    if len(several) < 2:
        raise NotMeasurableError("only one number of local steps was run")
    return dict(zip(several, paired(*several.values()), strict=True))


@quantity
def larger_k_helps(by_k: dict[int, Curves]) -> Measured:
    """Rounds that the smallest K needs more than the largest."""
    return fewer(by_k[max(by_k)], by_k[min(by_k)])


@quantity
def rounds_fall_with_k(by_k: dict[int, Curves]) -> Measured:
    """For each two neighbouring K, whether the larger needs no more rounds on average."""
    target = easier_target(*by_k.values())
    nowhere = bool((~np.isfinite(target.values)).all())
    reached = {K: rounds_to(one, target) for K, one in by_k.items()}
    holds, bounds = [], []
    for smaller, larger in itertools.pairwise(reached.values()):
        never = nowhere or bool(larger.bounds.all())
        # A seed that does not get there needs more rounds than it had: the mean is a bound from below.
        falls = larger.values.mean() <= smaller.values.mean() and not never
        told_by = larger if falls else smaller
        holds.append(falls)
        bounds.append(bool(told_by.bounds.any()) and not never)
    listed = ", ".join(
        f"K = {K}: {'at least ' * bool(one.bounds.any())}{one.values.mean():.4g}"
        for K, one in reached.items()
    )
    return Measured(
        np.array(holds),
        bounds=np.array(bounds),
        seeds=len(target.values),
        note=f"mean rounds to {_TARGET}{_share_left(target, by_k[min(by_k)])}: {listed}",
        chaotic=any(one.sample(one.seeds).chaotic for one in by_k.values()),
    )


@quantity
def speedup(by_k: dict[int, Curves]) -> Sample:
    """Logarithm of the speed-up from the smallest to the largest K."""
    few, many = by_k[min(by_k)], by_k[max(by_k)]
    target = easier_target(few, many)
    a, b = (_at_least_one(rounds_to(one, target)).map(np.log) for one in (few, many))
    return _more(a, b, target)


def speedups(one: Sample, two: Sample) -> str:
    """A note on the speed-ups of FedIterHT and FedHT."""
    one, two = paired(one, two)
    alike = (one.bounds == two.bounds) & (one.bounds != 0)
    note = f"mean speed-ups {np.exp(one.mean):.3g} (FedIterHT) and {np.exp(two.mean):.3g} (FedHT)"
    left = f"; {alike.sum()} of {len(alike)} seeds left out, where both only gave bounds"
    return note + left if alike.any() else note


# --- Figure 6 ------------------------------------------------------------------------------------


@quantity
def rougher(one: Curves, base: Curves) -> Measured:
    """Decimal logarithm of the roughness of the last fifth of the run, less that of Distributed-IHT."""
    one, base = paired(one, base)
    survived = one.survived & base.survived
    if not survived.any():
        raise NotMeasurableError("no seed on which neither method diverged")
    a, b = (
        roughness(kept, max(round(0.2 * len(kept.rounds)), 4)) / first(kept)
        for kept in (one.take(survived), base.take(survived))
    )
    left = "" if survived.all() else f"; {int((~survived).sum())} seeds left out that diverged"
    return (np.log10(a) - np.log10(b)).measured(
        note=f"standard deviations {a.mean:.3g} and {b.mean:.3g} of f(0){left}"
    )


@quantity
def ends_lowest(names: Sequence[str], mine: Sample, *others: Sample) -> Measured:
    """Final objective of the best of the others, less that of the first."""
    listed = ", ".join(f"{name} {end.mean:.4g}" for name, end in zip(names, (mine, *others), strict=True))
    return as_it_stands(least(*others) - mine).measured(note=f"final shares of f(0): {listed}")


class Ends(NamedTuple):
    """Supports of a method's last models, seed by seed."""

    seeds: NDArray  # ascending, (n,)
    last: NDArray  # masks, (n, coordinates)
    late_change: NDArray  # the share in which they differ from those recorded before, (n,)
    chaotic: bool  # a run is sensitive to rounding

    def take(self, which: NDArray) -> Ends:
        """Those of some seeds, by index."""
        seeds, last, late_change, chaotic = self
        return Ends(seeds[which], last[which], late_change[which], chaotic)


@quantity
def last_supports(lines: pd.DataFrame) -> Ends:
    """Supports at the end of one curve's runs, of those that did not diverge."""
    kept = [name for name in lines if name.startswith(NAME) and name.count(".") == 1]
    if not kept:
        raise NotMeasurableError("supports were not kept")
    lines = lines[np.isfinite(lines[kept].to_numpy(np.float64)).all(axis=1)].sort_values("replicate")
    if lines.empty:
        raise NotMeasurableError("all runs diverged")
    end, before = (lines[lines["round"] == when] for when in sorted(lines["round"].unique())[:-3:-1])
    before = before[before["replicate"].isin(end["replicate"])]
    last = supports(end)
    seeds, chaotic = end["replicate"].to_numpy(int), bool(lines["chaotic"].any())
    return Ends(seeds, last, support_distance(last, supports(before)), chaotic)


@quantity
def end_apart(names: Sequence[str], *ends: Ends) -> Measured:
    """Share in which two methods' last supports differ, less that in which one method's do on another split.

    Of the two methods that are hardest to tell apart. On another split one method's minibatches are others,
    too; of the two methods the one counts whose supports differ more from split to split.
    """
    pairs = []
    for (name, one), (other, two) in itertools.combinations(zip(names, ends, strict=True), 2):
        seeds = np.intersect1d(one.seeds, two.seeds)
        if len(seeds) < 2:
            raise NotMeasurableError("no two seeds of both methods")
        a, b = (end.take(np.searchsorted(end.seeds, seeds)) for end in (one, two))
        across, within = support_distance(a.last, b.last), np.maximum(_to_others(a.last), _to_others(b.last))
        note = f"{METHODS[name]} and {METHODS[other]} are nearest: their supports differ in a share of "
        note += f"{across.mean():.3g}, one method's on two splits in up to {within.mean():.3g}"
        pairs.append((across - within, note))
    values, note = min(pairs, key=lambda pair: pair[0].mean())
    late = (f"{METHODS[name]} {end.late_change.mean():.3g}" for name, end in zip(names, ends, strict=True))
    note += f"; over the last fifth of the rounds they change by {', '.join(late)}"
    return Measured(values, note=note, chaotic=any(end.chaotic for end in ends))


def _to_others(last: NDArray) -> NDArray:
    """Mean share in which each seed's support differs from those of the others, (n,)."""
    return np.array(
        [support_distance(one, np.delete(last, at, axis=0)).mean() for at, one in enumerate(last)]
    )


# --- Partitions and searches ---------------------------------------------------------------------


@quantity
def steps_within(lowest: float, largest: float, *found: dict[str, Any]) -> Measured:
    """True if each best step, of every method, level and K, lies between `lowest` and `largest`."""
    by_level = (one for search in found for one in search["levels"].values())
    records = (record for one in by_level for record in one["by_local_steps"].values())
    return within(lowest, largest, records)


@quantity
def even_clusters(split: Any, ratio: float, balanced: bool) -> Measured:
    """True if the largest cluster is at most (or, not balanced, more than) `ratio` times the smallest."""
    sizes = np.bincount(split.cluster)
    holds = np.array([(sizes.max() / sizes.min() <= ratio) == balanced])
    return Measured(holds, note=f"clusters of {sizes.min()} to {sizes.max()} samples")


@quantity
def original(*kinds: tuple[str, str]) -> Measured:
    """True if the data are the paper's own."""
    return Measured(np.array([kind == "original" for kind, _ in kinds]), seeds=1)


# --- Recovery of a support ---------------------------------------------------------------------


@quantity
def recovered(curve: Curves) -> Sample:
    """Share of the planted coordinates that the last models have; none of a run that has diverged."""
    share = last(curve)
    return replace(share, values=np.where(np.isfinite(share.values), share.values, 0.0))


@quantity
def recovers_more(one: Curves, other: Curves) -> Measured:
    """Share of the planted coordinates that the last models have, less that of another method."""
    a, b = recovered(one), recovered(other)
    note = f"shares of the planted coordinates at the end: {a.mean:.3g} and {b.mean:.3g}"
    return as_it_stands(a - b).measured(note=f"{note}{lost(one, other)}")


@quantity
def recovers_all(history: pd.DataFrame) -> Measured:
    """For each seed and spread, whether the last model at the largest K has the whole planted support."""
    history = history[history["local_steps"] == history["local_steps"].max()]
    by_level = [
        recovered(curves(history, "recovered", level=one)) for one in ordered_levels(history["level"])
    ]
    shares = joined(*by_level)
    found = ", ".join(f"{one.mean:.3g}" for one in by_level)
    return Measured(
        shares.values >= 1, seeds=shares.repetitions, note=f"mean share of the support, by alpha: {found}"
    )


# --- Dissimilar clients --------------------------------------------------------------------------


@quantity
def ends(history: pd.DataFrame, experiment: str, place: int) -> dict[int, Sample]:
    """For each K, log10 |x_t - x*|^2 at the end of the runs, at the spread number `place`, smallest first."""
    by_k = curves_by_k(at_level(history, experiment, place), "error")
    return {K: last(one).map(np.log10) for K, one in by_k.items()}


@quantity
def larger(ends: dict[int, Sample], others: dict[int, Sample]) -> Measured:
    """Decades by which the error that is left at the largest K is above that of `others`."""
    one, other = ends[max(ends)], others[max(others)]
    note = f"|x - x*|^2 left, geometric means: {one.antilog:.3g} against {other.antilog:.3g}"
    return (one - other).measured(note=note)


@quantity
def larger_with_k(ends: dict[int, Sample]) -> Measured:
    """Decades by which the error that is left at the largest K is above that at the smallest."""
    if len(ends) < 2:
        raise NotMeasurableError("only one number of local steps was run")
    return larger(ends, {min(ends): ends[min(ends)]})


@quantity
def hardly_varies(ends: dict[int, Sample], within: float) -> Measured:
    """For each seed and K, whether one step more changes the error left by a share of at most `within`."""
    successive = [K for K in ends if K + 1 in ends]
    if not successive:
        raise NotMeasurableError("no two numbers of local steps that were run are one apart")
    changes = joined(*(ends[K + 1] - ends[K] for K in successive))
    shares = np.abs(10**changes.values - 1)
    return Measured(shares <= within, seeds=changes.repetitions, note=f"changes of up to {shares.max():.3g}")
