"""Curves of histories, and quantities on them: rounds to a target, levels, rates, roughness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.claim import NotMeasurableError
from replifed.claims.quantities import quantity
from replifed.claims.samples import Sample, paired

# Share of its rounds, the last ones, in which a curve must stay at a target that it has reached.
LAST = 0.1
# In place of a stated target: the next larger one of these that enough methods reach.
_COARSER = np.array([digit * 10.0**-k for k in range(10, 0, -1) for digit in (1, 2, 5)])
# A gap that no run has: it stands for that of a run that diverged, and is a bound.
_BEYOND = 1e12


class Curves(NamedTuple):
    """One curve of each seed."""

    rounds: NDArray  # int, shape (T,)
    seeds: NDArray  # int, shape (R,)
    values: NDArray  # shape (R, T), infinite once a seed has diverged
    # True of runs that are sensitive to rounding, shape (R,); None if there were no perturbed runs.
    chaotic: NDArray | None = None

    @property
    def survived(self) -> NDArray:
        """Mask of the seeds that did not diverge, shape (R,)."""
        return np.isfinite(self.values[:, -1])

    def take(self, which: NDArray) -> Curves:
        """Curves of some seeds, by a mask or by index."""
        chaotic = None if self.chaotic is None else self.chaotic[which]
        return Curves(self.rounds, self.seeds[which], self.values[which], chaotic)

    def sample(self, values: NDArray, bounds: Any = None, below: Any = None) -> Sample:
        """Measurements on each curve; the truth is at most `below` lower."""
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
def reached(
    history: pd.DataFrame, threshold: float, value: str = "gap", count: str = "round", touch: bool = False
) -> Sample:
    """Count from when on a `value` stays at or below `threshold`, for each seed of one curve; else a bound.

    With `touch`, when it first is. For runs whose value cannot rise, as with a line search: they may end as
    soon as they are there, and seeds after different numbers of rounds. The count is "round", or a total
    such as "bits_up".
    """
    if history.duplicated(["replicate", "round"]).any():
        raise ValueError("more than one curve")
    history = history.sort_values("round")
    by_seed = history.groupby("replicate")
    end = by_seed[count].last().astype(float)
    step = history[count] - by_seed[count].shift().fillna(history[count])
    below = history[value] <= threshold
    if not touch:  # from the end on backwards
        below = below[::-1].groupby(history["replicate"][::-1]).cummin()[::-1]
    there = history.assign(step=step)[below].groupby("replicate")
    at, step = (there[name].first().reindex(end.index) for name in (count, "step"))
    bounds, seeds = at.isna().to_numpy(), end.index.to_numpy()
    return Sample(at.fillna(end).to_numpy(), bounds, seeds, below=step.fillna(0).to_numpy())


def _index(curve: Curves, wanted: int) -> Any:
    return np.searchsorted(curve.rounds, wanted, side="right") - 1


@quantity
def round_at(curve: Curves, wanted: int) -> int:
    """The last recorded round up to `wanted`."""
    return int(curve.rounds[_index(curve, wanted)])


@quantity
def at(curve: Curves, wanted: int) -> Sample:
    """Values at the last recorded round up to `wanted`."""
    return curve.sample(curve.values[:, _index(curve, wanted)])


@quantity
def first(curve: Curves) -> Sample:
    """Values at the start."""
    return curve.sample(curve.values[:, 0])


@quantity
def last(curve: Curves) -> Sample:
    """Values at the end."""
    return curve.sample(curve.values[:, -1])


@quantity
def lowest(curve: Curves) -> Sample:
    """Minimum of each curve."""
    return curve.sample(curve.values.min(axis=1))


@quantity
def rounds_to(
    curve: Curves, target: float | Sample, *, touch: bool = False, window: int = 1, stops: bool = False
) -> Sample:
    """Round from which on each curve stays at or below its target; the last, as a bound, where it does not.

    Parameters
    ----------
    touch : count the first round at or below the target, whatever comes later, as where the paper does.
    window : number of records whose mean counts, for noisy curves.
    stops : runs may stop at their target: a curve that gets there once, and ends there, has reached it.

    Notes
    -----
    A curve that is there for less than the last tenth of its rounds has not reached the target.
    """
    if isinstance(target, Sample):
        curve, targets = paired(curve, target)
        target = targets.values[:, None]
    below = _smoothed(curve.values, window) <= target
    last = len(curve.rounds) - 1
    if touch:
        reaches, index = below.any(axis=1), below.argmax(axis=1)
    else:
        above = ~below[:, ::-1]
        index = np.where(above.any(axis=1), last + 1 - above.argmax(axis=1), 0)
        span = curve.rounds[-1] - curve.rounds[0]
        reaches = curve.rounds[-1] - curve.rounds[np.minimum(index, last)] >= LAST * span
        if stops:
            reaches |= index == below.argmax(axis=1)
        reaches &= index <= last
    index = np.where(reaches, index, last)
    steps = np.diff(curve.rounds, prepend=curve.rounds[0])
    return curve.sample(curve.rounds[index].astype(float), ~reaches, steps[index])


def _smoothed(values: NDArray, window: int) -> NDArray:
    """Mean of each value (R, T) and those before it, `window` in all; of fewer at the start."""
    if window == 1:
        return values
    finite = np.isfinite(values)
    sums = np.cumsum(np.where(finite, values, 0.0), axis=1)
    sums[:, window:] -= sums[:, :-window].copy()
    return np.where(finite, sums / np.minimum(np.arange(1, values.shape[1] + 1), window), np.inf)


@quantity
def level(curve: Curves, share: float = 0.1) -> Sample:
    """Mean of the last `share` of each curve, which smooths out minibatch noise; infinite if diverged."""
    count = max(round(share * len(curve.rounds)), 1)
    return curve.sample(curve.values[:, -count:].mean(axis=1))


@quantity
def early_level(curve: Curves, share: float = 0.1) -> Sample:
    """Mean of the first `share` of each curve."""
    count = max(round(share * len(curve.rounds)), 1)
    return curve.sample(curve.values[:, :count].mean(axis=1))


@quantity
def roughness(curve: Curves, count: int) -> Sample:
    """Standard deviation around the trend of the last `count` values of each curve."""
    if len(curve.rounds) < count:
        raise NotMeasurableError("too few rounds to tell noise from trend")
    t, tail = np.linspace(-1.0, 1.0, count), curve.values[:, -count:]
    slope, offset = np.polyfit(t, tail.T, 1)
    return curve.sample((tail - slope[:, None] * t - offset[:, None]).std(axis=1, ddof=2))


@quantity
def slowness(curve: Curves) -> Sample:
    """Mean over rounds of the value, as a share of the value at the start.

    Between 0 (nothing, at once) and 1 (never moved, or diverged at once); smaller is faster.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = curve.values / curve.values[:, :1]
    return curve.sample(np.clip(shares, 0.0, 1.0).mean(axis=1))


@quantity
def log_linear_fit(curve: Curves, relative_floor: float | Sample = 1e-20) -> tuple[Sample, Sample]:
    """Fit a straight line to the logarithm of each curve, above `relative_floor` of its start.

    Returns what the curve is multiplied by each round, and the share of the logarithm's variance that the
    line explains.
    """
    factor, r2 = np.empty(len(curve.seeds)), np.empty(len(curve.seeds))
    floor = relative_floor.values if isinstance(relative_floor, Sample) else relative_floor
    floors = np.broadcast_to(floor, len(curve.seeds))
    for row, (values, floor) in enumerate(zip(curve.values, floors, strict=True)):
        # Below this, rounding and not the method decides.
        used = np.isfinite(values) & (values > floor * values[0])
        used &= np.cumprod(used).astype(bool)
        if used.sum() < 3:
            raise NotMeasurableError("fewer than three rounds above rounding error")
        t, y = curve.rounds[used], np.log(values[used])
        slope, offset = np.polyfit(t, y, 1)
        factor[row] = np.exp(slope)
        r2[row] = 1 - np.var(y - slope * t - offset) / np.var(y)
    return curve.sample(factor), curve.sample(r2)


@quantity
def steps(*samples: Sample) -> Sample:
    """Change of the mean from each sample to the next; one case each."""
    if any(sample.bounds.any() for sample in samples):
        raise NotMeasurableError("of some runs only a bound is known, so that their mean is not")
    return Sample(
        np.diff([sample.mean for sample in samples]),
        chaotic=any(sample.chaotic for sample in samples),
        repetitions=len(samples[0].values),
    )


def within_reach(
    histories: Mapping[str, pd.DataFrame], stated: Sequence[float], value: str = "gap"
) -> tuple[float, ...]:
    """Targets that at least two methods reach, or the only one: each stated one, or the next larger.

    A method reaches one if all of its seeds do: where both of two methods have a seed that does not, their
    order is unknown. None is left where nobody halves the value.
    """
    runs = [curves(history, value) for history in histories.values()]
    found = []
    for target in sorted(stated, reverse=True):
        for one in (target, *_COARSER[target * (1 + 1e-9) < _COARSER].tolist()):
            reaching = sum((rounds_to(each, one).bounds == 0).all() for each in runs)
            if reaching >= min(2, len(runs)):
                found.append(float(f"{one:.1g}"))
                break
    return tuple(dict.fromkeys(found))


def at_the_end(history: pd.DataFrame, value: str = "gap") -> Sample:
    """Value of each seed at its last round; of one that diverged only a bound is known."""
    ends = curves(history, value)
    known = np.isfinite(ends.values[:, -1])
    return ends.sample(np.where(known, ends.values[:, -1], _BEYOND), ~known)
