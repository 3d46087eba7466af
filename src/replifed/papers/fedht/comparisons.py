"""What this paper's claims measure on runs: who needs fewer rounds, ends lower, is rougher, sends less.

Each function makes the `measure` of a claim from the names of experiment, methods and reading.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.figures.summaries import mean_interval
from replifed.papers.fedht.paper import METHODS, ordered_levels
from replifed.papers.measures import (
    Curves,
    any_chaotic,
    at_round,
    curves,
    level,
    log_linear_fit,
    paired,
    roughness,
    rounds_to,
    slowness,
)
from replifed.papers.verdicts import Measured, NotMeasurableError

Measure = Callable[[Any], Measured]


def history(
    inputs: Any, experiment: str, method: str, place: int | None = 0, full_batch: bool = False
) -> pd.DataFrame:
    """The history of a method at the level of heterogeneity number `place`, mildest first; None for all."""
    frame = inputs.run(experiment, method)
    frame = frame[(frame["batch"] == "full") == full_batch]
    if place is None:
        return frame
    levels = ordered_levels(frame["level"])
    if not -len(levels) <= place < len(levels):
        raise NotMeasurableError(f"{experiment} ran at {len(levels)} level(s) of heterogeneity")
    return frame[frame["level"] == levels[place]]


def tuned(
    inputs: Any, experiment: str, method: str, reading: str, place: int = 0, full_batch: bool = False
) -> Curves:
    """The curves that Figures 2, 3 and 6 draw of a method."""
    return curves(history(inputs, experiment, method, place, full_batch), reading=reading, tuned=True)


# --- Pairs of curves -----------------------------------------------------------------------------


# How far down to the level that all curves end at they are followed.
_DESCENT = 0.9
_TARGET = "nine tenths of the descent that all make"


def easier_target(several: Sequence[Curves]) -> NDArray:
    """For each seed, nine tenths of the way down from the start to the highest of the levels they end at.

    A curve comes to rest at its own last level only at the very end of the run, however early it is near it.
    Curves that diverged, or end no lower than they began, are left out. The others all reach the target, so
    that the rounds they take can be compared without guessing. Infinite where no curve is left.
    """
    ends = np.stack([level(one) for one in several])
    starts = np.stack([one.values[:, 0] for one in several])
    falling = ends < starts
    left = np.where(falling, ends + (1.0 - _DESCENT) * (starts - np.where(falling, ends, 0.0)), -np.inf)
    highest = left.max(axis=0)
    return np.where(np.isfinite(highest), highest, np.inf)


def fewer(fast: Curves, slow: Curves, cost: tuple[float, float] | None = None) -> Measured:
    """Rounds that `slow` needs more than `fast` to the target of `easier_target`.

    Parameters
    ----------
    cost : (float, float), optional
        Bits a round of `fast` and `slow`; the difference is then one of decimal logarithms of bits.
    """
    fast, slow = paired(fast, slow)
    target = easier_target([fast, slow])
    a, b = rounds_to(fast, target), rounds_to(slow, target)
    if cost is None:
        values = b.rounds - a.rounds
    else:
        values = np.log10(np.maximum(b.rounds, 1) * cost[1]) - np.log10(np.maximum(a.rounds, 1) * cost[0])
    # Where both failed neither is ahead.
    both = ~np.isfinite(target)
    values = np.where(both, 0.0, values)
    bounds = np.where(both, 0, b.censored.astype(int) - a.censored.astype(int))
    said = f"mean rounds to {_TARGET}: {a.rounds.mean():.4g} against {b.rounds.mean():.4g}"
    return Measured(values, bounds, note=said + _lost(fast, slow), chaotic=any_chaotic(fast, slow))


def _capped(values: NDArray, start: NDArray) -> tuple[NDArray, NDArray]:
    """Objective as a share of its start, at most 1; and whether it is only known to be at least that."""
    share = np.minimum(values / start, 1.0)
    return np.where(np.isfinite(values), share, 1.0), (~np.isfinite(values)).astype(int)


def _lost(*several: Curves) -> str:
    lost = [int((~one.survived).sum()) for one in several]
    return f"; diverged seeds: {' and '.join(map(str, lost))} of {len(several[0].seeds)}" if any(lost) else ""


# --- Figure 3 ------------------------------------------------------------------------------------


def against_baseline(
    experiment: str,
    reading: str,
    baseline_rounds: int,
    place: int = 0,
    full_batch: bool = False,
    *,
    ratio: bool,
) -> Measure:
    """Rounds that FedIterHT needs to what Distributed-IHT has after `baseline_rounds`, or the ratio."""

    def measure(inputs: Any) -> Measured:
        fast, base = paired(
            tuned(inputs, experiment, "fediterht", reading, place, full_batch),
            tuned(inputs, experiment, "distributed_iht", reading, place, full_batch),
        )
        target, t = at_round(base, baseline_rounds)
        if t < baseline_rounds and not ratio:
            raise NotMeasurableError(f"Distributed-IHT ran for {t} rounds alone, not for {baseline_rounds}")
        known = np.isfinite(target)
        if not known.any():
            raise NotMeasurableError(
                "Distributed-IHT diverged on all seeds, so there is no objective to reach"
            )
        luck = any_chaotic(fast, base)
        fast = fast.take(known)
        reached = rounds_to(fast, target[known])
        rounds = np.maximum(reached.rounds, 1.0)
        notes = []
        if t < baseline_rounds:
            notes.append(f"against round {t}, the last that was run, instead of {baseline_rounds}")
        if reached.censored.any():
            count, last = int(reached.censored.sum()), int(fast.rounds[-1])
            notes.append(f"FedIterHT does not get there in {last} rounds on {count} of {len(rounds)} seeds")
        if not known.all():
            notes.append(f"{int((~known).sum())} seeds left out, on which Distributed-IHT diverged")
        censored = reached.censored.astype(int)
        if ratio:
            return Measured(t / rounds, -censored, note="; ".join(notes), chaotic=luck)
        return Measured(rounds, censored, note="; ".join(notes), chaotic=luck)

    return measure


def lower_at(experiment: str, reading: str, fast_rounds: int, baseline_rounds: int) -> Measure:
    """Objective of Distributed-IHT after `baseline_rounds` less that of FedIterHT after `fast_rounds`."""

    def measure(inputs: Any) -> Measured:
        fast, base = paired(
            tuned(inputs, experiment, "fediterht", reading),
            tuned(inputs, experiment, "distributed_iht", reading),
        )
        later, t = at_round(base, baseline_rounds)
        sooner, s = at_round(fast, max(fast_rounds * t // baseline_rounds, 1))
        a, a_open = _capped(sooner, fast.values[:, 0])
        b, b_open = _capped(later, base.values[:, 0])
        note = f"objectives as shares of f(0), rounds {s} and {t}" + _lost(fast, base)
        return Measured(b - a, b_open - a_open, note=note, chaotic=any_chaotic(fast, base))

    return measure


def fewer_rounds(experiment: str, fast: str, slow: str, reading: str, place: int = 0) -> Measure:
    """Rounds that method `slow` needs more than `fast`."""
    return lambda inputs: fewer(
        tuned(inputs, experiment, fast, reading, place), tuned(inputs, experiment, slow, reading, place)
    )


def fewer_bits(experiment: str, fast: str, slow: str, reading: str) -> Measure:
    """Decimal logarithm of how many times more bits method `slow` needs than `fast`."""

    def measure(inputs: Any) -> Measured:
        costs = tuple(
            _bits_a_round(inputs, experiment, method, ("bits_up", "bits_down")) for method in (fast, slow)
        )
        return fewer(
            tuned(inputs, experiment, fast, reading), tuned(inputs, experiment, slow, reading), costs
        )

    return measure


def _bits_a_round(inputs: Any, experiment: str, method: str, columns: Sequence[str]) -> float:
    frame = history(inputs, experiment, method)
    first = frame[frame["round"] > 0].sort_values("round").iloc[0]
    return float(sum(first[column] for column in columns)) / int(first["round"])


def cheaper_messages(experiments: Sequence[str], cheap: str, dear: str, column: str) -> Measure:
    """Whether `cheap` sends fewer bits a round than `dear`, up or down, in each experiment."""

    def measure(inputs: Any) -> Measured:
        ratios = [
            _bits_a_round(inputs, name, cheap, [column]) / _bits_a_round(inputs, name, dear, [column])
            for name in experiments
        ]
        said = ", ".join(
            f"{ratio:.3g} times the bits in {name}" for name, ratio in zip(experiments, ratios, strict=True)
        )
        return Measured(np.array(ratios) < 1, note=said)

    return measure


def every_update_sent(experiments: Sequence[str]) -> Measure:
    """Whether Distributed-IHT makes one local step a round."""

    def measure(inputs: Any) -> Measured:
        holds = []
        for name in experiments:
            frame = history(inputs, name, "distributed_iht", None)
            frame = frame[~frame["diverged"].astype(bool)]
            holds.append(bool((frame["iterations"] == frame["round"]).all()))
        return Measured(np.array(holds))

    return measure


def sparse(experiments: Sequence[str], tau: int) -> Measure:
    """Whether every server's model of every run has at most `tau` non-zeros."""

    def measure(inputs: Any) -> Measured:
        most = []
        for name in experiments:
            for method in ("fedht", "fediterht", "distributed_iht"):
                counts = inputs.run(name, method)["nonzeros"].to_numpy(dtype=float)
                most.append(counts[np.isfinite(counts)].max())
        return Measured(np.array(most) <= tau, shown=max(most))

    return measure


# --- Figures 1 and 2 -----------------------------------------------------------------------------


def _by_local_steps(inputs: Any, experiment: str, method: str, reading: str) -> dict[int, Curves]:
    frame = history(inputs, experiment, method)
    frame = frame[frame["reading"] == reading]
    found = {int(K): curves(frame, local_steps=K) for K in sorted(frame["local_steps"].unique())}
    if len(found) < 2:
        raise NotMeasurableError("only one number of local steps was run")
    return dict(zip(found, paired(*found.values()), strict=True))


def larger_k_helps(experiment: str, method: str, reading: str) -> Measure:
    """Rounds that the smallest K needs more than the largest."""

    def measure(inputs: Any) -> Measured:
        by_k = _by_local_steps(inputs, experiment, method, reading)
        return fewer(by_k[max(by_k)], by_k[min(by_k)])

    return measure


def rounds_fall_with_k(experiment: str, method: str, reading: str) -> Measure:
    """For each two neighbouring K, whether the larger needs no more rounds on average."""

    def measure(inputs: Any) -> Measured:
        by_k = _by_local_steps(inputs, experiment, method, reading)
        target = easier_target(list(by_k.values()))
        means, lost = [], []
        for one in by_k.values():
            reached = rounds_to(one, target)
            # A seed that never gets there counts as taking twice the run.
            means.append(np.where(reached.censored, 2.0 * one.rounds[-1], reached.rounds).mean())
            lost.append(bool(reached.censored.all() or (~np.isfinite(target)).all()))
        holds = [means[i + 1] <= means[i] and not lost[i + 1] for i in range(len(means) - 1)]
        said = ", ".join(f"K = {K}: {mean:.4g}" for K, mean in zip(by_k, means, strict=True))
        seeds = len(next(iter(by_k.values())).seeds)
        said = f"mean rounds to {_TARGET}: {said}"
        return Measured(np.array(holds), seeds=seeds, note=said, chaotic=any_chaotic(*by_k.values()))

    return measure


def benefits_more(experiment: str, reading: str) -> Measure:
    """Logarithm of FedIterHT's speed-up from the smallest to the largest K, less that of FedHT's."""

    def measure(inputs: Any) -> Measured:
        gains, opens, seeds, luck = [], [], [], False
        for method in ("fediterht", "fedht"):
            by_k = _by_local_steps(inputs, experiment, method, reading)
            few, many = by_k[min(by_k)], by_k[max(by_k)]
            target = easier_target([few, many])
            a, b = rounds_to(few, target), rounds_to(many, target)
            gain = np.log(np.maximum(a.rounds, 1.0)) - np.log(np.maximum(b.rounds, 1.0))
            both = ~np.isfinite(target)
            gains.append(np.where(both, 0.0, gain))
            opens.append(np.where(both, 0, a.censored.astype(int) - b.censored.astype(int)))
            seeds.append(few.seeds)
            luck |= any_chaotic(few, many)
        common, first, second = np.intersect1d(*seeds, return_indices=True)
        a, b = gains[0][first], gains[1][second]
        a_open, b_open = opens[0][first], opens[1][second]
        # Two bounds of the same kind say nothing of the difference.
        told = (a_open == 0) | (a_open != b_open)
        if not told.any():
            raise NotMeasurableError("both methods diverge at one of the two K on every seed")
        speedups = f"mean speed-ups {np.exp(a.mean()):.3g} (FedIterHT) and {np.exp(b.mean()):.3g} (FedHT)"
        left = (
            ""
            if told.all()
            else f"; {int((~told).sum())} of {len(common)} seeds left out, where both only gave bounds"
        )
        bounds = np.sign(a_open - b_open)[told]
        return Measured((a - b)[told], bounds, note=speedups + left, chaotic=luck)

    return measure


def slower_when_heterogeneous(experiment: str, method: str, reading: str, place: int) -> Measure:
    """Mean of Figure 2's curve over the run at level `place + 1`, less that at level `place`.

    The curves are objectives as shares of the initial one. No estimate of the minimum is subtracted: the
    lowest objective that these two methods reach lies far above it at the high levels.
    """

    def measure(inputs: Any) -> Measured:
        mild, strong = paired(
            tuned(inputs, experiment, method, reading, place),
            tuned(inputs, experiment, method, reading, place + 1),
        )
        left = [slowness(one) for one in (mild, strong)]
        note = (
            f"mean share of the initial objective that is left over the run: {left[0].mean():.3g} and "
            f"{left[1].mean():.3g}"
        )
        lost = _lost(mild, strong)
        return Measured(left[1] - left[0], note=note + lost, chaotic=any_chaotic(mild, strong))

    return measure


# --- Figure 6 ------------------------------------------------------------------------------------


def rougher(experiment: str, method: str, reading: str) -> Measure:
    """Roughness near the end of `method`, less that of Distributed-IHT."""

    def measure(inputs: Any) -> Measured:
        one, base = paired(
            tuned(inputs, experiment, method, reading), tuned(inputs, experiment, "distributed_iht", reading)
        )
        held = one.survived & base.survived
        if not held.any():
            raise NotMeasurableError("no seed on which neither method diverged")
        one, base = one.take(held), base.take(held)
        a, b = roughness(one), roughness(base)
        left = "" if held.all() else f"; {int((~held).sum())} seeds left out that diverged"
        said = f"standard deviations {a.mean():.3g} and {b.mean():.3g} of f(0){left}"
        return Measured(a - b, note=said, chaotic=any_chaotic(one, base))

    return measure


def _ends(
    inputs: Any, experiment: str, reading: str, methods: Sequence[str]
) -> tuple[list[NDArray], list[NDArray], bool]:
    several = paired(*(tuned(inputs, experiment, method, reading) for method in methods))
    both = [_capped(level(one), one.values[:, 0]) for one in several]
    return [values for values, _ in both], [opens for _, opens in both], any_chaotic(*several)


def ends_lowest(experiment: str, reading: str) -> Measure:
    """Final objective of the better of FedHT and Distributed-IHT, less that of FedIterHT."""

    def measure(inputs: Any) -> Measured:
        names = ("fediterht", "fedht", "distributed_iht")
        (mine, *others), (mine_open, *others_open), luck = _ends(inputs, experiment, reading, names)
        best, best_open = np.minimum(*others), np.minimum(*others_open)
        said = ", ".join(f"{name} {end.mean():.4g}" for name, end in zip(names, [mine, *others], strict=True))
        said = f"final shares of f(0): {said}"
        return Measured(best - mine, best_open - mine_open, note=said, chaotic=luck)

    return measure


def end_apart(experiment: str, reading: str) -> Measure:
    """Final objective of one method less that of another, of the two that are hardest to tell apart."""
    methods = ("fedht", "fediterht", "distributed_iht")

    def measure(inputs: Any) -> Measured:
        ends, _, luck = _ends(inputs, experiment, reading, methods)
        found = []
        for first, second in itertools.combinations(range(len(methods)), 2):
            apart = ends[first] - ends[second]
            mean, low, high = mean_interval(apart)
            clarity = abs(mean) / (high - low) if high > low else np.inf
            said = f"{METHODS[methods[first]]} and {METHODS[methods[second]]} are nearest"
            found.append((clarity, said, apart if mean > 0 else -apart))
        _, said, values = min(found, key=lambda pair: pair[0])
        return Measured(values, note=f"{said}, as shares of f(0)", chaotic=luck)

    return measure


# --- Chaos ---------------------------------------------------------------------------------------


def calm(experiment: str, methods: Sequence[str], reading: str) -> Measure:
    """For each run of the curves that are drawn, whether its twins agree with it (`replifed.twins`)."""

    def measure(inputs: Any) -> Measured:
        frames = [inputs.run(experiment, method).assign(method=method) for method in methods]
        runs = pd.concat([f[(f["reading"] == reading) & (f["batch"] != "full")] for f in frames])
        runs = runs.drop_duplicates(["method", "level", "local_steps", "replicate"])
        chaotic = runs.loc[runs["chaotic"], "method"].value_counts()
        said = ", ".join(f"{METHODS[method]} {count}" for method, count in chaotic.items()) or "none"
        seeds = runs["replicate"].nunique()
        return Measured(~runs["chaotic"].to_numpy(), seeds=seeds, note=f"chaotic of {len(runs)} runs: {said}")

    return measure


# --- Partitions and searches ---------------------------------------------------------------------


def steps_within(experiment: str, least: float, largest: float) -> Measure:
    """Whether each best step, of every method, level and K, lies between `least` and `largest`."""

    def measure(inputs: Any) -> Measured:
        steps = [
            search["step"]
            for method in ("fedht", "fediterht", "distributed_iht")
            for found in inputs.tuned(experiment, method)["levels"].values()
            for search in found["by_local_steps"].values()
        ]
        holds = np.array([least <= step <= largest for step in steps])
        return Measured(holds, seeds=1, note=f"best steps from {min(steps):.3g} to {max(steps):.3g}")

    return measure


def even_clusters(experiment: str, ratio: float, *, balanced: bool) -> Measure:
    """Whether the largest cluster is at most (or, not balanced, more than) `ratio` times the smallest."""

    def measure(inputs: Any) -> Measured:
        sizes = np.bincount(inputs.partition(experiment).cluster)
        found = sizes.max() / sizes.min()
        note = f"clusters of {sizes.min()} to {sizes.max()} samples"
        return Measured(np.array([(found <= ratio) == balanced]), note=note)

    return measure


def dealt_as_told(experiment: str, parts: int = 20, hand: int = 2) -> Measure:
    """Whether each cluster is cut evenly into `parts`, and each client holds parts of `hand` clusters."""

    def measure(inputs: Any) -> Measured:
        split = inputs.partition(experiment)
        holds = []
        for client in split.clients.values():
            counts = np.zeros((client.max() + 1, split.cluster.max() + 1), dtype=int)
            np.add.at(counts, (client, split.cluster), 1)
            size = counts.sum(axis=0) / parts
            even = ((counts == 0) | (np.abs(counts - size) < 1)).all()
            holds.append(bool(even and ((counts > 0).sum(axis=1) == hand).all()))
        return Measured(np.array(holds))

    return measure


def original_data(experiments: Sequence[str]) -> Measure:
    """Whether the data are the paper's own."""
    return lambda inputs: Measured(
        np.array([inputs.data_kind(name)[0] == "original" for name in experiments]), seeds=1
    )


# --- The planted problem -------------------------------------------------------------------------


def planted_curves(inputs: Any, method: str, value: str = "error") -> dict[int, Curves]:
    """|x_t - x*|^2 of each K, or another column, with batches as large as the theorem asks."""
    frame = inputs.run("planted", method)
    frame = frame[frame["batch"] == "theorem"]
    return {int(K): curves(frame, value, local_steps=K) for K in sorted(frame["local_steps"].unique())}


def linear_convergence(method: str, least_r2: float) -> Measure:
    """For each K and seed, whether a straight line explains the logarithm of the error."""

    def measure(inputs: Any) -> Measured:
        found = [log_linear_fit(one)[1] for one in planted_curves(inputs, method).values()]
        r2 = np.concatenate(found)
        return Measured(r2 >= least_r2, seeds=len(found[0]), note=f"smallest R² {r2.min():.5f}")

    return measure


def faster_with_k(method: str) -> Measure:
    """For each seed and two neighbouring K, whether the larger shrinks the error more each round."""

    def measure(inputs: Any) -> Measured:
        factors = [log_linear_fit(one)[0] for one in paired(*planted_curves(inputs, method).values())]
        if len(factors) < 2:
            raise NotMeasurableError("only one number of local steps was run")
        holds = np.concatenate([later < sooner for sooner, later in itertools.pairwise(factors)])
        return Measured(holds, seeds=len(factors[0]))

    return measure
