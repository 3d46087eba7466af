"""One number a seed, of which some are only bounds, and arithmetic on such samples, paired by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike, NDArray

from replifed.claims.claim import Measured, NotMeasurableError

# Mark of a seed on which nothing is known, not even a bound.
UNDECIDED = 2
_ARRAYS = ("values", "bounds", "seeds", "below", "above")
# Sign of the change of a result with each of its arguments.
_GROWTH: dict[np.ufunc, tuple[int, ...]] = {
    np.add: (1, 1),
    np.subtract: (1, -1),
    np.multiply: (1, 1),
    np.divide: (1, -1),
    np.negative: (-1,),
    np.log: (1,),
    np.log10: (1,),
    np.power: (1, 1),
}
# Two numbers are equal if they differ by this share of their size, or this one of that at the start: sums in
# another order, in floats of 32 bits, differ by less, and runs that drew other samples or clients by more.
_OF_SIZE, _OF_START = 1e-5, 1e-6
PERTURBED = (".of_start", ".of_step")  # ends of columns of perturbed runs


@dataclass(frozen=True, eq=False)
class Sample(NDArrayOperatorsMixin):
    """One number a seed; arrays of shape (n,).

    Functions of numpy, and with them sums, differences, products, quotients and comparisons, pair seeds and
    leave out those that only one side has. Bounds follow: the difference of two numbers that are both at
    least something is undecided, and so is a comparison that a bound could turn. Products, quotients and
    powers are of positive numbers.
    """

    values: NDArray  # numbers, or booleans
    # 0 where the value is exact, 1 or -1 where the truth is at least or at most the value, `UNDECIDED` where
    # nothing is known. All 0 by default.
    bounds: NDArray = None  # type: ignore[assignment]
    seeds: NDArray = None  # type: ignore[assignment]  # ascending; 0 to n - 1 by default
    chaotic: bool = False  # one of the runs behind it is sensitive to rounding
    repetitions: int | None = None  # seeds behind it, where the values are cases and not one a seed
    # How far below and above a value the truth may lie, since it was read on a grid such as recorded rounds:
    # a count is rounded up, so that the truth is within a step below it.
    below: NDArray = None  # type: ignore[assignment]
    above: NDArray = None  # type: ignore[assignment]
    of_mean: bool = False  # see `Measured`

    def __post_init__(self) -> None:
        n = len(self.values)
        arrays = {
            "values": np.asarray(self.values),
            "bounds": np.zeros(n, int) if self.bounds is None else np.asarray(self.bounds, dtype=int),
            "seeds": np.arange(n) if self.seeds is None else np.asarray(self.seeds),
            "below": np.zeros(n) if self.below is None else np.broadcast_to(self.below, n),
            "above": np.zeros(n) if self.above is None else np.broadcast_to(self.above, n),
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *arguments: Any, **named: Any) -> Sample:
        if method != "__call__" or named:
            return NotImplemented
        samples = paired(*(part for part in arguments if isinstance(part, Sample)))
        first, rest = samples[0], iter(samples)
        arguments = tuple(next(rest) if isinstance(part, Sample) else part for part in arguments)
        values = ufunc(*map(_values, arguments))
        bounds: Any = None
        below: Any = None
        above: Any = None
        if ufunc in _GROWTH:
            growth = list(zip(arguments, _GROWTH[ufunc], strict=True))
            if any(sample.below.any() or sample.above.any() for sample in samples):
                # Where a step is all of a count that something is divided by, the truth is not bounded.
                with np.errstate(divide="ignore"):
                    below = values - ufunc(*(_end(part, -sign) for part, sign in growth))
                    above = ufunc(*(_end(part, sign) for part, sign in growth)) - values
            known = [(part.bounds, sign) for part, sign in growth if isinstance(part, Sample)]
            bounds = reduce(_combined, [one if sign > 0 else _negated(one) for one, sign in known])
        elif values.dtype == bool:
            bounds = _open(ufunc, arguments, values)
        elif any(sample.bounds.any() for sample in samples):
            raise TypeError(f"{ufunc.__name__} of values of which some are only bounds")
        chaotic = any(sample.chaotic for sample in samples)
        of_mean = any(sample.of_mean for sample in samples)
        return Sample(values, bounds, first.seeds, chaotic, first.repetitions, below, above, of_mean)

    def take(self, which: NDArray) -> Sample:
        """Values of some seeds, by a mask or by index."""
        return replace(self, **{name: getattr(self, name)[which] for name in _ARRAYS})

    def map(self, function: Callable[[NDArray], ArrayLike]) -> Sample:
        """Apply a function that grows with the values, so that bounds stay bounds."""
        values = np.asarray(function(self.values))
        with np.errstate(divide="ignore"):
            lowest, highest = function(self.values - self.below), function(self.values + self.above)
        return replace(self, values=values, below=values - lowest, above=highest - values)

    # Statistics, for notes such as "medians {0.median:g} and {1.median:g}".

    @property
    def mean(self) -> float:
        """Mean of the values as they stand."""
        return float(self.values.mean())

    @property
    def min(self) -> float:
        """Minimum."""
        return float(self.values.min())

    @property
    def max(self) -> float:
        """Maximum."""
        return float(self.values.max())

    @property
    def median(self) -> float:
        """Median of the values as they stand."""
        return float(np.median(self.values))

    @property
    def median_reached(self) -> float:
        """Median; infinite where half of the seeds or more did not get there."""
        return float(np.median(np.where(self.bounds > 0, np.inf, self.values)))

    @property
    def antilog(self) -> float:
        """Ten to the mean: of decimal logarithms, the geometric mean."""
        return float(10 ** self.values.mean())

    def decided(self, message: str = "no seed of either method reached the threshold") -> Sample:
        """Leave out the undecided seeds; if none is left, the claim cannot be measured."""
        known = self.bounds != UNDECIDED
        if not known.any():
            raise NotMeasurableError(message)
        return self if known.all() else self.take(known)

    def measured(self, **more: Any) -> Measured:
        """The sample as the rules of verdicts take it."""
        known = self.decided()
        grid = max(float(known.below.mean()), float(known.above.mean()))
        more = {"seeds": known.repetitions, "grid": grid, **more}
        more["undecided"] = len(self.values) - len(known.values)
        more |= {"chaotic": known.chaotic, "of_mean": known.of_mean}
        more["names"] = known.seeds if known.repetitions is None else None
        return Measured(known.values, known.bounds, **more)


def paired(*several: Any) -> list[Any]:
    """Samples, or curves, of the seeds that all of them have."""
    if all(np.array_equal(sample.seeds, several[0].seeds) for sample in several[1:]):
        return list(several)
    common = reduce(np.intersect1d, (sample.seeds for sample in several))
    if not len(common):
        raise NotMeasurableError("the methods share no seed")
    return [sample.take(np.searchsorted(sample.seeds, common)) for sample in several]


def _open(ufunc: np.ufunc, arguments: tuple[Any, ...], values: NDArray) -> NDArray:
    """Bounds of comparisons: undecided where a number that is only a bound could change the outcome."""
    undecided = np.zeros(len(values), bool)
    for index, part in enumerate(arguments):
        if isinstance(part, Sample) and part.bounds.any():
            undecided |= part.bounds == UNDECIDED
            if part.values.dtype != bool:
                extremes = list(map(_values, arguments))
                extremes[index] = np.select(
                    [part.bounds > 0, part.bounds < 0], [np.inf, -np.inf], part.values
                )
                undecided |= ufunc(*extremes) != values
    return np.where(undecided, UNDECIDED, 0)


def _values(part: Any) -> Any:
    return part.values if isinstance(part, Sample) else part


def _end(part: Any, side: int) -> Any:
    """Minimum (`side` -1) or maximum that the truth may have."""
    if not isinstance(part, Sample):
        return part
    return part.values + part.above if side > 0 else part.values - part.below


def _combined(first: NDArray, second: NDArray) -> NDArray:
    """Bounds of a sum: those of opposite kinds decide nothing."""
    contrary = (first * second < 0) | (np.maximum(first, second) == UNDECIDED)
    return np.where(contrary, UNDECIDED, np.sign(first + second))


def _negated(bounds: NDArray) -> NDArray:
    return np.where(bounds == UNDECIDED, bounds, -bounds)


def originals(history: pd.DataFrame) -> dict[Any, Any]:
    """First repetition whose run each repetition repeats, by replicate; a run that is the first, itself.

    Columns of perturbed runs say nothing: each repetition draws a perturbation of its own.
    """
    numbers = history.select_dtypes(["number", "bool"]).drop(columns="replicate", errors="ignore")
    numbers = numbers[[name for name in numbers if not str(name).endswith(PERTURBED)]]
    keys = (history["round"], history["replicate"]) if "round" in history else (history["replicate"],)
    order = np.lexsort(tuple(key.to_numpy() for key in keys))
    names, starts = np.unique(history["replicate"].to_numpy()[order], return_index=True)
    runs = np.split(numbers.to_numpy(float)[order], starts[1:])
    # Most runs are told apart by two of their lines.
    few = np.array([run[[len(run) // 2, -1]] for run in runs])
    found: list[int] = []
    for place, run in enumerate(runs):
        like = np.flatnonzero(_equal(few[:place], few[place], run[0]).all(axis=(1, 2)))
        alike = (one for one in like if run.shape == runs[one].shape)
        copied = (one for one in alike if _equal(runs[one], run, run[0]).all())
        found.append(next((found[one] for one in copied), place))
    return {name.item(): names[first].item() for name, first in zip(names, found, strict=True)}


def _equal(runs: NDArray, other: NDArray, start: NDArray) -> NDArray:
    least = _OF_START * np.abs(np.nan_to_num(start, posinf=0.0, neginf=0.0))
    with np.errstate(invalid="ignore"):
        return np.isclose(runs, other, rtol=_OF_SIZE, atol=least, equal_nan=True)


def independent(*of: Mapping[Any, Any]) -> list[Any]:
    """Repetitions that are left if copies count once; a copy is one in all of several `originals`."""
    common = [name for name in of[0] if all(name in one for one in of)]
    seen = {tuple(one[name] for one in of): name for name in reversed(common)}
    return sorted(seen.values())


def copies_in_words(runs: int, repetitions: int) -> str:
    """Return "20 equal runs", or "7 of 20 runs differ"; "" if none is a copy."""
    if runs == repetitions:
        return ""
    return f"{repetitions} equal runs" if runs == 1 else f"{runs} of {repetitions} runs differ"
