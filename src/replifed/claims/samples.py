"""One number a seed, of which some are only bounds, and arithmetic on such samples, paired by seed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replifed.claims.verdicts import Measured, NotMeasurableError

# Mark of a seed on which nothing is known, not even a bound.
UNDECIDED = 2


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, other: replace(one._with(other, function), bounds=None)


@dataclass(frozen=True, eq=False)
class Sample:
    """One number a seed.

    Sums, differences, products, quotients and comparisons pair seeds and leave out those that only one side
    has. Bounds follow: the difference of two numbers that are both at least something is undecided. Products
    and quotients are of positive numbers; comparisons take every value as it stands.

    Parameters
    ----------
    values : array, shape (n,)
        Numbers, or booleans.
    bounds : int array, shape (n,)
        0 where the value is exact, 1 or -1 where the truth is at least or at most the value, `UNDECIDED`
        where nothing is known. All 0 by default.
    seeds : array, shape (n,)
        Ascending; 0 to n - 1 by default.
    chaotic : bool
        Whether one of the runs behind it hangs on rounding (`replifed.twins`).
    repetitions : int, optional
        Seeds behind it, where the values are cases and not one a seed.
    """

    values: NDArray
    bounds: NDArray = None  # type: ignore[assignment]
    seeds: NDArray = None  # type: ignore[assignment]
    chaotic: bool = False
    repetitions: int | None = None
    # So that a number of numpy's leaves arithmetic to this class.
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        default = {"bounds": np.zeros(len(values), dtype=int), "seeds": np.arange(len(values))}
        object.__setattr__(self, "values", values)
        for name, array in default.items():
            given = getattr(self, name)
            object.__setattr__(self, name, array if given is None else np.asarray(given))

    def take(self, which: NDArray) -> Sample:
        """Those of some seeds, by a mask or by index."""
        return replace(self, values=self.values[which], bounds=self.bounds[which], seeds=self.seeds[which])

    def map(self, function: Callable[[NDArray], ArrayLike]) -> Sample:
        """Apply a function that grows with the values, so that bounds stay bounds."""
        return replace(self, values=np.asarray(function(self.values)))

    # Statistics, for notes such as "medians {0.median:g} and {1.median:g}".

    @property
    def mean(self) -> float:
        """Mean of the values as they stand."""
        return float(self.values.mean())

    @property
    def min(self) -> float:
        """Least value."""
        return float(self.values.min())

    @property
    def max(self) -> float:
        """Largest value."""
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

    @property
    def percent(self) -> Sample:
        """The same in per cent."""
        return self.map(lambda values: 100 * values)

    # Arithmetic.

    def __neg__(self) -> Sample:
        return replace(self, values=-self.values, bounds=_turned(self.bounds))

    def __add__(self, other: Any) -> Sample:
        return self._with(other, np.add)

    def __sub__(self, other: Any) -> Sample:
        return self._with(other, np.subtract, turned=True)

    def __mul__(self, other: Any) -> Sample:
        return self._with(other, np.multiply)

    def __truediv__(self, other: Any) -> Sample:
        return self._with(other, np.divide, turned=True)

    def __radd__(self, other: float) -> Sample:
        return self + other

    def __rsub__(self, other: float) -> Sample:
        return -self + other

    def __rmul__(self, other: float) -> Sample:
        return self * other

    def __rtruediv__(self, other: float) -> Sample:
        return replace(self, values=other / self.values, bounds=_turned(self.bounds))

    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __and__ = _comparison(operator.and_)

    def __invert__(self) -> Sample:
        return replace(self, values=~self.values)

    def _with(self, other: Any, function: Callable[..., Any], turned: bool = False) -> Sample:
        if not isinstance(other, Sample):
            # Differences and products with positive numbers keep their order.
            return replace(self, values=np.asarray(function(self.values, other)))
        mine, theirs = paired(self, other)
        second = _turned(theirs.bounds) if turned else theirs.bounds
        return Sample(
            function(mine.values, theirs.values),
            combined(mine.bounds, second),
            mine.seeds,
            mine.chaotic or theirs.chaotic,
            self.repetitions,
        )

    def decided(self, message: str = "no seed of either method reached the threshold") -> Sample:
        """Leave out the undecided seeds; if none is left, the claim cannot be measured."""
        known = self.bounds != UNDECIDED
        if not known.any():
            raise NotMeasurableError(message)
        return self if known.all() else self.take(known)

    def measured(self, **more: Any) -> Measured:
        """As the rules of verdicts take it."""
        known = self.decided()
        more = {"seeds": known.repetitions, **more}
        return Measured(known.values, known.bounds, chaotic=known.chaotic, **more)


def paired(*several: Any) -> list[Any]:
    """Samples, or curves, of the seeds that all of them have."""
    common = several[0].seeds
    if all(np.array_equal(one.seeds, common) for one in several[1:]):
        return list(several)
    for one in several[1:]:
        common = np.intersect1d(common, one.seeds)
    if not len(common):
        raise NotMeasurableError("the methods share no seed")
    return [one.take(np.searchsorted(one.seeds, common)) for one in several]


def combined(first: NDArray, second: NDArray) -> NDArray:
    """Bounds of a sum: those of opposite kinds decide nothing."""
    contrary = (first * second < 0) | (np.maximum(first, second) == UNDECIDED)
    return np.where(contrary, UNDECIDED, np.sign(first + second))


def _turned(bounds: NDArray) -> NDArray:
    return np.where(bounds == UNDECIDED, bounds, -bounds)
