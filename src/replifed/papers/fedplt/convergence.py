"""Errors over the rounds, and the convergence rates that they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.network.participation import Participation
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams
from replifed.simulate import Metric, simulate
from replifed.tune import Spent

# The rate is fitted where errors have come down to the first and not yet to the second, relative to round 0:
# after the transient, before rounding.
WINDOW = (1e-2, 1e-10)
# Errors that have grown so much do not come back.
_LOST = 1e4
_FEWEST = 8
# Rounds after which a grid drops the points that are done on all data sets.
_STAGE = 25
# So many rows fit the cache; more are run one group of data sets after the other.
_MOST_ROWS = 1500


@dataclass
class Costs:
    """What runs have used on each data set: their number, rounds, and traffic in bits, both ways together.

    Attributes
    ----------
    runs, rounds : int array, shape (S,)
    bits : array, shape (S,)
    """

    runs: NDArray
    rounds: NDArray
    bits: NDArray

    @classmethod
    def none(cls, sets: int) -> Costs:
        """Nothing used yet."""
        return cls(np.zeros(sets, int), np.zeros(sets, int), np.zeros(sets))

    def total(self) -> Spent:
        """Over all data sets."""
        return Spent(int(self.runs.sum()), int(self.rounds.sum()), float(self.bits.sum()))


def consensus_error(solution: NDArray) -> Metric:
    """|X - 1 (x) x_bar| of the stacked agents' models, or of the server's where agents hold only that.

    `solution` (S, D) may have fewer rows than the run, which then repeats each of them.
    """

    def metric(_: Any, seen: dict[str, NDArray]) -> NDArray:
        x = seen.get("clients", seen["server"][:, None])
        target = np.repeat(solution, len(x) // len(solution), axis=0)
        return np.linalg.norm(x - target[:, None], axis=(1, 2))

    return metric


def traces(
    make: Callable[[NDArray, NDArray], Any],
    problem: Any,
    seed: int,
    replicates: tuple[int, ...],
    points: int,
    rounds: int,
    *,
    target: float = WINDOW[1],
    cohort: Callable[[Streams, int], Participation] | None = None,
    wanted: NDArray | None = None,
    solution: NDArray | None = None,
    costs: Costs | None = None,
) -> NDArray:
    """Relative errors of a grid of settings, each run on every data set.

    Parameters
    ----------
    make : callable
        Maps numbers of grid points (g,) and of data sets (s,) to the algorithm for these, with a row for each
        data set and, within it, each point.
    problem : DenseLinearModel
        With S data sets.
    seed : int
    replicates : tuple of int, length S
    points : int
        G, the size of the grid.
    rounds : int
        At most so many.
    target : float
        A run ends where its error has come down to this.
    cohort : callable, optional
        See `simulate`.
    wanted : bool array, shape (S, G), optional
        Which runs are asked for, all by default.
    solution : array, shape (S, D), optional
        Minimisers, where they are at hand.
    costs : Costs, optional
        The runs are added to it, each up to the stage in which it ends.

    Returns
    -------
    array, shape (T, S, G)
        Error over error at round 0; NaN after the end, infinite where a run has diverged.
    """
    S = len(replicates)
    wanted = np.ones((S, points), bool) if wanted is None else wanted
    solution = minimiser(problem, S) if solution is None else solution
    errors = np.full((rounds + 1, S, points), np.nan)
    for part in _parts(wanted.sum(axis=1)):
        data = problem.with_runs(np.isin(np.arange(S), part)) if len(part) < S else problem
        names = tuple(replicates[number] for number in part)
        asked, spent = wanted[part], Costs.none(len(part))
        errors[:, part] = _grid(
            lambda chosen, part=part: make(chosen, part),
            data,
            solution[part],
            seed,
            names,
            asked,
            rounds,
            target,
            cohort,
            spent,
        )
        if costs is not None:
            costs.runs[part] += spent.runs
            costs.rounds[part] += spent.rounds
            costs.bits[part] += spent.bits
    used = ~np.isnan(errors).all(axis=(1, 2))
    return errors[used]


def _parts(counts: NDArray) -> list[NDArray]:
    """Groups of data sets that are run together: those of which about as many runs are asked for."""
    order = np.argsort(-counts, kind="stable")
    order, parts = order[counts[order] > 0], []
    while order.size:
        size = max(1, _MOST_ROWS // counts[order[0]])
        parts.append(np.sort(order[:size]))
        order = order[size:]
    return parts


def _grid(make, problem, solution, seed, replicates, wanted, rounds, target, cohort, spent) -> NDArray:
    """See `traces`, for data sets that fit the cache."""
    S, points = wanted.shape
    errors = np.full((rounds + 1, S, points), np.nan)
    over = ~wanted  # runs that are not wanted, or have come to their end, one way or the other
    left, state, begin = np.flatnonzero(wanted.any(axis=0)), None, 0
    metric = consensus_error(solution)
    everything = Streams(seed, tuple(np.repeat(replicates, len(left)).tolist()))
    algorithm = make(left)
    start = metric(problem, algorithm.observe(algorithm.init(problem, everything)))
    spent.runs += wanted.sum(axis=1)
    while begin < rounds and left.size:
        end = min(begin + _STAGE, rounds) if points > 1 else rounds
        rows = Streams(seed, tuple(np.repeat(replicates, len(left)).tolist()))
        ended = over[:, left]

        def finished(values: dict[str, NDArray], ended: NDArray = ended, start: NDArray = start) -> NDArray:
            error = values["error"] / start
            return (error <= target) | (error > _LOST) | ended.ravel()

        history = simulate(
            make(left),
            problem,
            rows,
            end,
            metrics={"error": metric},
            cohort=cohort,
            until=finished,
            resume=None if state is None else (begin, state),
        )
        shape = (S, len(left))
        bits = (history.ledger["bits_up"][-1] + history.ledger["bits_down"][-1]).reshape(shape)
        spent.rounds += (~ended).sum(axis=1) * int(history.rounds[-1] - begin)
        spent.bits += (bits * ~ended).sum(axis=1)
        relative = (history.metrics["error"] / start).reshape(-1, *shape)
        lost = np.logical_or.accumulate(~(relative <= _LOST), axis=0)
        relative = np.where(lost, np.inf, relative)
        ran = np.ix_(history.rounds, np.arange(S), left)
        # What came to its end in an earlier stage has no more to say.
        errors[ran] = np.where(
            ended & (history.rounds > begin)[:, None, None], errors[begin][:, left], relative
        )
        over[:, left] |= lost[-1] | (relative[-1] <= target)
        keep = ~over[:, left].all(axis=0)
        begin = int(history.rounds[-1])
        start = start.reshape(shape)[:, keep].ravel()
        state = type(history.state)(
            *(
                field.reshape(*shape, *field.shape[1:])[:, keep].reshape(-1, *field.shape[1:])
                for field in history.state
            )
        )
        left = left[keep]
        if begin < end:
            break
    errors[:, ~wanted] = np.nan
    return errors


def rate(errors: NDArray, window: tuple[float, float] = WINDOW) -> NDArray:
    """Factor by which errors shrink each round: exp of the least-squares slope of their logarithm.

    Parameters
    ----------
    errors : array, shape (T, ...)
        Relative to round 0; NaN where a run has ended.
    window : (float, float)
        The fit takes rounds with errors between the two. A run too slow to show enough of them is fitted on
        the last half of its rounds.

    Returns
    -------
    array, shape (...)
        Infinite for runs that diverged.
    """
    high, low = window
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(errors)
        inside = (errors < high) & (errors > low)
    recorded = np.isfinite(logs)
    t = np.arange(len(errors)).reshape(-1, *(1,) * (errors.ndim - 1))
    length = recorded.sum(axis=0)
    slow = (inside.sum(axis=0) < _FEWEST) & (length >= 2 * _FEWEST)
    used = np.where(slow, recorded & (t >= length // 2), inside & recorded)
    count = np.maximum(used.sum(axis=0), 1)
    centre = (used * t).sum(axis=0) / count
    level = np.where(used, logs, 0.0).sum(axis=0) / count
    spread = (used * (t - centre) ** 2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (np.where(used, logs - level, 0.0) * (t - centre)).sum(axis=0) / spread
    return np.where(np.isinf(errors).any(axis=0) | ~np.isfinite(slope), np.inf, np.exp(slope))
