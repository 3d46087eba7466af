"""Curves of histories, and what claims measure on them: rounds to a target, levels, rates, roughness."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.claim import NotMeasurableError
from replifed.claims.quantities import quantity
from replifed.claims.samples import Sample, paired


class Curves(NamedTuple):
    """One curve of each seed."""

    rounds: NDArray  # int, shape (T,)
    seeds: NDArray  # int, shape (R,)
    values: NDArray  # shape (R, T), infinite once a seed has diverged
    # Which runs depend on rounding, shape (R,), as their twins say; None if they had no twins.
    chaotic: NDArray | None = None

    @property
    def survived(self) -> NDArray:
        """Which seeds did not diverge, shape (R,)."""
        return np.isfinite(self.values[:, -1])

    def take(self, which: NDArray) -> Curves:
        """The curves of some seeds, as numbers or as a mask."""
        chaotic = None if self.chaotic is None else self.chaotic[which]
        return Curves(self.rounds, self.seeds[which], self.values[which], chaotic)

    def sample(self, values: NDArray, bounds: Any = None, below: Any = None) -> Sample:
        """What was measured on each curve, the truth being at most so much `below`."""
        chaotic = self.chaotic is not None and bool(self.chaotic.any())
        return Sample(values, bounds, self.seeds, chaotic, below=below)


@quantity
def only(history: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """Lines of a history whose columns hold the values `where`; `NotMeasurableError` if there are none."""
    for column, wanted in where.items():
        history = history[history[column] == wanted]
    if history.empty:
        named = ", ".join(f"{column} = {wanted}" for column, wanted in where.items())
        raise NotMeasurableError(f"there is no run with {named}")
    return history


@quantity
def curves(history: pd.DataFrame, value: str = "objective", **where: Any) -> Curves:
    """Take the curves of a history whose columns hold the values `where`."""
    chosen = only(history, **where)
    if chosen.duplicated(["replicate", "round"]).any():
        raise ValueError(f"{where} names more than one curve")
    table = chosen.set_index(["replicate", "round"])[value].sort_index().unstack()  # noqa: PD010
    values = table.to_numpy(dtype=float)
    # Unstacking fills what was not recorded with NaN, which only a damaged history has.
    if np.isnan(values).any():
        raise ValueError(f"{where}: seeds were recorded at different rounds")
    chaotic = chosen.groupby("replicate")["chaotic"].any().to_numpy() if "chaotic" in chosen else None
    return Curves(table.columns.to_numpy(dtype=int), table.index.to_numpy(dtype=int), values, chaotic)


@quantity
def reached(history: pd.DataFrame, threshold: float, value: str = "gap", count: str = "round") -> Sample:
    """When each seed of one curve first had a `value` of at most `threshold`; bounds where it never had.

    Seeds may have run for different numbers of rounds. What is counted is "round", or a total such as
    "bits_up".
    """
    if history.duplicated(["replicate", "round"]).any():
        raise ValueError("more than one curve")
    history = history.sort_values("round")
    end = history.groupby("replicate")[count].last().astype(float)
    step = history[count] - history.groupby("replicate")[count].shift().fillna(history[count])
    below = history.assign(step=step)[history[value] <= threshold].groupby("replicate")
    there, step = (below[name].first().reindex(end.index) for name in (count, "step"))
    bounds, seeds = there.isna().to_numpy(), end.index.to_numpy()
    return Sample(there.fillna(end).to_numpy(), bounds, seeds, below=step.fillna(0).to_numpy())


def _index(one: Curves, wanted: int) -> Any:
    return np.searchsorted(one.rounds, wanted, side="right") - 1


@quantity
def round_at(one: Curves, wanted: int) -> int:
    """The last recorded round up to `wanted`."""
    return int(one.rounds[_index(one, wanted)])


@quantity
def at(one: Curves, wanted: int) -> Sample:
    """Values at the last recorded round up to `wanted`."""
    return one.sample(one.values[:, _index(one, wanted)])


@quantity
def first(one: Curves) -> Sample:
    """Values at the start."""
    return one.sample(one.values[:, 0])


@quantity
def last(one: Curves) -> Sample:
    """Values at the end."""
    return one.sample(one.values[:, -1])


@quantity
def lowest(one: Curves) -> Sample:
    """Least value of each curve."""
    return one.sample(one.values.min(axis=1))


@quantity
def rounds_to(one: Curves, target: float | Sample) -> Sample:
    """First round at which each curve is at or below its target; the last, as a bound, where it never is."""
    if isinstance(target, Sample):
        one, targets = paired(one, target)
        target = targets.values[:, None]
    below = one.values <= target
    there = np.asarray(below.any(axis=1))
    index = np.where(there, below.argmax(axis=1), len(one.rounds) - 1)
    steps = np.diff(one.rounds, prepend=one.rounds[0])
    return one.sample(one.rounds[index].astype(float), ~there, steps[index])


@quantity
def level(one: Curves, share: float = 0.1) -> Sample:
    """Mean of the last `share` of each curve, which smooths out minibatch noise; infinite if diverged."""
    count = max(round(share * len(one.rounds)), 1)
    return one.sample(one.values[:, -count:].mean(axis=1))


@quantity
def early_level(one: Curves, share: float = 0.1) -> Sample:
    """Mean of the first `share` of each curve."""
    count = max(round(share * len(one.rounds)), 1)
    return one.sample(one.values[:, :count].mean(axis=1))


@quantity
def roughness(one: Curves, count: int) -> Sample:
    """Standard deviation around the trend of the last `count` values of each curve."""
    if len(one.rounds) < count:
        raise NotMeasurableError("too few rounds to tell noise from trend")
    t, tail = np.linspace(-1.0, 1.0, count), one.values[:, -count:]
    slope, offset = np.polyfit(t, tail.T, 1)
    return one.sample((tail - slope[:, None] * t - offset[:, None]).std(axis=1, ddof=2))


@quantity
def slowness(one: Curves) -> Sample:
    """Mean over rounds of the value, as a share of the value at the start.

    Between 0 (nothing, at once) and 1 (never moved, or diverged at once); smaller is faster.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        left = one.values / one.values[:, :1]
    return one.sample(np.clip(left, 0.0, 1.0).mean(axis=1))


@quantity
def log_linear_fit(one: Curves, relative_floor: float | Sample = 1e-20) -> tuple[Sample, Sample]:
    """Fit a straight line to the logarithm of each curve, above `relative_floor` of its start.

    Returns what the curve is multiplied by each round, and the share of the logarithm's variance that the
    line explains.
    """
    factor, r2 = np.empty(len(one.seeds)), np.empty(len(one.seeds))
    floor = relative_floor.values if isinstance(relative_floor, Sample) else relative_floor
    floors = np.broadcast_to(floor, len(one.seeds))
    for row, (curve, floor) in enumerate(zip(one.values, floors, strict=True)):
        # Below this, rounding and not the method decides.
        used = np.isfinite(curve) & (curve > floor * curve[0])
        used &= np.cumprod(used).astype(bool)
        if used.sum() < 3:
            raise NotMeasurableError("fewer than three rounds above rounding error")
        t, y = one.rounds[used], np.log(curve[used])
        slope, offset = np.polyfit(t, y, 1)
        factor[row] = np.exp(slope)
        r2[row] = 1 - np.var(y - slope * t - offset) / np.var(y)
    return one.sample(factor), one.sample(r2)


@quantity
def steps(*samples: Sample) -> Sample:
    """How the mean changes from each sample to the next; one case each."""
    if any(one.bounds.any() for one in samples):
        raise NotMeasurableError("of some runs only a bound is known, so that their mean is not")
    return Sample(
        np.diff([one.mean for one in samples]),
        chaotic=any(one.chaotic for one in samples),
        repetitions=len(samples[0].values),
    )
