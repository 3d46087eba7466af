"""The search of step sizes and other positive parameters: coarse to fine, until the best point lies inside.

One search serves all papers. It works on a grid of one or more parameters, on a log scale:

1. score every point of the coarse grid;
2. while the best point has no neighbour on one side, extend the grid there, up to a stated bound;
3. halve the log-distance between the best point and its neighbours, up to a stated number of times, or until
   that changes the score by less than a tolerance; with several parameters, before and after each halving
   move to the best neighbour, diagonal ones included, until none is better;
4. if requested, check that the best point is admissible; if it is not, continue with the other points.

A budget limits the number of runs, extensions and checks included.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError

Point = tuple[float, ...]

# The search extends its grid at most this often, each time by three points.
_MOST_EXTENSIONS = 8
# Values of one of several parameters are equal if their relative difference is below this.
_SAME = 2e-3
# Candidates checked at once: checking several side by side costs little more than checking one.
_CHECKED = 3
# Scores closer than this, relative to the best, are equal: rounding must not choose between them.
TIE = 1e-9


@dataclass(frozen=True)
class Search:
    """Outcome of a search.

    The score of a run that diverged is infinite; a run dropped early has an estimate, see `trials.Trials`.
    """

    best: Point  # the selected point, one value per parameter
    points: tuple[Point, ...]  # all that were scored, in increasing order
    scores: tuple[float, ...]
    rejected: tuple[Point, ...] = ()  # points that were checked and are not admissible
    edge: bool = False  # whether the best, or the lowest score, lies at an edge of the scored points
    chaotic: bool = False  # whether no point was found admissible, and the best of all was selected

    @property
    def step(self) -> float:
        """The selected value of the only parameter."""
        (value,) = self.best
        return value

    @property
    def steps(self) -> tuple[float, ...]:
        """All scored values of the only parameter."""
        return tuple(value for (value,) in self.points)

    @property
    def score(self) -> float:
        """The score of the selected point."""
        return self.scores[self.points.index(self.best)]

    def rescored(self, places: NDArray | list[int], rescore: Callable[[NDArray, NDArray], NDArray]) -> Search:
        """Search of one parameter with new scores of the points at `places`, (G,).

        `rescore` maps their steps (G,) and scores to new scores (G,).
        """
        scores = np.array(self.scores)
        scores[places] = rescore(np.array(self.steps)[places], scores[places])
        return replace(self, scores=tuple(scores.tolist()))

    def record(self) -> dict[str, Any]:
        """Selection and all scores of a search of one parameter, for a JSON file; None: diverged."""
        return {
            "step": self.step,
            "score": _finite(self.score),
            "steps": list(self.steps),
            "scores": [_finite(score) for score in self.scores],
            "rejected": [value for (value,) in self.rejected],
            "edge": self.edge,
            "chaotic": self.chaotic,
        }


def _finite(score: float) -> float | None:
    return float(score) if np.isfinite(score) else None


@dataclass(frozen=True)
class Grid:
    """Range and resolution of a search.

    With a tolerance, halving ends once it has improved the score by less than that and the best point's
    neighbours are worse by less than that.
    """

    axes: tuple[tuple[float, ...], ...]  # coarse values of each parameter
    refine: int = 0  # halvings, at most, of the log-distance around the best point
    tolerance: float | None = None  # None halves `refine` times
    grow: bool = True  # whether the grid is extended at an edge where the best point lies
    bounds: tuple[tuple[float, float] | None, ...] | None = None  # of each parameter, None for no bound
    ratios: tuple[float, ...] = field(init=False)  # factors by which axes are extended: their mean spacing

    def __post_init__(self) -> None:
        ratios = [max((max(axis) / min(axis)) ** (1 / max(len(set(axis)) - 1, 1)), 2.0) for axis in self.axes]
        object.__setattr__(self, "ratios", tuple(ratios))

    @classmethod
    def of_steps(cls, steps: Sequence[float], refine: int = 0, **more: Any) -> Grid:
        """A grid of one parameter."""
        return cls((tuple(steps),), refine, **more)

    def clip(self, axis: int, value: float) -> float:
        """Value of the parameter, clipped to its bounds."""
        bound = None if self.bounds is None else self.bounds[axis]
        return value if bound is None else min(max(value, _rounded(bound[0])), _rounded(bound[1]))


@dataclass(frozen=True)
class Budget:
    """Number of runs that a search may take; scoring always leaves the runs of one check."""

    runs: int
    spent: Callable[[], int]  # so far
    point: int = 1  # runs that it takes to score a point
    check: int = 1  # and to check one

    def points(self) -> int:
        """Number of points that can still be scored."""
        return max((self.runs - self.spent() - self.check) // self.point, 0)

    def checks(self) -> int:
        """Number of points that can still be checked."""
        return max((self.runs - self.spent()) // self.check, 0)


Choice = Callable[[NDArray], int]


def lowest(scores: NDArray) -> int:
    """Index of the lowest score of points in increasing order; of equal scores, the middle one."""
    minimum = scores.min()
    if not np.isfinite(minimum):
        return 0
    equal = np.flatnonzero(scores <= minimum + TIE * max(abs(minimum), 1e-3))
    return int(equal[(len(equal) - 1) // 2])


def with_margin(scores: NDArray) -> int:
    """Index of the point for which the larger of its score and the next point's score is lowest.

    The best step often lies just below the largest stable one, which differs from draw to draw: the best step
    of one draw may diverge on another.
    """
    worse = np.maximum(scores[:-1], scores[1:])
    return int(np.argmin(worse)) if np.isfinite(worse).any() else lowest(scores)


def search(
    score: Callable[[NDArray], NDArray],
    grid: Grid,
    *,
    admissible: Callable[[NDArray], NDArray] | None = None,
    choose: Choice = lowest,
    budget: Budget | None = None,
) -> Search:
    """Minimise `score` over positive parameters.

    Parameters
    ----------
    score : callable
        Maps points (G, P), or (G,) for a single parameter, to scores (G,), lower is better, infinite for a
        run that diverged.
    grid : Grid
    admissible : callable, optional
        Maps points in the same form to a mask (G,); only candidates for the best are checked. If none is
        admissible, the best of all points is returned, marked as chaotic.
    choose : `lowest` or `with_margin`
    budget : Budget, optional
        When it is spent, the best point may lie at an edge, or be unchecked and then marked as chaotic.

    Raises
    ------
    ReplifedError
        Every point diverged.
    """
    check = None if admissible is None else (lambda _, points: admissible(points))
    scored: Judge = lambda _, points: score(points)  # noqa: E731
    [found] = search_each(scored, [grid], admissible=check, choose=choose, budget=budget)
    return found


Judge = Callable[[NDArray, NDArray], NDArray]
"""Maps numbers (G,) of searches and the points (G, P), or (G,), that they want to scores, or a mask, (G,)."""


def search_each(
    score: Judge,
    grids: Sequence[Grid],
    *,
    admissible: Judge | None = None,
    choose: Choice = lowest,
    budget: Budget | None = None,
) -> list[Search]:
    """Run several searches side by side, each as in `search`.

    Parameters
    ----------
    score, admissible : callable
        As in `search`, but for points of several searches; the first argument has each point's search, by
        number.
    grids : sequence of Grid
        One per search, all with the same number of parameters.
    choose, budget : as in `search`; the searches share the budget
    """
    running = {number: _SearchState(grid, choose, budget) for number, grid in enumerate(grids)}
    found: dict[int, Search] = {}
    while running:
        batches = {number: tried.wanted() for number, tried in running.items()}
        while any((wanted := {number: next(points, []) for number, points in batches.items()}).values()):
            for number, scores in _judged(score, wanted):
                running[number].scores |= zip(wanted[number], scores, strict=True)
        selected = {number: tried.selected() for number, tried in running.items()}
        for number, point in selected.items():
            if admissible is None or running[number].checked.get(point):
                found[number] = running.pop(number).outcome()
        if admissible is not None and running:
            candidates = {number: tried.candidates() for number, tried in running.items()}
            for number in [number for number, points in candidates.items() if not points]:
                found[number] = running.pop(number).outcome(unchecked=True)
                del candidates[number]
            for number, verdicts in _judged(admissible, candidates) if candidates else ():
                running[number].checked |= zip(candidates[number], verdicts, strict=True)
                if running[number].rejects_all:
                    found[number] = running.pop(number).outcome()
    return [found[number] for number in range(len(grids))]


def _judged(judge: Judge, points: Mapping[int, list[Point]]) -> Iterator[tuple[int, list]]:
    """Yield each search with the results for its points; all points are evaluated at once."""
    everything = np.array([point for some in points.values() for point in some], dtype=float)
    numbers = np.repeat(list(points), [len(some) for some in points.values()])
    judged = judge(numbers, everything[:, 0] if everything.shape[1] == 1 else everything)
    for number in points:
        yield number, judged[numbers == number].tolist()


class _SearchState:
    """State of one search: the points scored and checked so far, and those requested next."""

    def __init__(self, grid: Grid, choose: Choice, budget: Budget | None = None) -> None:
        self.grid, self._choose, self._budget = grid, choose, budget
        self.scores: dict[Point, float] = {}
        self.checked: dict[Point, bool] = {}  # whether points are admissible
        self._values: list[set[float]] = [set() for _ in grid.axes]
        self._extensions = 0

    # -- Scores and checks ------------------------------------------------------------------------

    def _ranked(self) -> tuple[list[Point], NDArray]:
        """All points, and their scores, infinite for those that diverged or are not admissible."""
        points = sorted(self.scores)
        scores = [self.scores[point] if self.checked.get(point, True) else np.inf for point in points]
        return points, np.array(scores)

    @property
    def rejects_all(self) -> bool:
        """True if every point that converges was checked and is not admissible."""
        return not np.isfinite(self._ranked()[1]).any()

    def _best(self, choose: Choice = lowest) -> Point:
        """The point with the lowest score that may be admissible."""
        points, scores = self._ranked()
        return points[choose(scores)]

    def selected(self) -> Point:
        """The point to return if it is admissible; raises an error if every point diverged."""
        point = self._best(self._choose)
        if not np.isfinite(self.scores[point]):
            ranges = ", ".join(f"{min(axis):g} to {max(axis):g}" for axis in zip(*self.scores, strict=True))
            raise ReplifedError(f"every step from {ranges} diverged; try smaller ones")
        return point

    def candidates(self) -> list[Point]:
        """The selected point and, if another one is not admissible, the best ones that were never checked.

        None where the budget is spent.
        """
        first, (points, scores) = self.selected(), self._ranked()
        order = [points[n] for n in np.argsort(scores, kind="stable") if np.isfinite(scores[n])]
        rest = [point for point in order if point not in self.checked and point != first]
        chosen = [first, *(rest[: _CHECKED - 1] if not all(self.checked.values()) else ())]
        return chosen if self._budget is None else chosen[: self._budget.checks()]

    def outcome(self, unchecked: bool = False) -> Search:
        """The search's outcome; if no point is admissible, the best of all."""
        rejected = sorted(point for point, admissible in self.checked.items() if not admissible)
        if chaotic := self.rejects_all:
            self.checked = {}
        best, least, points = self.selected(), self._best(), sorted(self.scores)
        # The selection may keep its distance from the lowest score, which may be at the edge.
        edge = any(len(self._near(point, axis)) < 3 for point in (best, least) for axis in range(len(best)))
        scores = tuple(self.scores[point] for point in points)
        return Search(best, tuple(points), scores, tuple(rejected), edge, chaotic or unchecked)

    # -- New points -------------------------------------------------------------------------------

    def wanted(self) -> Iterator[list[Point]]:
        """Yield batches of points; the caller stores their scores before it asks for the next batch."""
        yield from filter(None, map(self._affordable, map(self._new, self._points_to_score())))

    def _affordable(self, points: list[Point]) -> list[Point]:
        """The points that the budget allows, those nearest to the best one first."""
        if self._budget is None or len(points) <= (most := self._budget.points()):
            return points
        best = np.log(self._best() if self.scores else points[0])
        return sorted(sorted(points, key=lambda point: np.abs(np.log(point) - best).max())[:most])

    def _new(self, points: Iterable[Sequence[float]]) -> list[Point]:
        return sorted({self._snapped(point) for point in points} - set(self.scores))

    def _snapped(self, point: Sequence[float]) -> Point:
        """Point rounded to numbers that a file reproduces exactly.

        With several parameters, values that equal another point's up to rounding become that point's: points
        with a common value of one parameter are neighbours in the others.
        """
        values = [_rounded(value) for value in point]
        if len(values) > 1:
            for known, (axis, value) in zip(self._values, enumerate(values), strict=True):
                same = [other for other in known if abs(other - value) <= _SAME * value]
                values[axis] = min(same, key=lambda other: abs(other - value), default=value)
                known.add(values[axis])
        return tuple(values)

    # -- The way to the best point. A generator resumes once the points that it has yielded have scores ----

    def _points_to_score(self) -> Iterator[Iterable[Sequence[float]]]:
        """Extend the grid until the best point lies inside; halve the distances around it."""
        yield itertools.product(*self.grid.axes)
        yield from self._descend()
        unbounded = self._extensions >= _MOST_EXTENSIONS
        for _ in range(self.grid.refine):
            before = self.scores[self._best()]
            if not np.isfinite(before) or not (half_way := self._new(self._half_way(self._best()))):
                return
            yield half_way
            if len(self.grid.axes) > 1 and not unbounded:
                self._extensions = 0  # moves along a valley are no search for its end
            yield from self._descend()
            if self.grid.tolerance is not None and self._has_converged(before, self.grid.tolerance):
                return

    def _has_converged(self, before: float, tolerance: float) -> bool:
        """True if the best score differs by less than the tolerance from the last one and its neighbours'.

        Neighbours that diverge do not count.
        """
        best = self._best()
        score = self.scores[best]
        near = [(*best[:d], v, *best[d + 1 :]) for d in range(len(best)) for v in self._near(best, d)[1:]]
        others = [before, *(self.scores[point] for point in near)]
        return all(other - score < tolerance for other in others if np.isfinite(other))

    def _descend(self) -> Iterator[Iterable[Sequence[float]]]:
        """Move to the best of all neighbours, diagonal ones included, until none is better.

        One parameter at a time, a search would stop on the slope of a diagonal valley.
        """
        while True:
            yield from self._surround()
            best = self._best()
            if len(best) == 1 or np.isinf(self.scores[best]):
                return
            yield self._diagonal(best)
            if self._best() == best:
                return

    def _surround(self) -> Iterator[Iterable[Sequence[float]]]:
        """Extend a grid that may grow until the best and the selected point have neighbours on all sides."""
        while self.grid.grow and self._extensions < _MOST_EXTENSIONS:
            # The selection may keep its distance from the best point.
            for point in (self._best(), self._best(self._choose)):
                if missing := self._missing(point):
                    break
            if np.isinf(self.scores[point]):  # everything failed: smaller values may not
                missing = [(axis, side) for axis, side in missing if side < 0]
            if not missing:
                return
            self._extensions += 1
            yield [new for axis, side in missing for new in self._beyond(point, axis, side)]

    # -- Neighbours -------------------------------------------------------------------------------

    def _neighbour(self, point: Point, axis: int, side: int) -> float | None:
        """The nearest scored value on that side, the other parameters being equal."""
        line = [
            other[axis]
            for other in self.scores
            if (other[axis] - point[axis]) * side > 0
            and (*other[:axis], *other[axis + 1 :]) == (*point[:axis], *point[axis + 1 :])
        ]
        return min(line, key=lambda value: abs(value - point[axis])) if line else None

    def _near(self, point: Point, axis: int) -> list[float]:
        """The point's value of a parameter and its neighbours'."""
        ends = (self._neighbour(point, axis, -1), self._neighbour(point, axis, 1))
        return [point[axis], *(end for end in ends if end is not None)]

    def _missing(self, point: Point) -> list[tuple[int, int]]:
        """Axes and sides on which the point has no neighbour and, since no bound is met, could have one."""
        return [
            (axis, side)
            for axis in range(len(point))
            for side in (-1, 1)
            if self._neighbour(point, axis, side) is None
            and self.grid.clip(axis, point[axis] * 2.0**side) != point[axis]
        ]

    def _beyond(self, point: Point, axis: int, side: int) -> list[Point]:
        """Points beyond an edge: three of the coarse spacing, or one as far as the neighbour opposite is.

        If that neighbour is near, one more, twice as far each time, at most the coarse spacing.
        """
        opposite = self._neighbour(point, axis, -side)
        ratio = self.grid.ratios[axis]
        leaps: tuple[int, ...] = 1, 2, 3
        if opposite is not None:
            near = max(opposite / point[axis], point[axis] / opposite)
            if near < ratio**0.99 and len(point) > 1:
                most = int(np.log(ratio) / np.log(near))
                ratio, leaps = near, (1, min(2**self._extensions, most))
        values = [self.grid.clip(axis, point[axis] * ratio ** (side * k)) for k in leaps]
        lines = [self._near(point, d) if d != axis else values for d in range(len(point))]
        return list(itertools.product(*lines))

    def _diagonal(self, point: Point) -> list[Point]:
        """The neighbours in all parameters at once, and those two steps away in one and one in another."""
        near = [self._near(point, axis) for axis in range(len(point))]
        points = list(itertools.product(*near))
        for one, two in itertools.permutations(range(len(point)), 2):
            for a, b in itertools.product(near[one][1:], near[two][1:]):
                knight = list(point)
                knight[one], knight[two] = a, self.grid.clip(two, b * b / point[two])
                points.append(tuple(knight))
        return points

    def _half_way(self, point: Point) -> Iterable[Point]:
        """The points half way to the neighbours that are farther away than the finest spacing."""
        lines = []
        for axis, (value, ratio) in enumerate(zip(point, self.grid.ratios, strict=True)):
            finest = 1.01 * np.log(ratio) * 0.5**self.grid.refine
            far = [end for end in self._near(point, axis)[1:] if abs(np.log(end / value)) > finest]
            lines.append([value, *(np.sqrt(value * end) for end in far)])
        return itertools.product(*lines)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
