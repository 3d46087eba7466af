"""The paper's data sets, runs on them, the convergence rates that they show, and searches by these rates.

Two kinds of search. `common` finds one choice for all data sets, by their mean rate. `each` finds one for
every data set, by that set's rate alone; these searches advance side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.engine.simulate import History, Metric, simulate
from replifed.engine.tune import Ask, Grid, Search, Spent, as_array, search, searching, side_by_side
from replifed.network.participation import FixedSize
from replifed.papers.fedplt.methods import Cell, Moduli, Values, build, times
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams, generator

if TYPE_CHECKING:
    from replifed.papers.fedplt.settings import Regression

# The rate is fitted where errors have come down to the first and not yet to the second, relative to round 0:
# after the transient, before rounding.
WINDOW = (1e-2, 1e-10)
# Errors that have grown so much do not come back.
_LOST = 1e4
_FEWEST = 8
# Rounds after which a grid drops the points that are done on all data sets.
_STAGE = 25


def regression(settings: Regression) -> DenseLinearModel:
    """Logistic regression on a random data set for each repetition, with an intercept in the first column."""
    S, N, m, d = len(settings.replicates), settings.agents, settings.samples, settings.features
    draw = {"planted": _planted, "classification": _classification}[settings.data]
    X, y = np.ones((S, N, m, d + 1)), np.empty((S, N, m))
    for row, replicate in enumerate(settings.replicates):
        features, labels = draw(generator(settings.seed, replicate, None, "data"), N * m, d)
        X[row, :, :, 1:], y[row] = features.reshape(N, m, d), labels.reshape(N, m)
    return DenseLinearModel(X, y, Logistic(), l2=settings.ridge, summed=settings.loss == "sum")


def _planted(rng: np.random.Generator, samples: int, d: int) -> tuple[NDArray, NDArray]:
    """Features ~ N(0, 1) and labels ~ Bernoulli(sigmoid(<a, w>)) with w ~ N(0, I), no intercept."""
    X, w = rng.standard_normal((samples, d)), rng.standard_normal(d)
    chance = 1.0 / (1.0 + np.exp(-X @ w))
    return X, np.where(rng.random(samples) < chance, 1.0, -1.0)


def _classification(rng: np.random.Generator, samples: int, d: int) -> tuple[NDArray, NDArray]:
    """scikit-learn's generator with informative features only."""
    from sklearn.datasets import make_classification

    seed = int(rng.integers(2**31))
    X, label = make_classification(samples, d, n_redundant=0, n_clusters_per_class=1, random_state=seed)
    return X, 2.0 * label - 1.0


class Trial:
    """Runs on S data sets (`regression`), a grid of G settings on each.

    Attributes
    ----------
    rounds : a run has at most so many.
    moduli, solution : of each data set.
    spent : what the runs have used so far, each up to the stage in which it ends.
    """

    def __init__(self, settings: Regression) -> None:
        self.seed, self.replicates, self.rounds = settings.seed, settings.replicates, settings.rounds
        self.problem = regression(settings)
        self.moduli = Moduli(*self.problem.common_mu_L())
        self.solution = minimiser(self.problem, len(self.replicates))
        self.spent = Spent()

    def simulate(self, algorithm: Any, repeats: int = 1, **options: Any) -> History:
        """Run an algorithm, so many runs on each data set; see `simulate.simulate`."""
        names = tuple(np.repeat(self.replicates, repeats).tolist())
        return simulate(algorithm, self.problem, Streams(self.seed, names), self.rounds, **options)

    def rates(self, cell: Cell, base: Values, multiples: NDArray, wanted: NDArray | None = None) -> NDArray:
        """Rates (S, G) at multiples (S or 1, G, P) of the parameters `base`, each of shape (S,)."""
        values = times({name: one[:, None] for name, one in base.items()}, multiples)
        return rate(self.errors(cell, values, wanted=wanted))

    def errors(
        self, cell: Cell, values: Values, target: float = WINDOW[1], wanted: NDArray | None = None
    ) -> NDArray:
        """Relative errors (T, S, G) of a cell with parameters (S, G); see `traces`."""

        def make(points: NDArray, sets: NDArray) -> Any:
            moduli = Moduli(*(np.repeat(modulus[sets], len(points)) for modulus in self.moduli))
            return build(cell, moduli, {name: v[sets][:, points].ravel() for name, v in values.items()})

        count = next(iter(values.values())).shape[1] if values else 1
        cohort = None if cell.everyone else FixedSize(cell.cohort)
        return self.traces(make, count, target=target, cohort=cohort, wanted=wanted)

    def settled_errors(self, cell: Cell, values: Values, within: float) -> NDArray:
        """The same, of four times as many rounds each time until all rates have settled.

        A rate has settled if its run came to the target or diverged, or if half of the rounds give the same
        rate, `within` so much. All must at once: a single slow curve may look straight before it bends.
        """
        while True:
            errors = self.errors(cell, values)
            over = (np.nanmin(errors, axis=0) <= WINDOW[1]) | np.isinf(errors).any(axis=0)
            change = rate(errors[:, ~over]) - rate(errors[: len(errors) // 2 + 1, ~over])
            if (np.abs(change) < within).all():
                return errors
            self.rounds *= 4

    def traces(
        self,
        make: Callable[[NDArray, NDArray], Any],
        points: int,
        *,
        target: float = WINDOW[1],
        cohort: Any = None,
        wanted: NDArray | None = None,
    ) -> NDArray:
        """Errors over the rounds, relative to round 0.

        Parameters
        ----------
        make : callable
            Maps numbers of grid points (g,) and of data sets (s,) to the algorithm for these, with a run for
            each data set and, within it, each point.
        points : G, the size of the grid.
        target : a run ends where its error has come down to this.
        cohort : see `simulate`.
        wanted : bool array, shape (S, G), optional
            Which runs are asked for, all by default.

        Returns
        -------
        array, shape (T, S, G)
            NaN after the end and for runs that are not wanted, infinite where a run has diverged.
        """
        wanted = np.ones((len(self.replicates), points), bool) if wanted is None else wanted
        asked = np.asarray(wanted.any(axis=1))
        sets, left = np.flatnonzero(asked), np.flatnonzero(wanted.any(axis=0))
        problem = self.problem if asked.all() else self.problem.with_runs(asked)
        metrics = {"error": relative_error(self.solution[sets])}
        errors = np.full((self.rounds + 1, *wanted.shape), np.nan)
        over = ~wanted  # runs that are not wanted, or have come to their end, one way or the other
        begin, resume = 0, None
        self.spent.runs += int(wanted.sum())
        while begin < self.rounds and left.size:
            names = np.repeat(np.take(self.replicates, sets), len(left)).tolist()
            ran = np.ix_(sets, left)
            ended = over[ran]

            def finished(seen: dict[str, NDArray], ended: NDArray = ended) -> NDArray:
                return (seen["error"] <= target) | (seen["error"] > _LOST) | ended.ravel()

            history = simulate(
                make(left, sets),
                problem,
                Streams(self.seed, tuple(names)),
                min(begin + _STAGE, self.rounds) if points > 1 else self.rounds,
                metrics=metrics,
                cohort=cohort,
                until=finished,
                resume=resume,
            )
            last = int(history.rounds[-1])
            bits = history.ledger["bits_up"][-1] + history.ledger["bits_down"][-1]
            self.spent.bits += float(bits[~ended.ravel()].sum())
            self.spent.rounds += int((~ended).sum()) * (last - begin)
            error = history.metrics["error"].reshape(-1, *ended.shape)
            lost = np.logical_or.accumulate(~(error <= _LOST), axis=0)
            error = np.where(lost, np.inf, error)
            # What came to its end in an earlier stage has no more to say.
            held = ended & (history.rounds > begin)[:, None, None]
            errors[np.ix_(history.rounds, sets, left)] = np.where(held, errors[begin][ran], error)
            over[ran] |= lost[-1] | (error[-1] <= target)
            going = ~over[ran].all(axis=0)
            resume = last, history.take(np.tile(going, len(sets))).state
            begin, left = last, left[going]
        errors[:, ~wanted] = np.nan
        return errors[~np.isnan(errors).all(axis=(1, 2))]


def relative_error(solution: NDArray) -> Metric:
    """|X - 1 (x) x_bar| / |1 (x) x_bar| of the agents' models, or of the server's where these are alone kept.

    So it is one at round 0, as all methods begin at zero. A run repeats each row of `solution` (S, D).
    """

    def metric(_: Any, seen: dict[str, NDArray]) -> NDArray:
        x = seen.get("clients", seen["server"][:, None])
        x_bar = np.repeat(solution, len(x) // len(solution), axis=0)
        target = np.repeat(x_bar[:, None], x.shape[1], axis=1)
        return np.linalg.norm(x - target, axis=(1, 2)) / np.linalg.norm(target, axis=(1, 2))

    return metric


def rate(errors: NDArray) -> NDArray:
    """Factor by which errors shrink each round: exp of the least-squares slope of their logarithm.

    The fit takes rounds in `WINDOW`; of a run too slow to show enough of them the last half of its rounds,
    and of one that passes it within a round or two all up to its end.

    Parameters
    ----------
    errors : array, shape (T, ...)
        Relative to round 0; NaN where a run has ended.

    Returns
    -------
    array, shape (...)
        Infinite for runs that diverged.
    """
    high, low = WINDOW
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(errors)
        inside = (errors < high) & (errors > low)
    recorded = np.isfinite(logs)
    t = np.arange(len(errors)).reshape(-1, *(1,) * (errors.ndim - 1))
    length = recorded.sum(axis=0)
    passed = np.logical_or.accumulate(errors <= low, axis=0)
    slow = ~passed.any(axis=0) & (inside.sum(axis=0) < _FEWEST) & (length >= 2 * _FEWEST)
    fast = passed.any(axis=0) & (inside.sum(axis=0) < 3)
    used = np.where(slow, recorded & (t >= length // 2), inside & recorded)
    used |= fast & recorded & (t <= (~passed).sum(axis=0))
    t, logs = (np.ma.array(np.broadcast_to(v, errors.shape), mask=~used) for v in (t, logs))
    t, logs = t - t.mean(axis=0), logs - logs.mean(axis=0)
    slope = (logs * t).sum(axis=0) / (t**2).sum(axis=0)
    return np.where(np.isinf(errors).any(axis=0), np.inf, np.exp(slope).filled(np.inf))


def around(centre: NDArray, ratio: float, reach: int, **more: Any) -> Grid:
    """A grid of `reach` points, by factors of `ratio`, on each side of the multiples `centre`."""
    axes = np.outer(centre, float(ratio) ** np.arange(-reach, reach + 1))
    return Grid(tuple(map(tuple, axes.tolist())), **more)


def common(trial: Trial, cell: Cell, base: Values, grid: Grid) -> Search:
    """Find the multiples of `base` with the least mean rate over all data sets."""

    def score(points: NDArray) -> NDArray:
        return trial.rates(cell, base, points.reshape(1, len(points), -1)).mean(axis=0)

    return search(score, grid)


def each(trial: Trial, cell: Cell, base: Values, grid: Grid) -> list[Search]:
    """Find every data set's multiples of `base` with the least rate on it."""
    S = len(trial.replicates)

    def answer(asked: list[tuple[int, Ask]]) -> list[NDArray]:
        most = max(len(points) for _, (_, points) in asked)
        multiples, wanted = np.ones((S, most, len(base))), np.zeros((S, most), bool)
        for number, (_, points) in asked:
            multiples[number, : len(points)] = as_array(points).reshape(len(points), -1)
            wanted[number, : len(points)] = True
        found = trial.rates(cell, base, multiples, wanted)
        return [found[number, : len(points)] for number, (_, points) in asked]

    return side_by_side([searching(grid) for _ in range(S)], answer)
