"""What claims measure on curves: rounds to a target, levels, roughness, paired over seeds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.verdicts import NotMeasurableError


class Curves(NamedTuple):
    """One curve of each seed.

    Attributes
    ----------
    rounds : int array, shape (T,)
    seeds : int array, shape (R,)
    values : array, shape (R, T)
        Infinite once a seed has diverged.
    chaotic : boolean array, shape (R,), optional
        Which runs hang on rounding, as their twins say (`replifed.twins`); None if they had no twins.
    """

    rounds: NDArray
    seeds: NDArray
    values: NDArray
    chaotic: NDArray | None = None

    @property
    def survived(self) -> NDArray:
        """Which seeds did not diverge, shape (R,)."""
        return np.isfinite(self.values[:, -1])

    def take(self, which: NDArray) -> Curves:
        """The curves of some seeds, as numbers or as a mask."""
        luck = None if self.chaotic is None else self.chaotic[which]
        return Curves(self.rounds, self.seeds[which], self.values[which], luck)


def any_chaotic(*several: Curves) -> bool:
    """Whether one of the runs hangs on rounding."""
    return any(one.chaotic is not None and bool(one.chaotic.any()) for one in several)


class Reached(NamedTuple):
    """Rounds at which curves first came down to a target; the last round where they did not.

    Attributes
    ----------
    rounds : array, shape (R,)
    censored : boolean array, shape (R,)
        Whether the target was not reached, so that the truth is later than `rounds`.
    """

    rounds: NDArray
    censored: NDArray


def curves(history: pd.DataFrame, value: str = "objective", **where: Any) -> Curves:
    """Take the curves of a history whose columns hold the values `where`.

    Raises
    ------
    NotMeasurableError
        There are none.
    """
    chosen = history
    for column, wanted in where.items():
        chosen = chosen[chosen[column] == wanted]
    if chosen.empty:
        said = ", ".join(f"{column} = {wanted}" for column, wanted in where.items())
        raise NotMeasurableError(f"there is no run with {said}")
    if chosen.duplicated(["replicate", "round"]).any():
        raise ValueError(f"{where} names more than one curve")
    table = chosen.set_index(["replicate", "round"])[value].sort_index().unstack()  # noqa: PD010
    values = table.to_numpy(dtype=float)
    # Unstacking fills what was not recorded with NaN, which only a damaged history has.
    if np.isnan(values).any():
        raise ValueError(f"{where}: seeds were recorded at different rounds")
    luck = chosen.groupby("replicate")["chaotic"].any().to_numpy() if "chaotic" in chosen else None
    return Curves(table.columns.to_numpy(dtype=int), table.index.to_numpy(dtype=int), values, luck)


def paired(*several: Curves) -> list[Curves]:
    """Cut curves down to the seeds that all of them have."""
    common = several[0].seeds
    for one in several[1:]:
        common = np.intersect1d(common, one.seeds)
    if not len(common):
        raise NotMeasurableError("the methods share no seed")
    return [one.take(np.searchsorted(one.seeds, common)) for one in several]


def at_round(one: Curves, wanted: int) -> tuple[NDArray, int]:
    """Values at the last recorded round up to `wanted`, and that round."""
    place = int(np.searchsorted(one.rounds, wanted, side="right")) - 1
    return one.values[:, place], int(one.rounds[place])


def rounds_to(one: Curves, target: NDArray) -> Reached:
    """First round at which each seed's curve is at or below its target (R,)."""
    below = one.values <= np.asarray(target)[:, None]
    reached = below.any(axis=1)
    first = np.where(reached, below.argmax(axis=1), len(one.rounds) - 1)
    return Reached(one.rounds[first].astype(float), ~reached)


def level(one: Curves, share: float = 0.1) -> NDArray:
    """Mean of the last `share` of each curve, which smooths out minibatch noise; infinite if diverged."""
    count = max(round(share * len(one.rounds)), 1)
    return one.values[:, -count:].mean(axis=1)


def roughness(one: Curves, share: float = 0.2) -> NDArray:
    """Standard deviation around the trend of the last `share` of each curve, relative to its start."""
    count = max(round(share * len(one.rounds)), 4)
    if len(one.rounds) < count:
        raise NotMeasurableError("too few rounds to tell noise from trend")
    t = np.linspace(-1.0, 1.0, count)
    out = np.empty(len(one.seeds))
    for row, tail in enumerate(one.values[:, -count:]):
        slope, offset = np.polyfit(t, tail, 1)
        out[row] = np.std(tail - slope * t - offset, ddof=2) / one.values[row, 0]
    return out


def slowness(one: Curves) -> NDArray:
    """Mean over rounds of what is left of the value at the start, as a share of it.

    Between 0 (nothing, at once) and 1 (never moved, or diverged at once); smaller is faster.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        left = one.values / one.values[:, :1]
    return np.clip(left, 0.0, 1.0).mean(axis=1)


def log_linear_fit(one: Curves, relative_floor: float | NDArray = 1e-20) -> tuple[NDArray, NDArray]:
    """Fit a straight line to the logarithm of each curve, above `relative_floor` of its start.

    Parameters
    ----------
    one : Curves
    relative_floor : float or array, shape (R,)

    Returns
    -------
    factor : array, shape (R,)
        What the curve is multiplied by each round.
    r2 : array, shape (R,)
        Share of the logarithm's variance that the line explains.
    """
    factor, r2 = np.empty(len(one.seeds)), np.empty(len(one.seeds))
    floors = np.broadcast_to(relative_floor, len(one.seeds))
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
    return factor, r2
