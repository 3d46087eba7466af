"""What the paper runs, and what goes beyond it; each experiment has a kind.

* `grid`: all steps eta, numbers M of workers and K of local steps, on one seed, each run beside two twins,
  which tell whether it can be reproduced at all;
* `fresh`: at each (M, K) the step that is best on some seeds, and the one that the authors chose, on other
  seeds;
* `clients`: the same methods in the library's own engine, on clients that have data of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.engine.simulate import simulate
from replifed.network.participation import FixedSize
from replifed.papers.fedac import published
from replifed.papers.fedac.lanes import Logistic, Numbers, draw, joined, lanes, objectives
from replifed.papers.fedac.paper import VARIANTS
from replifed.problems.clients import stacked
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.progress import Progress, silent
from replifed.randomness import Streams, generator

if TYPE_CHECKING:
    from replifed.papers.fedac import settings as of

# What twins' starts, and steps, are longer by.
TWIN = 1 + 1e-10
# Methods, as the authors name them, with their steps.
Runs = Sequence[tuple[str, float]]
# Gaps below are rounding.
_LEAST = 1e-15


def tune(
    method: str, settings: of.Experiment, table: Any, partition: Any, progress: Progress = silent
) -> dict[str, Any]:
    """Choose the method's step at each (M, K) on seeds that are not reported.

    Returns
    -------
    dict
        method; search, a list of entries with method (as the authors call it), M, K, steps, their scores
        (mean decimal logarithm of the gap, see `_score`), stable (whether no seed depends on rounding) and
        step, the best of those that are stable, or of all if none is; and trials, on which seeds.
    """
    assert settings.kind != "grid"  # it tunes nothing
    if settings.kind == "clients":
        found = list(_search_clients(method, settings, table, partition, progress))
    else:
        found = list(_search_fresh(method, settings, table, progress))
    return {"method": method, "search": found, "trials": {"replicates": settings.tuning.replicates}}


def run(
    method: str,
    settings: of.Experiment,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Run an experiment; objectives are those of the output at the recorded steps t, in column round."""
    if settings.kind == "grid":
        return _grid(method, settings, table, progress)
    assert tuned is not None  # as all but grids have
    chosen = {(one["method"], one["M"], one["K"]): one["step"] for one in tuned["search"]}
    if settings.kind == "clients":
        return _clients(method, settings, chosen, table, partition, progress)
    return _fresh(method, settings, chosen, table, progress)


def variants(method: str, settings: of.Experiment) -> list[str]:
    """The names that the authors have for a method, of those that an experiment runs."""
    return [name for name in settings.steps if VARIANTS[name].method == method]


# --- All steps ------------------------------------------------------------------------------------


def _grid(method: str, settings: of.Grid, table: Any, progress: Progress) -> pd.DataFrame:
    """A line a run and record; of_start and of_step are its twins' objectives."""
    problem, frames = Logistic(table, settings.l2), []
    cases = list(product(settings.replicates, settings.workers, settings.local_steps))
    numbers = lru_cache(1)(partial(_numbers, settings, problem))  # those of one M are many
    for done, (seed, M, K) in enumerate(cases):
        progress(f"M = {M}, K = {K}", done, len(cases))
        runs = [(name, eta) for name in variants(method, settings) for eta in _steps(settings, name, M, K)]
        values, *twins = _beside_twins(problem, settings, runs, K, numbers(seed, M))
        name, eta = (np.array(one) for one in zip(*runs, strict=True))
        frames.append(_frame(settings, values, twins, replicate=seed, method=name, M=M, K=K, eta=eta))
    return pd.concat(frames, ignore_index=True)


def _steps(settings: of.Grid, name: str, M: int, K: int) -> NDArray:
    """The steps of a method; with `neighbours` those around the one that the authors chose, if any."""
    ladder = np.array(settings.steps[name])
    if settings.neighbours is None:
        return ladder
    best = published.best_steps(settings.l2, name).get((M, K))
    return ladder[:0] if best is None else _near(ladder, best, settings.neighbours)


def _near(ladder: NDArray, step: float, neighbours: int) -> NDArray:
    """The step and so many to either side of it, or further ones on the other side at an end."""
    ladder = np.sort(ladder)
    width = min(2 * neighbours + 1, len(ladder))
    first = int(np.abs(np.log(ladder / step)).argmin()) - neighbours
    first = min(max(first, 0), len(ladder) - width)
    return ladder[first : first + width]


def _numbers(settings: of.Grid | of.Fresh, problem: Logistic, seed: int, M: int) -> Numbers:
    return draw(settings.random, settings.seed, seed, problem.dim, problem.n, settings.iterations, M)


def _beside_twins(
    problem: Logistic, settings: of.Experiment, runs: Runs, K: int, numbers: Numbers
) -> Sequence[NDArray]:
    """Objectives (records, L) of the runs, of twins with longer starts, and of twins with longer steps."""
    longer = [(name, eta * TWIN) for name, eta in runs]
    start = np.repeat([1.0, TWIN, 1.0], len(runs))[:, None] * numbers.start
    return np.split(_objectives(problem, settings, [*runs, *runs, *longer], start, K, numbers), 3, axis=1)


def _objectives(
    problem: Logistic, settings: of.Experiment, runs: Runs, start: NDArray, K: int, numbers: Numbers
) -> NDArray:
    """Objectives (records, L) of runs that start at `start` (L, D)."""
    (kind,) = {VARIANTS[name].kind for name, _ in runs}
    side_by_side = joined([lanes(name, np.array([eta]), settings.l2, K) for name, eta in runs])
    return objectives(problem, kind, side_by_side, start, numbers, K, settings.every)


def _frame(settings: of.Experiment, values: NDArray, twins: Sequence[NDArray], **labels: Any) -> pd.DataFrame:
    """Objectives (records, L) as lines, run by run; labels are one for all, or (L,)."""
    records, L = values.shape
    columns = {key: np.repeat(np.broadcast_to(label, L), records) for key, label in labels.items()}
    columns["round"] = np.tile(settings.every * np.arange(records), L)
    named = zip(("objective", "of_start", "of_step"), (values, *twins), strict=False)
    return pd.DataFrame(columns | {key: one.T.ravel() for key, one in named})


# --- Fresh seeds ----------------------------------------------------------------------------------


def _search_fresh(
    method: str, settings: of.Fresh, table: Any, progress: Progress
) -> Iterator[dict[str, Any]]:
    from replifed.papers.fedac.measures import hangs_on_rounding

    problem, tuning = Logistic(table, settings.l2), settings.tuning
    cases = list(product(variants(method, settings), settings.workers))
    for done, (name, M) in enumerate(cases):
        numbers = [_numbers(settings, problem, seed, M) for seed in tuning.replicates]
        for K in settings.local_steps:
            progress(f"search {name}, M = {M}, K = {K}", done, len(cases))
            best = published.best_steps(settings.l2, name)[M, K]
            steps = _near(np.array(settings.steps[name]), best, tuning.neighbours)
            tried = [(name, eta) for eta in steps]
            found = [_beside_twins(problem, settings, tried, K, one) for one in numbers]
            scores = np.mean([_score(values, problem) for values, *_ in found], axis=0)
            stable = np.all(
                [~hangs_on_rounding(values.T, *(t.T for t in twins))[1] for values, *twins in found], 0
            )
            yield {"method": name, "M": M, "K": K, **_choice(steps, scores, stable)}


def _score(values: NDArray, problem: Logistic) -> NDArray:
    """Decimal logarithm of the least gap of records, as the paper takes it; (records, L) to (L,)."""
    return np.log10(np.maximum(values.min(axis=0) - problem.minimum, _LEAST))


def _choice(steps: NDArray, scores: NDArray, stable: NDArray) -> dict[str, Any]:
    allowed = stable if stable.any() else np.ones_like(stable)
    step = float(steps[np.where(allowed, scores, np.inf).argmin()])
    return {"steps": steps.tolist(), "scores": scores.tolist(), "stable": stable.tolist(), "step": step}


def _fresh(method: str, settings: of.Fresh, chosen: dict, table: Any, progress: Progress) -> pd.DataFrame:
    """A line a run and record; `choice` is "searched" or "authors", and gap is to the true minimum."""
    problem, frames = Logistic(table, settings.l2), []
    names = variants(method, settings)
    cases = list(product(settings.replicates, settings.workers))
    for done, (seed, M) in enumerate(cases):
        progress(f"M = {M}, seed {seed}", done, len(cases))
        numbers = _numbers(settings, problem, seed, M)
        for K in settings.local_steps:
            picked = [(name, "searched", chosen[name, M, K]) for name in names]
            picked += [(name, "authors", published.best_steps(settings.l2, name)[M, K]) for name in names]
            start = np.repeat(numbers.start[None], len(picked), axis=0)
            runs = [(name, eta) for name, _, eta in picked]
            values = _objectives(problem, settings, runs, start, K, numbers)
            name, choice, eta = (np.array(one) for one in zip(*picked, strict=True))
            labels = {"replicate": seed, "method": name, "choice": choice, "M": M, "K": K, "eta": eta}
            frames.append(_frame(settings, values, (), **labels))
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(gap=np.maximum(frame["objective"] - problem.minimum, _LEAST))


# --- Clients with data of their own ---------------------------------------------------------------


def _search_clients(
    method: str, settings: of.Clients, table: Any, partition: Any, progress: Progress
) -> Iterator[dict[str, Any]]:
    tuning, M = settings.tuning, settings.clients
    steps, seeds = np.array(tuning.steps), tuning.replicates
    eta, names = np.tile(steps, len(seeds)), np.repeat(seeds, len(steps)).tolist()
    # A data set a run: cohorts ask for one, or for as many as runs.
    problem, least = _client_problem(settings, names, table, partition)
    for done, K in enumerate(settings.local_steps):
        progress(f"search K = {K}", done, len(settings.local_steps))
        history = _simulated(method, settings, eta, K, problem, tuple(names))
        gaps = np.clip(history.metrics["objective"][-1] - least, _LEAST, 1e6)
        scores = np.log10(gaps).reshape(len(seeds), -1).mean(axis=0)
        (name,) = variants(method, settings)
        yield {"method": name, "M": M, "K": K, **_choice(steps, scores, np.ones(len(steps), bool))}


def _clients(
    method: str, settings: of.Clients, chosen: dict, table: Any, partition: Any, progress: Progress
) -> pd.DataFrame:
    """Histories at the steps of the search, with a gap to the true minimum."""
    seeds, M, frames = tuple(settings.replicates), settings.clients, []
    problem, least = _client_problem(settings, seeds, table, partition)
    (name,) = variants(method, settings)
    for done, K in enumerate(settings.local_steps):
        progress(f"K = {K}", done, len(settings.local_steps))
        eta = chosen[name, M, K]
        history = _simulated(method, settings, np.full(len(seeds), eta), K, problem, seeds)
        history.metrics["gap"] = np.maximum(history.metrics["objective"] - least, _LEAST)
        frames.append(history.frame(replicate=seeds, method=name, M=M, K=K, eta=eta))
    return pd.concat(frames, ignore_index=True)


def _client_problem(
    settings: of.Clients, seeds: Sequence[int], table: Any, partition: Any
) -> tuple[Any, NDArray]:
    """The problem of some seeds, each with clients of its own, and the least objective of each.

    Of a client's samples at most so many are drawn. Where they are `mixed`, these are then dealt out anew, so
    that clients have one distribution, as in the paper, and the problem as a whole is the same.
    """
    sets = []
    for seed in seeds:
        rng = generator(settings.seed, seed, None, "deal")
        owner = partition.clients[seed]
        rows = [rng.permutation(np.flatnonzero(owner == i)) for i in range(settings.clients)]
        size = min(settings.samples, *map(len, rows))
        held = np.stack([own[:size] for own in rows])
        if settings.mixed:
            held = rng.permutation(held.ravel()).reshape(held.shape)
        sets.append([(table.X[own].toarray(), np.where(table.y[own] > 0, 1.0, -1.0)) for own in held])
    X, y, sizes = stacked(sets)
    problem = DenseLinearModel(X, y, loss_named("logistic"), sizes=sizes, l2=settings.l2)
    return problem, problem.loss(minimiser(problem, len(seeds)))


def _simulated(
    method: str, settings: of.Clients, eta: NDArray, K: int, problem: Any, seeds: tuple[int, ...]
) -> Any:
    """The engine's history at steps `eta` (R,) from zero; a client takes one sample a step."""
    return simulate(
        method_class(method)(step=eta, local_steps=K, batch=1),
        problem,
        Streams(settings.seed, seeds),
        settings.iterations // K,
        record_every=max(settings.every // K, 1),
        cohort=FixedSize(settings.cohort) if settings.cohort is not None else None,
    )
