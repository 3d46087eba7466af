"""Growth of communications with the condition number, and fall of Scaffnew's Lyapunov function.

All methods have the same freedoms: sqrt(kappa) local steps, on average, between two communications, as
Scaffnew's theorem prescribes, and one step size, searched on the same grid for each method and each ridge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.local_solvers import Gradient
from replifed.algorithms.registry import method_class
from replifed.algorithms.scaffnew import theory_rate
from replifed.engine.plans import Planned, execute, run_plan
from replifed.engine.search import Grid, search, with_margin
from replifed.engine.simulate import History, simulate
from replifed.engine.trials import Spent
from replifed.errors import ReplifedError
from replifed.papers.cross.problems import client_samples
from replifed.problems.clients import stacked
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.progress import Progress, silent
from replifed.randomness import Streams, generator

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.cross import settings as of

# Of the Lyapunov function: where rounding is still far below.
_FLOOR = 1e-16
# Of a history; the last three are Scaffnew's.
_COLUMNS = [
    *("l2", "kappa", "local_steps", "multiple", "replicate", "round", "reached", "iterations", "bits"),
    *("rate", "bound", "ratio"),
]


class Quadratic(DenseLinearModel):
    """Least squares whose gradient steps are taken at once, in the eigenbasis of each client's Hessian."""

    @cached_property
    def _spectra(self) -> tuple[NDArray, NDArray]:
        return np.linalg.eigh(self.client_hessians(np.zeros((len(self.X), self.dim))))

    @cached_property
    def _slopes(self) -> NDArray:
        """Gradient of each f_i at zero, (S, N, d)."""
        return self.client_gradients(np.zeros((len(self.X), self.dim)))

    def per_client_descent(
        self,
        u: NDArray,
        steps: int | NDArray,
        step: NDArray,
        *,
        ridge: float | NDArray = 0.0,
        linear: NDArray,
        momentum: NDArray | None = None,
    ) -> NDArray:
        """See `problems.base.PerClientModels`; w_k = w* + (I - gamma H)^k (w_0 - w*). Steps may be (R,)."""
        if momentum is not None:
            raise ReplifedError("steps at once are of gradient descent, without momentum")
        values, vectors = self._spectra
        values = values + np.reshape(ridge, (-1, 1, 1))
        start, slope = (np.matmul(a[..., None, :], vectors)[..., 0, :] for a in (u, self._slopes + linear))
        end = -slope / values
        powers = (1.0 - step * values) ** np.reshape(steps, (-1, 1, 1))
        return np.matmul(vectors, (end + powers * (start - end))[..., None])[..., 0]


class _AtOnce(Gradient):
    """Gradient steps, random numbers of them too, without a return to Python after each."""

    def solve(
        self, objective: Any, start: NDArray, drawn: NDArray | None, counts: NDArray | None = None
    ) -> NDArray:
        (step,) = self._constants(objective, len(start))
        if counts is None or isinstance(objective.problem, Quadratic):
            return objective.descent(start, self.steps if counts is None else counts, step)
        w, step, before = start.copy(), np.broadcast_to(step, (len(start), 1, 1)), 0
        for count in np.unique(counts):
            unfinished = counts >= count
            descent = objective.kept(unfinished).descent
            w[unfinished] = descent(w[unfinished], int(count - before), step[unfinished])
            before = count
        return w


def problem(
    settings: of.ManyRidges, l2: float, replicates: Sequence[int], table: Any, partition: Any
) -> DenseLinearModel:
    """The problem with the ridge `l2` of some repetitions, each with other data."""
    model: type[DenseLinearModel]
    if settings.problem == "planted_rates":
        clients = [_planted(settings, replicate) for replicate in replicates]
        model, loss = Quadratic, "least_squares"
    else:
        clients = [client_samples(settings, replicate, table, partition) for replicate in replicates]
        model, loss = DenseLinearModel, "logistic"
    X, y, sizes = stacked(clients)
    weights = np.full(sizes.shape, 1.0 / sizes.shape[1])
    return model(X, y, loss_named(loss), sizes=sizes, weights=weights, l2=l2)


def _planted(settings: of.PlantedRates, replicate: int) -> list:
    """Features and targets of each client, L_i = 1 without the ridge.

    Features scale from 1 to 1e-3, so that at each ridge some curvatures are as small as it is; a client has
    fewer samples than features, so that its loss is flat where those of others are steep.
    """
    rng = generator(settings.seed, replicate, None, "rates")
    d, m = settings.features, settings.samples
    x, scale = rng.standard_normal(d), np.logspace(0, -3, d)
    clients = []
    for _ in range(settings.clients):
        A = rng.standard_normal((m, d)) * scale
        A *= np.sqrt(m) / np.linalg.norm(A, 2)
        clients.append((A, A @ (x + settings.spread * rng.standard_normal(d))))
    return clients


def _method(name: str, step: NDArray, steps: int) -> Any:
    if name in ("scaffold", "scaffnew"):
        return method_class(name)(step=step, solver=_AtOnce(steps=steps))
    return method_class(name)(solver=_AtOnce(steps=steps, step=step))


class _Setting:
    """A problem with a ridge, its constants and its solution."""

    def __init__(
        self, settings: of.ManyRidges, l2: float, replicates: Sequence[int], table: Any, partition: Any
    ) -> None:
        self._settings, self.names = settings, tuple(replicates)
        self.data = problem(settings, l2, replicates, table, partition)
        mu, self.L = self.data.common_mu_L()
        self.mu, self.kappa = mu, self.L / mu
        self.steps = max(round(float(np.sqrt(self.kappa.mean()))), 1)
        self.solution = minimiser(self.data, len(self.names))

    def planned(self, method: str, multiples: NDArray, rounds: int, first: bool = False) -> Planned:
        """Runs of a method until all are at the target, or the `first` is, for `rounds` at most."""
        runs, target = len(multiples), self._settings.target
        lengths = (self.solution**2).sum(axis=-1)

        def distance(_: Any, observed: dict[str, NDArray]) -> NDArray:
            return ((observed["server"] - self.solution) ** 2).sum(axis=-1) / lengths

        # A run may leave the target again; the first time counts, which the record has.
        reached = np.zeros(runs, bool)

        def until(recorded: dict[str, NDArray]) -> NDArray:
            now = recorded["distance"] <= target
            reached[:] |= now.any() if first else now
            return reached

        return Planned(
            algorithm=_method(method, multiples / self.L, self.steps),
            problem=self.data,
            replicates=self.names * (runs // len(self.names)),
            rounds=rounds,
            metrics={"distance": distance},
            options={"until": until},
        )


def tune(
    method: str, settings: of.ManyRidges, table: Any, partition: Any, progress: Progress = silent
) -> dict[str, Any]:
    """Search the step, a multiple of 1 / L, of each ridge, by the rounds until the target.

    Trials end when the first gets there, and never later than the best of them so far; of the others the
    rounds follow from how far they have come.

    Returns
    -------
    dict
        As `experiments.tune`; the search has an entry for each ridge.
    """
    chosen, spent = settings.tuning, Spent()
    found = {}
    for l2 in settings.ridges:
        trials = [_Setting(settings, l2, [name], table, partition) for name in chosen.replicates]
        most = [chosen.rounds] * len(trials)

        def rounds(multiples: NDArray, trials: list[_Setting] = trials, most: list[int] = most) -> NDArray:
            scores = []
            for number, trial in enumerate(trials):
                plan = trial.planned(method, multiples, most[number], first=True)
                history = run_plan(plan, settings.seed).history
                spent.add(history)
                scores.append(_rounds_to(history, settings.target))
                if np.isfinite(least := scores[-1].min()):
                    most[number] = min(most[number], int(np.ceil(least)))
            return np.log(scores).mean(axis=0)

        found[str(l2)] = search(
            rounds, Grid.of_steps(chosen.multiples, chosen.refine), choose=with_margin
        ).record()
        progress("ridges", len(found), len(settings.ridges))
    trials_record = {"replicates": chosen.replicates}
    return {"method": method, "search": found, "trials": trials_record, "cost": spent.record()}


def _rounds_to(history: History, target: float) -> NDArray:
    """Rounds until the target, extrapolated at the mean rate so far; infinite if there was no fall."""
    distance, last = history.metrics["distance"], history.rounds[-1]
    reached = distance <= target
    with np.errstate(divide="ignore", invalid="ignore"):
        later = last * np.log(target) / np.log(distance[-1])
    later = np.where(distance[-1] < 1.0, later, np.inf)
    return np.where(reached.any(axis=0), history.rounds[reached.argmax(axis=0)], later)


def run(
    method: str,
    settings: of.ManyRidges,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Run the method at each ridge until |x - x*|^2 is at most `target` times what it was.

    Returns
    -------
    DataFrame
        One line for each ridge and replicate: kappa, local_steps, multiple, round, reached, iterations, bits;
        and of Scaffnew, at its theorem's gamma and p, what `fall` returns.
    """
    assert tuned is not None  # all of these are tuned
    plans = _plans(method, settings, tuned["search"], table, partition)
    frame = execute(method, settings.seed, plans, progress, total=len(settings.ridges))
    curve = ["l2", "replicate"]
    frame = frame.assign(
        reached=frame["distance"] <= settings.target, bits=frame["bits_up"] + frame["bits_down"]
    )
    ends = frame[frame["reached"] | ~frame.duplicated(curve, keep="last")].drop_duplicates(curve)
    return ends.filter(_COLUMNS).reset_index(drop=True)


def _plans(
    method: str, settings: of.ManyRidges, search: dict, table: Any, partition: Any
) -> Iterator[Planned]:
    for l2 in settings.ridges:
        setting = _Setting(settings, l2, settings.replicates, table, partition)
        multiple = search[str(l2)]["step"]
        labels = {"l2": l2, "kappa": setting.kappa, "local_steps": setting.steps, "multiple": multiple}
        if method == "scaffnew":
            labels |= fall(setting, settings)
        plan = setting.planned(method, np.full(len(setting.names), multiple), settings.rounds)
        yield replace(plan, labels=labels)


def fall(setting: _Setting, settings: of.ManyRidges) -> dict[str, NDArray]:
    """Rate of Psi's fall, gamma = 1 / L and p = 1 / sqrt(kappa), and its bound max(1 - gamma mu, 1 - p^2).

    Psi = sum_i |x_i - x*|^2 + (gamma / p)^2 sum_i |h_i - grad f_i(x*)|^2 (Scaffnew's Theorem 3.5), at
    communications.

    Returns
    -------
    dict
        rate and bound, of an iteration, and ratio, of their logarithms: above 1 if Psi falls faster.
    """
    data, runs = setting.data, len(setting.names)
    star = data.client_gradients(setting.solution)
    gamma, p = 1.0 / setting.L, 1.0 / setting.steps
    made = _method("scaffnew", gamma, setting.steps)

    def psi(state: Any) -> NDArray:
        far = data.n_clients * ((state.x - setting.solution) ** 2).sum(axis=-1)
        return far + (gamma / p) ** 2 * ((state.h - star) ** 2).sum(axis=(1, 2))

    streams = Streams(settings.seed, setting.names)
    begin = psi(made.init(data, streams))
    state, last, t = None, begin, 0
    iterations = np.zeros(runs)
    # All go on for as long as none is at the floor: a run that stopped when it is low would be lucky.
    every = settings.lyapunov_every
    while t < settings.rounds:
        resume = None if state is None else (t, state)
        history = simulate(made, data, streams, t + every, metrics={}, record_every=every, resume=resume)
        now = psi(history.state)
        if (now <= _FLOOR * begin).any() and t:
            break
        state, last, t = history.state, now, t + every
        iterations += history.ledger["iterations"][-1]
    bound = np.array([theory_rate(one, p, mu) for one, mu in zip(gamma, setting.mu, strict=True)])
    slope = np.log(last / begin) / iterations
    return {"rate": np.exp(slope), "bound": bound, "ratio": slope / np.log(bound)}
