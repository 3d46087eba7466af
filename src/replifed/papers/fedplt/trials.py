"""The paper's data sets, runs on them, their convergence rates, and searches by these rates.

`common` selects parameters for all data sets, by their mean rate. `each` selects those of every data set, by
that set's rate alone; these searches advance side by side.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.engine.perturbed import of_runs
from replifed.engine.search import Grid, Search, search, search_each
from replifed.engine.simulate import History, Metric, simulate
from replifed.engine.trials import Spent
from replifed.network.participation import FixedSize
from replifed.papers.fedplt.methods import Cell, Moduli, Values, build, times
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams, generator

if TYPE_CHECKING:
    from replifed.papers.fedplt.settings import Regression
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

from replifed.algorithms.fedplt import FedPLT, FedPLTState
from replifed.network.ledger import dense_bits
from replifed.papers.fedplt.methods import SOLVERS, theory
from replifed.progress import Progress

if TYPE_CHECKING:
    from replifed.papers.fedplt import settings as of

# The rate is fitted to errors between these, relative to round 0: after the transient, before rounding.
WINDOW = (1e-2, 1e-10)
# Factor by which the error of a diverged run has grown.
_LOST = 1e4
# Minimum number of rounds in the window for a fit.
_MINIMUM = 8
# Rounds after which a grid drops the points whose runs have ended on all data sets.
_STAGE = 25
# Distance of the points between which a round is taken as linear, to find its worst direction.
_NEAR = 1e-6


def regression(settings: Regression, intercept: float = 1.0) -> DenseLinearModel:
    """Logistic regression on a random data set for each repetition, with `intercept` in the first column."""
    S, N, m, d = len(settings.replicates), settings.agents, settings.samples, settings.features
    draw = {"planted": _planted, "classification": _classification}[settings.data]
    X, y = np.full((S, N, m, d + 1), intercept), np.empty((S, N, m))
    for row, replicate in enumerate(settings.replicates):
        features, labels = draw(generator(settings.seed, replicate, None, "data"), N * m, d)
        X[row, :, :, 1:], y[row] = features.reshape(N, m, d), labels.reshape(N, m)
    return DenseLinearModel(X, y, Logistic(), l2=settings.ridge, summed=settings.loss == "sum")


def free_intercept_minimiser(settings: Regression) -> NDArray:
    """Minimisers (S, D) with next to no ridge on the intercept, as most packages fit it.

    In a column of 1000 the intercept is a thousandth of what it is in one of 1, and its ridge a millionth.
    """
    column = 1000.0
    x = minimiser(regression(settings, column), len(settings.replicates))
    x[:, 0] *= column
    return x


def _planted(rng: np.random.Generator, samples: int, d: int) -> tuple[NDArray, NDArray]:
    """Features ~ N(0, 1) and labels ~ Bernoulli(sigmoid(<a, w>)) with w ~ N(0, I), no intercept."""
    X, w = rng.standard_normal((samples, d)), rng.standard_normal(d)
    chance = 1.0 / (1.0 + np.exp(-X @ w))
    return X, np.where(rng.random(samples) < chance, 1.0, -1.0)


def _classification(rng: np.random.Generator, samples: int, d: int) -> tuple[NDArray, NDArray]:
    """scikit-learn's generator, one cluster a class: two features are informative, all others are noise."""
    from sklearn.datasets import make_classification

    seed = int(rng.integers(2**31))
    X, label = make_classification(samples, d, n_redundant=0, n_clusters_per_class=1, random_state=seed)
    return X, 2.0 * label - 1.0


class Trial:
    """Runs on S data sets (`regression`), of a grid of G settings on each.

    Attributes
    ----------
    rounds : maximum number of rounds of a run.
    moduli, solution : mu and L, and the minimiser, of each data set.
    spent : cost of the runs so far, each up to the stage in which it ends.
    """

    def __init__(self, settings: Regression) -> None:
        self.seed, self.replicates, self.rounds = settings.seed, settings.replicates, settings.rounds
        self.problem = regression(settings)
        self.moduli = Moduli(*self.problem.common_mu_L())
        self.solution = minimiser(self.problem, len(self.replicates))
        self.spent = Spent()

    def simulate(self, algorithm: Any, repeats: int = 1, **options: Any) -> History:
        """Simulate an algorithm of `repeats` runs on each data set, with `options` of `simulate`."""
        names = tuple(np.repeat(self.replicates, repeats).tolist())
        return simulate(algorithm, self.problem, Streams(self.seed, names), self.rounds, **options)

    def rates(self, cell: Cell, base: Values, multiples: NDArray) -> NDArray:
        """Rates (S, G) at multiples (S or 1, G, P) of the parameters `base`, each of shape (S,)."""
        columns = {name: values[:, None] for name, values in base.items()}
        return rate(self.errors(cell, times(columns, multiples)))

    def errors(self, cell: Cell, values: Values, target: float = WINDOW[1]) -> NDArray:
        """Relative errors (T, S, G) of a cell with parameters (S, G), NaN for no run; see `traces`."""
        first = next(iter(values.values()), np.zeros((len(self.replicates), 1)))
        wanted = ~np.isnan(first)
        moduli = Moduli(*(np.repeat(modulus, first.shape[1]) for modulus in self.moduli))
        known = {name: np.where(wanted, value, value[wanted][0]).ravel() for name, value in values.items()}
        cohort = None if cell.everyone else FixedSize(cell.cohort)
        algorithm = build(cell, moduli, known)
        return self.traces(algorithm, wanted, target=target, cohort=cohort)

    def settled_errors(self, cell: Cell, values: Values, within: float) -> NDArray:
        """Relative errors as in `errors`, of four times as many rounds each time until all rates settle.

        A rate has settled if its run reached the target or diverged, or if half of the rounds give the same
        rate up to `within`. All must at once: a single slow curve may look straight before it bends.
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
        algorithm: Any,
        wanted: NDArray | None = None,
        *,
        target: float = WINDOW[1],
        cohort: Any = None,
    ) -> NDArray:
        """Errors over the rounds, relative to round 0.

        Parameters
        ----------
        algorithm : Algorithm
            Of G runs on each of the S data sets, those of a data set in turn.
        wanted : bool array, shape (S, G), optional
            Mask of the requested runs; one on each data set by default.
        target : float
            A run ends where its error has fallen to this.
        cohort : as in `simulate`

        Returns
        -------
        array, shape (T, S, G)
            NaN after the end and for runs that are not requested, infinite where a run has diverged.
        """
        running = np.ones((len(self.replicates), 1), bool) if wanted is None else wanted.copy()
        number = np.arange(running.size).reshape(running.shape)
        used = np.asarray(running.any(axis=1))
        sets, problem = np.flatnonzero(used), self.problem if used.all() else self.problem.with_runs(used)
        errors = np.full((self.rounds + 1, *running.shape), np.nan)
        begin, resume = 0, None
        while begin < self.rounds and running.any():
            # All data sets run the same points: those that go on on any of them.
            points = np.flatnonzero(running.any(axis=0))
            block = np.ix_(sets, points)
            active = running[block]

            def ended(seen: dict[str, NDArray], active: NDArray = active) -> NDArray:
                return ~active.ravel() | (seen["error"] <= target) | (seen["error"] > _LOST)

            history = simulate(
                of_runs(algorithm, number[block].ravel()),
                problem,
                Streams(self.seed, tuple(np.repeat(np.take(self.replicates, sets), len(points)).tolist())),
                min(begin + _STAGE, self.rounds) if running.shape[1] > 1 else self.rounds,
                metrics={"error": relative_error(self.solution[sets])},
                cohort=cohort,
                until=ended,
                resume=resume,
            )
            self.spent.add(history.take(active.ravel()), started=begin == 0)
            error = history.metrics["error"].reshape(-1, *active.shape)
            error[np.logical_or.accumulate(~(error <= _LOST), axis=0)] = np.inf
            # A run that ended in an earlier stage keeps its error while its point goes on elsewhere.
            errors[np.ix_(history.rounds, sets, points)] = np.where(active, error, errors[begin][block])
            running[block] &= (error[-1] > target) & np.isfinite(error[-1])
            begin = int(history.rounds[-1])
            resume = begin, history.take(np.tile(running[block].any(axis=0), len(sets))).state
        return errors[~np.isnan(errors).all(axis=(1, 2))]


def relative_error(solution: NDArray) -> Metric:
    """|X - 1 (x) x_bar| / |1 (x) x_bar| of the agents' models, or of the server's if there are no others.

    It is one at round 0, as all methods begin at zero. Each row of `solution` (S, D) is that of R / S runs.
    """

    @cache
    def target(runs: int, agents: int) -> tuple[NDArray, NDArray]:
        x_bar = np.repeat(solution, runs // len(solution), axis=0)
        x_bar = np.repeat(x_bar[:, None], agents, axis=1)
        return x_bar, np.linalg.norm(x_bar, axis=(1, 2))

    def metric(_: Any, seen: dict[str, NDArray]) -> NDArray:
        x = seen.get("clients", seen["server"][:, None])
        x_bar, size = target(*x.shape[:2])
        return np.linalg.norm(x - x_bar, axis=(1, 2)) / size

    return metric


def rate(errors: NDArray) -> NDArray:
    """Factor by which errors shrink each round: exp of the least-squares slope of their logarithm.

    The fit takes rounds in `WINDOW`; if a run is too slow to have enough of them, the last half of its
    rounds, and if it passes the window within a round or two, all up to its end.

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
    slow = ~passed.any(axis=0) & (inside.sum(axis=0) < _MINIMUM) & (length >= 2 * _MINIMUM)
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
    """Find the multiples of `base` with the lowest mean rate over all data sets."""

    def score(points: NDArray) -> NDArray:
        return trial.rates(cell, base, points.reshape(1, len(points), -1)).mean(axis=0)

    return search(score, grid)


def each(trial: Trial, cell: Cell, base: Values, grid: Grid) -> list[Search]:
    """Find every data set's multiples of `base` with the lowest rate on it."""
    S = len(trial.replicates)

    def score(sets: NDArray, points: NDArray) -> NDArray:
        position = np.concatenate([np.arange(count) for count in np.bincount(sets)])
        multiples = np.full((S, position.max() + 1, len(base)), np.nan)
        multiples[sets, position] = points.reshape(len(points), -1)
        return trial.rates(cell, base, multiples)[sets, position]

    return search_each(score, [grid] * S)


def footprint(method: str, replicate: int) -> Iterator[dict[str, Any]]:
    """Memory, computation and communication of a method, counted on a few rounds of its code.

    each, shared : models that every agent and the coordinator keep between rounds; up, down : models that an
    agent sends and receives in a round; exchanges : round trips in which they wait for each other; fewest,
    most : gradients that an agent computes in a round; left : the error that one local step leaves.
    """
    data = {"seed": 0, "replicates": (0,), "data": "planted", "loss": "sum", "ridge": 0.5}
    drawn: Any = partial(SimpleNamespace, **data, agents=10, samples=4, features=2)
    trial, long = (Trial(drawn(rounds=rounds)) for rounds in (30, 1000))
    cell = Cell(method, "gradient", 3, 10, 10)
    algorithm = build(cell, trial.moduli, theory(cell, trial.moduli))
    counts = _count_gradients(trial.problem)
    history = trial.simulate(algorithm, metrics={"gradients": lambda *_: np.array([sum(counts)])})
    axes = [field.ndim for field in history.state]
    first = {name: total[1, 0] for name, total in history.ledger.items()}
    models = cell.agents * dense_bits(trial.problem.dim)
    gradients = np.diff(history.metrics["gradients"][:, 0])
    one_step = cell._replace(steps=1)
    values = {name: value[:, None] for name, value in theory(one_step, long.moduli).items()}
    yield {
        "each": axes.count(3),
        "shared": axes.count(2),
        "up": first["bits_up"] / models,
        "down": first["bits_down"] / models,
        "exchanges": int(first["exchanges"]),
        "fewest": int(gradients.min()),
        "most": int(gradients.max()),
        "left": np.nanmin(long.errors(one_step, values)),
        "replicate": [replicate],
    }


def _count_gradients(problem: Any) -> list[int]:
    """Make the problem record the number of gradients that each client computes, call by call."""
    counts: list[int] = []
    gradients, descent = problem.per_client_gradients, problem.per_client_descent

    def counted_gradients(*arguments: Any, **named: Any) -> NDArray:
        counts.append(1)
        return gradients(*arguments, **named)

    def counted_descent(models: NDArray, steps: int, *arguments: Any, **named: Any) -> NDArray:
        counts.append(steps)
        return descent(models, steps, *arguments, **named)

    problem.per_client_gradients, problem.per_client_descent = counted_gradients, counted_descent
    return counts


def worst(settings: of.Worst, progress: Progress) -> Iterator[dict[str, Any]]:
    """Yield the factor by which a round from that direction changes the distance to the fixed point.

    norm : the largest factor of the round's linearisation; factor : that of the round itself.
    """
    trial = Trial(settings.with_(rounds=1))
    x = np.repeat(trial.solution[:, None], settings.agents, axis=1)
    fixed = np.stack([x, x - settings.rho * trial.problem.per_client_gradients(x)], axis=1)  # (S, 2, N, D)
    low, high = trial.moduli
    plans = [(name, steps) for name in settings.solvers for steps in settings.epochs]
    for done, (name, steps) in enumerate(plans):
        progress(f"{name}, {steps} local steps", done, len(plans))
        method = FedPLT(rho=settings.rho, solver=SOLVERS[name](steps=steps))
        norm, direction = _steepest(trial, method, fixed)
        gap = settings.distance * direction[:, None]
        factor = np.linalg.norm(_after(trial, method, fixed, gap), axis=-1)[:, 0] / settings.distance
        labels = {"solver": name, "steps": steps, "mu": low, "L": high, "replicate": list(trial.replicates)}
        yield {**labels, "norm": norm, "factor": factor}


def _steepest(trial: Trial, method: FedPLT, fixed: NDArray) -> tuple[NDArray, NDArray]:
    """The norm (S,) of a round's derivative at the fixed point, and the unit direction (S, P) for it."""
    size = fixed[0].size
    gaps = np.broadcast_to(_NEAR * np.eye(size), (len(fixed), size, size))
    derivative = (_after(trial, method, fixed, gaps) - _after(trial, method, fixed, -gaps)) / (2 * _NEAR)
    _, growths, directions = np.linalg.svd(derivative.swapaxes(1, 2))
    return growths[:, 0], directions[:, 0]


def _after(trial: Trial, method: FedPLT, fixed: NDArray, gaps: NDArray) -> NDArray:
    """Differences (S, G, P) to the fixed point (S, 2, N, D) after a round from `gaps` (S, G, P) beside it."""
    count = gaps.shape[1]
    centre = np.repeat(fixed, count, axis=0)
    x, z = np.moveaxis(centre + gaps.reshape(centre.shape), 1, 0)
    state = FedPLTState(x, z, z.mean(axis=1))
    end = trial.simulate(method, count, metrics={}, resume=(0, state)).state
    return (np.stack([end.x, end.z], axis=1) - centre).reshape(gaps.shape)
