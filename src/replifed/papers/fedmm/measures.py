"""Quantities that claims measure on this paper's histories: recorded rounds, and means over seeds.

The figures draw means over runs, so that claims on them are on mean curves; see `log_mean` for intervals.
What codes all samples, the objective and the naive method's update of the surrogate, is recorded in the
rounds that are drawn, the first 20 and every tenth. A mean over rounds takes those in between as the next
recorded one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.claim import Measured, NotMeasurableError
from replifed.claims.curves import Curves, curves, first
from replifed.claims.quantities import Quantity, quantity
from replifed.claims.samples import Sample, paired
from replifed.papers.fedmm.paper import FIRST_ROUNDS
from replifed.papers.fedmm.problems import TOYS

if TYPE_CHECKING:
    from replifed.papers.fedmm import settings as of


@quantity
def columns(history: pd.DataFrame, value: str, **where: Any) -> Curves:
    """Curves of a column where it was recorded; updates are of the round behind them: round 0 has none."""
    every = curves(history[history[value].notna()], value, **where)
    # Most of a fall may be in the first rounds.
    if (np.diff(every.rounds[every.rounds < FIRST_ROUNDS]) != 1).any():
        raise NotMeasurableError("not every one of the first rounds was recorded")
    if value == "objective":
        return every
    return every._replace(rounds=every.rounds[1:], values=every.values[:, 1:])


@quantity
def over(curve: Curves, begin: float, end: float) -> Sample:
    """Mean of each curve over a part of its rounds, from and to a share of them; infinite if diverged.

    The part is one round at least, and a record stands for the rounds since the one before.
    """
    last = max(round(end * curve.rounds[-1]), 1)
    first = min(round(begin * curve.rounds[-1]), last - 1)
    rounds = np.clip(curve.rounds, first, last)
    weights = np.diff(rounds, prepend=first)
    used = weights > 0
    return curve.sample(curve.values[:, used] @ weights[used] / weights.sum())


def early_level(curve: Quantity) -> Quantity:
    """Mean over the first tenth of the rounds."""
    return over(curve, 0.0, 0.1)


def level(curve: Quantity) -> Quantity:
    """Mean over the last tenth of the rounds, which smooths out the noise of minibatches."""
    return over(curve, 0.9, 1.0)


@quantity
def log_mean(sample: Sample) -> Sample:
    """Logarithm of the mean over seeds, as values that have this mean and its spread (delta method).

    A seed's value is log(mean) + value / mean - 1, the logarithm's expansion to first order. So a difference
    of two such samples, of rounds or of methods, has the interval of the ratio of mean curves: a seed counts
    by what it adds to the mean, and not by its own ratio.
    """
    if not np.isfinite(sample.values).all():
        raise NotMeasurableError("a run diverged beyond all numbers")
    mean = sample.values.mean()
    return replace(sample, values=np.log(mean) + sample.values / mean - 1, of_mean=True)


def decay(curve: Quantity, start: Callable[[Quantity], Quantity] = early_level) -> Quantity:
    """Fall of the mean curve from its start, the first tenth of the rounds, to the last, in e-folds."""
    return log_mean(start(curve)) - log_mean(level(curve))


def lower_at_first(one: Quantity, other: Quantity) -> Quantity:
    """By how much one mean curve is lower than the other in the first tenth of the rounds, in e-folds."""
    return log_mean(early_level(other)) - log_mean(early_level(one))


def early_decay(curve: Quantity) -> Quantity:
    """Fall of the mean curve from the first round to the second tenth of the rounds."""
    return log_mean(first(curve)) - log_mean(over(curve, 0.1, 0.2))


def late_decay(curve: Quantity) -> Quantity:
    """Fall of the mean curve from the second tenth of the rounds to the last."""
    return log_mean(over(curve, 0.1, 0.2)) - log_mean(level(curve))


def _of_means(one: Curves, top: int, two: Curves, bottom: int) -> Sample:
    """Logarithm of the ratio of two mean curves at two recorded rounds."""
    return log_mean(one.sample(one.values[:, top])) - log_mean(two.sample(two.values[:, bottom]))


@quantity
def rise(curve: Curves, at_end: bool = False) -> Sample:
    """Rise of the mean curve above its lowest recorded round so far, at the worst or `at_end`, in e-folds.

    At the end, the lowest round is that of one half of the seeds, and the rise is measured on the others: of
    one sample a noisy curve ends above its lowest round even if it does not rise.
    """
    if not at_end:
        mean = curve.values.mean(axis=0)
        top = int(np.argmax(mean / np.minimum.accumulate(mean)))
        return _of_means(curve, top, curve, int(np.argmin(mean[: top + 1])))
    if len(curve.seeds) < 2:
        raise NotMeasurableError("one seed cannot tell both the lowest round and the rise from it")
    even = np.arange(len(curve.seeds)) % 2 == 0
    bottom = int(np.argmin(curve.take(even).values.mean(axis=0)))
    others = curve.take(~even)
    return _of_means(others, -1, others, bottom)


@quantity
def farthest(one: Curves, two: Curves) -> Sample:
    """Logarithm of the ratio of two mean curves in the recorded round in which they are farthest apart."""
    one, two = paired(one, two)
    ratio: NDArray = np.log(one.values.mean(axis=0) / two.values.mean(axis=0))
    index = int(np.argmax(np.abs(ratio)))
    return _of_means(one, index, two, index)


@quantity
def roughness_gain(curve: Curves) -> Sample:
    """Growth of a curve's roughness from the first third of the rounds to the last.

    Roughness is the standard deviation of second differences of the logarithm, which are zero where a curve
    falls at a steady rate, between rounds as far apart as the last two. It is that of each seed's curve: a
    mean's jumps shrink with the number of seeds.
    """
    start, step = curve.rounds[0], curve.rounds[-1] - curve.rounds[-2]
    even = np.isin(curve.rounds, np.arange(curve.rounds[-1], start - 1, -step))
    if (np.diff(curve.rounds[even], n=2) != 0).any():
        raise NotMeasurableError("the recorded rounds are not evenly spaced")
    bends = np.diff(np.log(curve.values[:, even]), n=2, axis=1)
    third = bends.shape[1] // 3
    return curve.sample(bends[:, -third:].std(axis=1, ddof=1) - bends[:, :third].std(axis=1, ddof=1))


@quantity
def largest_gap(one: Curves, two: Curves) -> Sample:
    """Largest relative difference of two curves in any recorded round."""
    return one.sample(np.abs(one.values / two.values - 1).max(axis=1))


@quantity
def at_equal_gradients(ours: pd.DataFrame, adam: pd.DataFrame) -> Measured:
    """Logarithm of the L2-UVP, FedAdam minus FedMM-OT, after equally many sample gradients."""
    pair = paired(curves(ours, "uvp"), curves(adam, "uvp"))
    work = [frame.groupby("round")["sample_gradients"].mean().to_numpy() for frame in (ours, adam)]
    most = min(used[-1] for used in work)
    if any(most not in used for used in work):
        raise NotMeasurableError("no records after equally many gradients")
    i, j = (int(np.flatnonzero(used == most)[0]) for used in work)
    ratio = pair[1].sample(pair[1].values[:, j]) / pair[0].sample(pair[0].values[:, i])
    note = f"FedMM-OT after {pair[0].rounds[i]} rounds, FedAdam after {pair[1].rounds[j]}"
    return np.log(ratio).measured(note=note)


@quantity
def toy(history: pd.DataFrame, settings: of.Toy, reading: str, *, solved: bool) -> Measured:
    """Rounds from the first on at which the toy's solution is met, or missed by 5 %, always the same way."""
    solution = float(TOYS[reading].T(np.array([np.mean(dict(settings.values)[reading])]))[0])
    theta = history[(history["reading"] == reading) & (history["round"] > 0)]["theta"].to_numpy()
    error = np.abs(theta - solution)
    holds = error < 1e-14 if solved else (error > 0.05) & (np.ptp(theta) < 1e-14)
    return Measured(holds, note=f"error {error.max():.3g}")
