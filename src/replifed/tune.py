"""Step-size search: coarse to fine, the grid grown while its best point lies at an edge."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Algorithm
from replifed.errors import ReplifedError
from replifed.randomness import Streams
from replifed.simulate import simulate

# An edge is moved outwards at most so often (each time by three points), then the search gives up.
_MOST_EXTENSIONS = 8
# Rounds after which a search drops the steps that have diverged, and those whose objective stands, for the
# second time in a row, above so many times its value at the start. In FedHT's Simulation II, where objectives
# leap most, no step near the best begins so.
_STAGES = (1, 4, 12)
_HOPELESS = 2.0
# Of the last rounds the objective is recorded about so often.
_RECORDED = 5


@dataclass(frozen=True)
class Search:
    """Outcome of a step-size search.

    Attributes
    ----------
    best : the step with the lowest score.
    steps, scores : all points tried, by increasing step. The score of a run that diverged is infinite; that
        of one that was given up is the objective that it had come to.
    """

    best: float
    steps: tuple[float, ...]
    scores: tuple[float, ...]

    def record(self) -> dict[str, Any]:
        """The choice and the whole curve for a JSON file, with None where a run diverged."""
        scores = [score if np.isfinite(score) else None for score in self.scores]
        chosen = {"step": self.best, "score": scores[self.steps.index(self.best)]}
        return {**chosen, "steps": list(self.steps), "scores": scores}


def search(score: Callable[[NDArray], NDArray], steps: Sequence[float], refine: int) -> Search:
    """Minimise `score` over a positive step size.

    Parameters
    ----------
    score : callable
        Maps steps (G,) to scores (G,), lower is better, infinite for a run that diverged.
    steps : sequence of float
        The coarse grid. While the best point lies at its edge it is extended, geometrically, by its
        mean spacing.
    refine : int
        Times that the best point's log-distance to its neighbours is halved.
    """
    [found] = _side_by_side([_searching(steps, refine)], lambda asked: [score(points) for _, points in asked])
    return found


def _searching(steps: Sequence[float], refine: int) -> Generator[NDArray, NDArray, Search]:
    """A search that yields the points that it wants to know the scores of."""
    found: dict[float, float] = {}

    def try_out(points: Sequence[float]) -> Generator[NDArray, NDArray, None]:
        # Rounded, so that a step can be written down and read back as the same number.
        new = sorted({float(f"{point:.4g}") for point in points} - set(found))
        if new:
            scores = yield np.array(new)
            found.update(zip(new, np.asarray(scores, float).tolist(), strict=True))

    def ranked() -> tuple[list[float], int]:
        grid = sorted(found)
        values = [found[step] for step in grid]
        return grid, int(np.argmin(values))

    yield from try_out(steps)
    ratio = max((max(steps) / min(steps)) ** (1 / max(len(set(steps)) - 1, 1)), 2.0)
    for _ in range(_MOST_EXTENSIONS):
        grid, best = ranked()
        if best == 0:  # so it is, too, where every step failed
            yield from try_out([grid[0] / ratio**k for k in (1, 2, 3)])
        elif best == len(grid) - 1:
            yield from try_out([grid[-1] * ratio**k for k in (1, 2, 3)])
        else:
            break
    grid, best = ranked()
    if not np.isfinite(found[grid[best]]):
        raise ReplifedError(f"every step from {grid[0]:g} to {grid[-1]:g} diverged")
    for _ in range(refine):
        grid, best = ranked()
        near = grid[max(best - 1, 0) : best + 2]
        yield from try_out([np.sqrt(a * b) for a, b in pairwise(near)])
    grid, best = ranked()
    return Search(grid[best], tuple(grid), tuple(found[step] for step in grid))


def _side_by_side(
    searches: Sequence[Generator[NDArray, NDArray, Search]],
    score: Callable[[list[tuple[int, NDArray]]], list[NDArray]],
) -> list[Search]:
    """Advance searches together: `score` maps what some of them ask, by number, to what each is told."""
    outcomes: list[Any] = [None] * len(searches)
    answers: list[tuple[int, Any]] = [(number, None) for number in range(len(searches))]
    while answers:
        asked = []
        for number, answer in answers:
            try:
                asked.append((number, searches[number].send(answer)))
            except StopIteration as end:
                outcomes[number] = end.value
        told = score(asked) if asked else []
        answers = [(number, scores) for (number, _), scores in zip(asked, told, strict=True)]
    return outcomes


def tune_step(
    make: Callable[[NDArray], Algorithm],
    problems: Sequence[tuple[int, Any]],
    seed: int,
    rounds: int,
    steps: Sequence[float],
    refine: int,
    tail: float = 0.0,
) -> Search:
    """Search the step size by the objective at the end of `rounds` rounds, averaged over data sets.

    Parameters
    ----------
    make : callable
        Builds the algorithm for an array of steps (G,); all are run side by side.
    problems : sequence of (replicate, problem)
        With data shared by all rows.
    seed : int
        The experiment's seed.
    rounds : int
    steps, refine
        See `search`.
    tail : float
        Share of the rounds, at the end, over which the objective is averaged. With zero it is the last
        round's alone, and a step with which the objective leaps about may win by a lucky last round.
    """
    [found] = tune_steps(lambda _, step: make(step), [1], problems, seed, rounds, steps, refine, tail)
    return found


def tune_steps(
    make: Callable[[NDArray, NDArray], Algorithm],
    local_steps: Sequence[int],
    problems: Sequence[tuple[int, Any]],
    seed: int,
    rounds: int,
    steps: Sequence[float],
    refine: int,
    tail: float = 0.0,
) -> list[Search]:
    """Search the step size for each number of local steps K, all of them side by side.

    Parameters
    ----------
    make : callable
        Builds the algorithm for arrays of K and steps (G,), the largest K first.
    local_steps : sequence of int
        Numbers of local steps.
    problems, seed, rounds, steps, refine, tail
        See `tune_step`.

    Returns
    -------
    list of Search, in the order of `local_steps`
    """

    def score(asked: list[tuple[int, NDArray]]) -> list[NDArray]:
        asked_of = np.repeat([number for number, _ in asked], [len(points) for _, points in asked])
        points = np.concatenate([points for _, points in asked])
        K = np.asarray(local_steps)[asked_of]
        order = np.argsort(-K, kind="stable")
        total = np.zeros(len(points))
        for replicate, problem in problems:
            total[order] += _final_objectives(
                lambda rows: make(K[order[rows]], points[order[rows]]),
                problem,
                Streams(seed, (replicate,)),
                rounds,
                len(points),
                max(round(tail * rounds), 1),
            )
        return [total[asked_of == number] / len(problems) for number, _ in asked]

    return _side_by_side([_searching(steps, refine) for _ in local_steps], score)


def _final_objectives(
    make: Callable[[NDArray], Algorithm],
    problem: Any,
    streams: Streams,
    rounds: int,
    count: int,
    last: int,
) -> NDArray:
    """Objective of `count` rows over the `last` of `rounds` rounds, infinite for those that diverge.

    Most steps of a coarse grid diverge in their first rounds, or rise; those are dropped early.
    """
    final = np.full(count, np.inf)
    alive = np.arange(count)
    start, risen = None, np.zeros(count, bool)
    resume = None
    scored = rounds - last if last > 1 else rounds
    for stop in sorted({stage for stage in _STAGES if stage < scored} | {scored, rounds} - {0}):
        rows = replace(streams, replicates=streams.replicates * len(alive))
        begin = 0 if resume is None else resume[0]
        every = max(last // _RECORDED, 1) if begin >= scored else stop - begin
        history = simulate(make(alive), problem, rows, stop, record_every=every, resume=resume)
        objective = history.metrics["objective"]
        start = objective[0] if start is None else start
        left, final[alive] = ~history.diverged[-1], objective[-1]  # infinite for those that have diverged
        if stop < scored:
            high = objective[-1] > _HOPELESS * start
            left &= ~(high & risen)
            start, risen = start[left], high[left]
        alive = alive[left]
        if not alive.size:
            return final
        resume = stop, history.take(left).state
    final[alive] = objective[history.rounds > rounds - last][:, left].mean(axis=0)
    return final
