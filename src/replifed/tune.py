"""Step-size search: coarse to fine, the grid grown while its best point lies at an edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
# Rounds after which a search drops the steps that have diverged.
_STAGES = (1, 4, 12)
# Of the last rounds the objective is recorded about so often.
_RECORDED = 5


@dataclass(frozen=True)
class Search:
    """Outcome of a step-size search.

    Attributes
    ----------
    best : the step with the lowest score.
    steps, scores : all points tried, by increasing step; the score of a run that diverged is infinite.
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
    found: dict[float, float] = {}

    def try_out(points: Sequence[float]) -> None:
        # Rounded, so that a step can be written down and read back as the same number.
        new = sorted({float(f"{point:.4g}") for point in points} - set(found))
        if new:
            found.update(zip(new, np.asarray(score(np.array(new)), float).tolist(), strict=True))

    def ranked() -> tuple[list[float], int]:
        grid = sorted(found)
        values = [found[step] for step in grid]
        return grid, int(np.argmin(values))

    try_out(steps)
    ratio = max((max(steps) / min(steps)) ** (1 / max(len(set(steps)) - 1, 1)), 2.0)
    for _ in range(_MOST_EXTENSIONS):
        grid, best = ranked()
        if best == 0:  # so it is, too, where every step failed
            try_out([grid[0] / ratio**k for k in (1, 2, 3)])
        elif best == len(grid) - 1:
            try_out([grid[-1] * ratio**k for k in (1, 2, 3)])
        else:
            break
    grid, best = ranked()
    if not np.isfinite(found[grid[best]]):
        raise ReplifedError(f"every step from {grid[0]:g} to {grid[-1]:g} diverged")
    for _ in range(refine):
        grid, best = ranked()
        near = grid[max(best - 1, 0) : best + 2]
        try_out([np.sqrt(a * b) for a, b in pairwise(near)])
    grid, best = ranked()
    return Search(grid[best], tuple(grid), tuple(found[step] for step in grid))


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

    def score(points: NDArray) -> NDArray:
        total = np.zeros(len(points))
        for replicate, problem in problems:
            total += _final_objectives(
                make, problem, Streams(seed, (replicate,)), rounds, points, max(round(tail * rounds), 1)
            )
        return total / len(problems)

    return search(score, steps, refine)


def _final_objectives(
    make: Callable[[NDArray], Algorithm],
    problem: Any,
    streams: Streams,
    rounds: int,
    points: NDArray,
    last: int,
) -> NDArray:
    """Objective of each step over the `last` of `rounds` rounds, infinite for those that diverge.

    Most steps of a coarse grid diverge in their first rounds; those are dropped early.
    """
    final = np.full(len(points), np.inf)
    alive = np.arange(len(points))
    resume = None
    scored = rounds - last if last > 1 else rounds
    for stop in sorted({stage for stage in _STAGES if stage < scored} | {scored, rounds} - {0}):
        rows = replace(streams, replicates=streams.replicates * len(alive))
        begin = 0 if resume is None else resume[0]
        every = max(last // _RECORDED, 1) if begin >= scored else stop - begin
        history = simulate(make(points[alive]), problem, rows, stop, record_every=every, resume=resume)
        left = ~history.diverged[-1]
        alive = alive[left]
        if not alive.size:
            return final
        resume = stop, history.take(left).state
    final[alive] = history.metrics["objective"][history.rounds > rounds - last][:, left].mean(axis=0)
    return final
