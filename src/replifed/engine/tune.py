"""The search of step sizes and other positive parameters: coarse to fine, until the best point lies inside.

One search serves all papers. It works on a grid of one or more parameters, on a log scale:

1. score every point of the coarse grid;
2. while the best point has no neighbour on one side, extend the grid there, up to a stated bound;
3. halve the log-distance between the best point and its neighbours, as often as asked, or until that changes
   the score by less than a tolerance; with several parameters, before and after each halving go on to the
   best neighbour, diagonal ones too, until there is no better one;
4. where it is asked for, check that the best point is admissible; if it is not, go on with the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Algorithm
from replifed.engine.simulate import History, simulate
from replifed.engine.twins import simulate_with_twins
from replifed.errors import ReplifedError
from replifed.randomness import Streams

Point = tuple[float, ...]
Ask = tuple[str, list[Point]]
Searching = Generator[Ask, Any, "Search"]

# The search moves an edge outwards at most so often, each time by three points.
_MOST_EXTENSIONS = 8
# Values of one of several parameters are equal if their relative difference is below this.
_SAME = 2e-3
# Candidates checked at once: checking several side by side costs little more than checking one.
_CHECKED = 3
# Number of data sets on which every step is scored.
SCORED = 3
# If no step is stable, so many are scored on more data sets, and the best of them is chosen.
_LEADERS = 5
# Scores closer than this, relative to the best, are equal: rounding must not choose between them.
_TIE = 1e-9
# After these rounds a search drops the steps that have diverged, and those whose objective is, for the second
# time in a row, above `_HOPELESS` times its value at the start. In FedHT's Simulation II,
# where objectives leap most, no step near the best does so.
_STAGES = (1, 4, 12)
_HOPELESS = 2.0
# A step is tried on further data sets if its descent on the first is at least this share of the best one's.
_BEHIND = 0.5
# How often, about, the objective is recorded over the last rounds.
_RECORDED = 5


@dataclass
class Spent:
    """What a search used: runs, their rounds, and their traffic in bits, both ways together."""

    runs: int = 0
    rounds: int = 0
    bits: float = 0.0

    def add(self, history: History, started: bool = True) -> None:
        """Add a part of some runs; those that went on from an earlier part are not counted again."""
        R = history.diverged.shape[1]
        self.runs += R if started else 0
        self.rounds += R * int(history.rounds[-1] - history.rounds[0])
        self.bits += float(history.ledger["bits_up"][-1].sum() + history.ledger["bits_down"][-1].sum())

    def __str__(self) -> str:
        if not self.runs:
            return "none"
        return f"{self.runs:,.0f} runs, {self.rounds:,.0f} rounds, {self.bits:.2g} bits"

    def record(self) -> dict[str, Any]:
        """For a JSON file."""
        return {"runs": self.runs, "rounds": self.rounds, "bits": self.bits}


@dataclass(frozen=True)
class Search:
    """Outcome of a search.

    The score of a run that diverged is infinite; a run given up early has an estimate, see `Trials.scores`.
    """

    best: Point  # the chosen one, one number a parameter
    points: tuple[Point, ...]  # all that were tried, in increasing order
    scores: tuple[float, ...]
    rejected: tuple[Point, ...] = ()  # were checked and are not admissible
    edge: bool = False  # whether the best lies at an edge of what was tried
    chaotic: bool = False  # whether no point is admissible, and the best of all was chosen

    @property
    def step(self) -> float:
        """The chosen value of the only parameter."""
        (value,) = self.best
        return value

    @property
    def steps(self) -> tuple[float, ...]:
        """All values tried of the only parameter."""
        return tuple(value for (value,) in self.points)

    @property
    def score(self) -> float:
        """The score of the chosen point."""
        return self.scores[self.points.index(self.best)]

    def record(self) -> dict[str, Any]:
        """The choice and the whole curve of a search of one parameter for a JSON file; None: diverged."""
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
    """Where and how finely to search.

    Halving ends with a tolerance, once it has improved the score by less, and the neighbours of the best
    point are worse by less.
    """

    axes: tuple[tuple[float, ...], ...]  # coarse values of each parameter
    refine: int = 0  # halvings, at most, of the log-distance around the best point
    tolerance: float | None = None  # None halves `refine` times
    grow: bool = True  # whether an edge at which the best point lies is moved outwards
    bounds: tuple[tuple[float, float] | None, ...] | None = None  # of each parameter, None for no bound
    ratios: tuple[float, ...] = field(init=False)  # by so much an axis is extended: its mean spacing

    def __post_init__(self) -> None:
        ratios = [max((max(axis) / min(axis)) ** (1 / max(len(set(axis)) - 1, 1)), 2.0) for axis in self.axes]
        object.__setattr__(self, "ratios", tuple(ratios))

    @classmethod
    def of_steps(cls, steps: Sequence[float], refine: int, **more: Any) -> Grid:
        """A grid of one parameter."""
        return cls((tuple(steps),), refine, **more)

    def clip(self, axis: int, value: float) -> float:
        """The value, or the bound that it is beyond."""
        bound = None if self.bounds is None else self.bounds[axis]
        return value if bound is None else min(max(value, _rounded(bound[0])), _rounded(bound[1]))


Choice = Callable[[NDArray], int]


def lowest(scores: NDArray) -> int:
    """Number of the lowest score, of points in order; of equal ones, that nearest to the middle of them."""
    least = scores.min()
    if not np.isfinite(least):
        return 0
    equal = np.flatnonzero(scores <= least + _TIE * max(abs(least), 1e-3))
    return int(equal[(len(equal) - 1) // 2])


def with_margin(scores: NDArray) -> int:
    """Number of the point for which the worse of its own and the next larger one's score is lowest.

    The best step often lies just below the largest that works. How large that is differs from draw to draw,
    so there the best step of one draw is lost on another.
    """
    worse = np.maximum(scores[:-1], scores[1:])
    return int(np.argmin(worse)) if np.isfinite(worse).any() else lowest(scores)


def search(
    score: Callable[[NDArray], NDArray],
    grid: Grid,
    *,
    admissible: Callable[[NDArray], NDArray] | None = None,
    choose: Choice = lowest,
) -> Search:
    """Minimise `score` over positive parameters.

    Parameters
    ----------
    score : callable
        Maps points (G, P), or (G,) for a single parameter, to scores (G,), lower is better, infinite for a
        run that diverged.
    grid : Grid
    admissible : callable, optional
        Maps points in the same form to a mask (G,); only candidates for the best are asked about. If none is
        admissible, the best of all is returned, marked as chaotic.
    choose : `lowest` or `with_margin`

    Raises
    ------
    ReplifedError
        Every point diverged.
    """
    functions: dict[str, Any] = {"score": score, "admissible": admissible}

    def answer(asked: list[tuple[int, Ask]]) -> list[NDArray]:
        [(_, (kind, points))] = asked
        return [functions[kind](as_array(points))]

    [outcome] = side_by_side([searching(grid, admissible is not None, choose)], answer)
    return outcome


def as_array(points: Sequence[Point]) -> NDArray:
    """Points (G, P), or (G,) for a single parameter."""
    array = np.array(points, dtype=float)
    return array[:, 0] if array.shape[1] == 1 else array


def searching(grid: Grid, check: bool = False, choose: Choice = lowest) -> Searching:
    """A search that yields ("score", points) and ("admissible", points), and is sent an array for each."""
    tried = _Tried(grid, choose)
    yield from tried.ask(itertools.product(*grid.axes))
    while True:
        yield from tried.settle()
        chosen = tried.chosen()
        if not np.isfinite(tried.scores[chosen]):
            ranges = ", ".join(f"{min(axis):g} to {max(axis):g}" for axis in zip(*tried.scores, strict=True))
            raise ReplifedError(f"every step from {ranges} diverged")
        if not check or chosen in tried.accepted:
            return tried.outcome(chosen)
        candidates = tried.candidates()
        verdicts = yield "admissible", candidates
        for point, good in zip(candidates, verdicts, strict=True):
            (tried.accepted if good else tried.rejected).add(point)
        if not np.isfinite(tried.ranked()[1]).any():
            return tried.outcome(None)


class _Tried:
    """The points that a search has tried, and which it wants to try next."""

    def __init__(self, grid: Grid, choose: Choice) -> None:
        self.grid, self._choose = grid, choose
        self._tolerance = -np.inf if grid.tolerance is None else grid.tolerance
        self.scores: dict[Point, float] = {}
        self.accepted: set[Point] = set()
        self.rejected: set[Point] = set()
        self._values: list[set[float]] = [set() for _ in grid.axes]
        self._extensions = 0

    def ask(self, points: Any) -> Generator[Ask, NDArray, None]:
        """Have new points scored."""
        new = sorted({self._snapped(point) for point in points} - set(self.scores))
        if new:
            scores = yield "score", new
            self.scores.update(zip(new, np.asarray(scores, float).tolist(), strict=True))

    def _snapped(self, point: Sequence[float]) -> Point:
        """The point in numbers that can be written down and read back as the same.

        With several parameters those of other points, if they are equal but for rounding: points with the
        same value are neighbours in the others.
        """
        values = [_rounded(value) for value in point]
        if len(values) > 1:
            for known, (axis, value) in zip(self._values, enumerate(values), strict=True):
                same = [other for other in known if abs(other - value) <= _SAME * value]
                values[axis] = min(same, key=lambda other: abs(other - value), default=value)
                known.add(values[axis])
        return tuple(values)

    def ranked(self) -> tuple[list[Point], NDArray]:
        """All points, and their scores, infinite for those that diverged or are rejected."""
        points = sorted(self.scores)
        scores = [np.inf if point in self.rejected else self.scores[point] for point in points]
        return points, np.array(scores)

    def best(self, choose: Choice = lowest) -> Point:
        """The point with the lowest score that is not rejected."""
        points, scores = self.ranked()
        return points[choose(scores)]

    def chosen(self) -> Point:
        """The point to return, unless it is not admissible."""
        return self.best(self._choose)

    def candidates(self) -> list[Point]:
        """The chosen point and, where another one was rejected, the best ones that were never checked."""
        first, (points, scores) = self.chosen(), self.ranked()
        order = [points[n] for n in np.argsort(scores, kind="stable") if np.isfinite(scores[n])]
        rest = [point for point in order if point not in self.accepted and point != first]
        return [first, *(rest[: _CHECKED - 1] if self.rejected else ())]

    def neighbour(self, point: Point, axis: int, side: int) -> float | None:
        """The nearest value tried on that side, the other parameters being equal."""
        line = [
            other[axis]
            for other in self.scores
            if (other[axis] - point[axis]) * side > 0
            and (*other[:axis], *other[axis + 1 :]) == (*point[:axis], *point[axis + 1 :])
        ]
        return min(line, key=lambda value: abs(value - point[axis])) if line else None

    def _missing(self, point: Point) -> list[tuple[int, int]]:
        """Axes and sides on which the point has no neighbour and, since no bound is met, could have one."""
        return [
            (axis, side)
            for axis in range(len(point))
            for side in (-1, 1)
            if self.neighbour(point, axis, side) is None
            and self.grid.clip(axis, point[axis] * 2.0**side) != point[axis]
        ]

    def settle(self) -> Generator[Ask, NDArray, None]:
        """Move the edges until the best point lies inside; halve the distances around it."""
        yield from self._descend()
        given_up = self._extensions >= _MOST_EXTENSIONS
        for _ in range(self.grid.refine):
            before = self.scores[self.best()]
            if not np.isfinite(before) or not (yield from self._halve()):
                return
            if len(self.grid.axes) > 1 and not given_up:
                self._extensions = 0  # moves along a valley are no search for its end
            yield from self._descend()
            if before - self.scores[self.best()] < self._tolerance and self._flat():
                return

    def _flat(self) -> bool:
        """Whether the neighbours of the best point that converge are as good, but for the tolerance."""
        best = self.best()
        axes = range(len(best))
        near = [self.scores[(*best[:d], v, *best[d + 1 :])] for d in axes for v in self._near(best, d)[1:]]
        return all(score - self.scores[best] < self._tolerance for score in near if np.isfinite(score))

    def _descend(self) -> Generator[Ask, NDArray, None]:
        """Go to the best of all neighbours, diagonal ones too, until there is no better one.

        Along one parameter at a time, a search ends on the slope of a valley that runs across two.
        """
        while True:
            yield from self._surround()
            best = self.best()
            if len(best) == 1 or np.isinf(self.scores[best]):
                return
            yield from self.ask(self._diagonal(best))
            if self.best() == best:
                return

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

    def _surround(self) -> Generator[Ask, NDArray, None]:
        """Extend the grid until the best and the chosen point have neighbours on all sides, if it may."""
        if not self.grid.grow:
            return
        while self._extensions < _MOST_EXTENSIONS:
            best = self.best()
            missing = self._missing(best)
            if not missing:  # the choice may keep its distance from the best point
                best = self.chosen()
                missing = self._missing(best)
            if np.isinf(self.scores[best]):  # everything failed: smaller values may not
                missing = [(axis, side) for axis, side in missing if side < 0]
            if not missing:
                return
            self._extensions += 1
            yield from self.ask(point for axis, side in missing for point in self._beyond(best, axis, side))

    def _beyond(self, point: Point, axis: int, side: int) -> list[Point]:
        """Points beyond an edge: three of the coarse spacing, or one as far as the neighbour opposite is.

        Where that is near, one more, twice as far each time, at most the coarse spacing.
        """
        opposite = self.neighbour(point, axis, -side)
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

    def _near(self, point: Point, axis: int) -> list[float]:
        """The point's value of a parameter and its neighbours'."""
        ends = (self.neighbour(point, axis, -1), self.neighbour(point, axis, 1))
        return [point[axis], *(end for end in ends if end is not None)]

    def _halve(self) -> Generator[Ask, NDArray, bool]:
        """Try the points half way to the neighbours of the best one; whether any was left to try."""
        best = self.best()
        target = [ratio ** (0.5**self.grid.refine) for ratio in self.grid.ratios]
        lines = []
        for axis, value in enumerate(best):
            ends = [self.neighbour(best, axis, side) for side in (-1, 1)]
            far = [e for e in ends if e is not None and abs(np.log(e / value)) > np.log(target[axis]) * 1.01]
            lines.append([value, *(np.sqrt(value * end) for end in far)])
        before = len(self.scores)
        yield from self.ask(itertools.product(*lines))
        return len(self.scores) > before

    def outcome(self, best: Point | None) -> Search:
        """The search's outcome; with no best point, the best of all, admissible or not."""
        chaotic = best is None
        rejected, points = tuple(sorted(self.rejected)), sorted(self.scores)
        if best is None:
            self.rejected = set()
            best = self.chosen()
        edge = any(self.neighbour(best, d, side) is None for d in range(len(best)) for side in (-1, 1))
        return Search(best, tuple(points), tuple(self.scores[p] for p in points), rejected, edge, chaotic)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def side_by_side(
    searches: Sequence[Searching], answer: Callable[[list[tuple[int, Ask]]], list[NDArray]]
) -> list[Search]:
    """Advance searches together: `answer` maps what some of them ask, by number, to the reply to each."""
    outcomes: list[Any] = [None] * len(searches)
    answers: list[tuple[int, Any]] = [(number, None) for number in range(len(searches))]
    while answers:
        asked: list[tuple[int, Ask]] = []
        for number, known in answers:
            try:
                asked.append((number, searches[number].send(known)))
            except StopIteration as end:
                outcomes[number] = end.value
        replies: dict[int, NDArray] = {}
        for kind in ("score", "admissible"):
            some = [(number, ask) for number, ask in asked if ask[0] == kind]
            if some:
                replies.update(zip([number for number, _ in some], answer(some), strict=True))
        answers = [(number, replies[number]) for number, _ in asked]
    return outcomes


@dataclass(frozen=True)
class Trials:
    """How steps are tried out: on which data, for how long, and what counts as their score.

    The objective is averaged over `tail`, the share of the rounds at the end. With zero it is the last
    round's alone, and a step with which the objective leaps about may win by a lucky last round.
    """

    problems: Sequence[tuple[int, Any]]  # replicates and problems, with data that all runs share
    seed: int  # the experiment's
    rounds: int  # of a trial
    tail: float = 0.0
    # Makes more replicates and problems, for the choice among steps of which none is stable.
    further: Callable[[], Iterable[tuple[int, Any]]] = tuple
    checked: int = SCORED  # on so many of the problems a step must be stable
    options: dict[str, Any] = field(default_factory=dict)  # of `simulate`, such as the cohort
    spent: Spent = field(default_factory=Spent)  # so far
    used: set[int] = field(default_factory=set)  # the replicates that they ran on

    @classmethod
    def on(
        cls,
        names: Sequence[int],
        problem: Callable[[int], Any],
        seed: int,
        rounds: int,
        tail: float = 0.0,
        **more: Any,
    ) -> Trials:
        """Trials on the problems of `names`: the first three for every step, others where none is stable."""
        scored, further = names[:SCORED], names[SCORED:]
        few = [(name, problem(name)) for name in scored]
        return cls(few, seed, rounds, tail, lambda: ((name, problem(name)) for name in further), **more)

    def record(self) -> dict[str, Any]:
        """What was run, for a JSON file: replicates, and the cost."""
        return {"trials": {"replicates": sorted(self.used)}, "cost": self.spent.record()}

    def scores(self, make: Callable[[NDArray], Algorithm], count: int) -> NDArray:
        """Mean objective at the end over the data sets, (count,); infinite where a run diverged.

        A run whose descent on the first data set is below `_BEHIND` times the best run's is not run on the
        others. Its score is its objective there plus the most by which the others raised a kept run's mean.
        Without that it would win where the first data set has the lowest objectives.
        """
        first, *others = self.problems
        scores, start = self._objectives(make, first, np.arange(count))
        farthest = (start - scores).max()
        least = _BEHIND * farthest if farthest > 0 else -np.inf
        kept = np.flatnonzero(np.isfinite(scores) & (start - scores >= least))
        if not kept.size:
            return scores
        means = scores[kept] / len(self.problems)
        for problem in others:
            means += self._objectives(make, problem, kept)[0] / len(self.problems)
        added = (means - scores[kept])[np.isfinite(means)]
        scores += added.max() if added.size else 0.0
        scores[kept] = means
        return scores

    def more_scores(self, make: Callable[[NDArray], Algorithm], known: NDArray) -> NDArray:
        """The scores `known` (G,) of the data sets, together with those of the further ones."""
        total, many = known * len(self.problems), len(self.problems)
        for further in self.further():
            total, many = total + self._objectives(make, further, np.arange(len(known)))[0], many + 1
        return total / many

    def _objectives(
        self, make: Callable[[NDArray], Algorithm], problem: tuple[int, Any], numbers: NDArray
    ) -> tuple[NDArray, float]:
        """Final objectives of some runs on a data set, infinite where they diverge, and that at the start.

        Most steps of a coarse grid diverge in their first rounds, or rise; those are dropped early.
        """
        replicate, data = problem
        self.used.add(replicate)
        rounds, last = self.rounds, max(round(self.tail * self.rounds), 1)
        final, alive = np.full(len(numbers), np.inf), np.arange(len(numbers))
        start, risen = None, np.zeros(len(numbers), bool)
        begun, resume = np.nan, None
        scored = rounds - last if last > 1 else rounds
        for stop in sorted({stage for stage in _STAGES if stage < scored} | {scored, rounds} - {0}):
            streams = Streams(self.seed, (replicate,) * len(alive))
            begin = 0 if resume is None else resume[0]
            every = max(last // _RECORDED, 1) if begin >= scored else stop - begin
            history = simulate(
                make(numbers[alive]), data, streams, stop, record_every=every, resume=resume, **self.options
            )
            self.spent.add(history, started=resume is None)
            objective = history.metrics["objective"]
            if start is None:
                start, begun = objective[0], float(objective[0, 0])
            left, final[alive] = ~history.diverged[-1], objective[-1]  # infinite for those that have diverged
            if stop < scored:
                high = objective[-1] > _HOPELESS * start
                left &= ~(high & risen)
                start, risen = start[left], high[left]
            alive = alive[left]
            if not alive.size:
                return final, begun
            resume = stop, history.take(left).state
        final[alive] = objective[history.rounds > rounds - last][:, left].mean(axis=0)
        return final, begun

    def stable(self, make: Callable[[NDArray, NDArray], Algorithm], count: int) -> NDArray:
        """Which of `count` settings descend and agree with their twins (`twins`), on the data to check."""
        good = np.ones(count, bool)

        def make_of(left: NDArray) -> Callable[[NDArray, NDArray], Algorithm]:
            return lambda numbers, factors: make(left[numbers], factors)

        for replicate, problem in self.problems[: self.checked]:
            left = np.flatnonzero(good)
            if not left.size:
                break
            twinned = simulate_with_twins(
                make_of(left),
                problem,
                Streams(self.seed, (replicate,) * len(left)),
                self.rounds,
                tail=self.tail,
                record_every=max(round(self.tail * self.rounds) // _RECORDED, 1),
                whole=False,
                **self.options,
            )
            self.spent.add(twinned.everything)
            good[left] = twinned.stable
        return good


def tune_step(
    make: Callable[[NDArray], Algorithm], trials: Trials, grid: Grid, *, check: bool = False
) -> Search:
    """Search the step size by the objective at the end of the trials, averaged over data sets.

    `make` builds the algorithm for an array of steps (G,), which run side by side; `check` says whether a
    step must be stable, see `twins`.
    """

    def score(steps: NDArray) -> NDArray:
        return trials.scores(lambda runs: make(steps[runs]), len(steps))

    def stable(steps: NDArray) -> NDArray:
        return trials.stable(lambda runs, factors: make(steps[runs] * factors), len(steps))

    def rescored(steps: NDArray, known: NDArray) -> NDArray:
        return trials.more_scores(lambda runs: make(steps[runs]), known)

    return best_of_chaotic(search(score, grid, admissible=stable if check else None), rescored)


def best_of_chaotic(outcome: Search, rescored: Callable[[NDArray, NDArray], NDArray]) -> Search:
    """The search of a step; if none is stable, with the best of its leaders on more data sets.

    `rescored` maps steps (G,) and their scores to their means over more data sets (G,).
    """
    if not outcome.chaotic:
        return outcome
    scores = np.array(outcome.scores)
    leaders = np.argsort(scores, kind="stable")[: min(_LEADERS, int(np.isfinite(scores).sum()))]
    scores[leaders] = rescored(np.array(outcome.steps)[leaders], scores[leaders])
    best = leaders[int(np.argmin(scores[leaders]))]
    return replace(outcome, best=outcome.points[best], scores=tuple(scores.tolist()))


def best_printed(own: Search, steps: Sequence[float], stable: Callable[[NDArray], NDArray]) -> Search:
    """The best stable one of a paper's printed steps, even at their edge; if none is stable, the best.

    The search `own` began with the printed steps, and its checks are not repeated; `stable` maps steps (G,)
    to a mask (G,).
    """
    scores = dict(zip(own.steps, own.scores, strict=True))
    checked = {step: False for (step,) in own.rejected} | ({} if own.chaotic else {own.step: True})

    def admissible(asked: NDArray) -> NDArray:
        new = np.array([step for step in asked.tolist() if step not in checked])
        if new.size:
            checked.update(zip(new.tolist(), stable(new).tolist(), strict=True))
        return np.array([checked[step] for step in asked.tolist()])

    return search(np.vectorize(scores.get), Grid.of_steps(steps, 0, grow=False), admissible=admissible)
