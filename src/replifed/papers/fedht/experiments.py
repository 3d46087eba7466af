"""What the paper runs: which method, on which data, with which settings.

Readings of "the step size" stand side by side. In `own`, as the text says, each method takes its own
best step, and the best number of local steps K at that. In `common`, all methods take one step that
local gradient steps of every client tolerate, a fixed fraction of 1/l with l the clients' largest
smoothness constant, and the largest K. In `equal`, all levels of heterogeneity take the common step of
the last one, so that Figure 2 compares levels at one step. In `printed` (Figures 3 and 6), each method takes
the best step of the coarse grid, which is the paper's, even where that lies at the grid's edge.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.hard_thresholding import RATES
from replifed.algorithms.registry import method_class
from replifed.engine.simulate import nonzeros, objective, simulate
from replifed.engine.tune import SCORED, Grid, Search, Spent, Trials, best_printed, tune_step
from replifed.engine.twins import simulate_with_twins
from replifed.operators.hard_threshold import hard_threshold
from replifed.papers.fedht.simulations import biased, planted, simulation, simulations
from replifed.partition.heterogeneity import group_counts
from replifed.problems.clients import stacked
from replifed.problems.dense import DenseLinearModel, in_span
from replifed.problems.losses import loss_named
from replifed.problems.sparse import SparseLinearModel
from replifed.progress import Progress, silent
from replifed.randomness import Streams

if TYPE_CHECKING:
    from replifed.papers.fedht import settings as of

    Compared = of.Simulation | of.DataSet

# Methods of Figure 2.
COMPARED_OVER_LEVELS = ("fedht", "fediterht")

METRICS = {"objective": objective, "nonzeros": nonzeros}


class Setting(NamedTuple):
    """One curve of one method; level is "" for real data, batch is None for all samples.

    Whether it is tuned says if K is the one that the reading prescribes (Figures 2, 3, 6), not one of Figure
    1's sweep.
    """

    level: str
    reading: str
    local_steps: int
    batch: int | None
    step: float
    tuned: bool


def drawn_levels(method: str, settings: Compared) -> list[str]:
    """Names, "alpha,beta", of the levels of `method`: all in Figure 2, the first and the last in Figure 3.

    Real data have one nameless level.
    """
    if settings.problem == "dataset":
        return [""]
    levels = [f"{alpha},{beta}" for alpha, beta in settings.levels]
    return levels if method in COMPARED_OVER_LEVELS else list(dict.fromkeys([levels[0], levels[-1]]))


def sweep(method: str, settings: of.Common) -> list[int]:
    """The numbers of local steps K that are searched for `method`; the reference takes the largest."""
    if "local_steps" not in _settable(method):
        return [1]
    return [max(settings.local_steps)] if method == "fedavg" else list(settings.local_steps)


def algorithm(
    method: str, settings: of.Common, K: int, step: NDArray | float, batch: int | None, **more: Any
):
    """Build `method` with those of the experiment's settings that it has."""
    offered = {"sparsity": settings.sparsity, "local_steps": K, "step": step, "batch": batch}
    kept = {name: value for name, value in offered.items() if name in _settable(method)}
    return method_class(method)(**kept, **more)


def _settable(method: str) -> set[str]:
    return {field.name for field in fields(method_class(method)) if field.init}


def problem(settings: Compared, level: str, replicate: int, table: Any = None, partition: Any = None):
    """The federated problem of one replicate: of a simulation's level, or of a table and its partition."""
    if settings.problem == "simulation":
        return simulation(settings, _variances(level), replicate)
    client, dtype = partition.clients[replicate], np.dtype(settings.dtype)
    if settings.loss == "softmax":
        return _images(table, client, dtype)
    X, y = table.X.astype(dtype), table.y.astype(dtype)
    return SparseLinearModel(X, y, loss_named(settings.loss), client)


def _variances(level: str) -> tuple[float, float]:
    """(alpha, beta) of a level's name."""
    alpha, beta = map(float, level.split(","))
    return alpha, beta


def _images(table: Any, client: NDArray, dtype: np.dtype, model: type = DenseLinearModel) -> Any:
    """Softmax regression on pixels in [0, 1], stacked by client."""
    held = [np.flatnonzero(client == i) for i in range(int(client.max()) + 1)]
    X, y, sizes = stacked([[(table.X[rows], table.y[rows]) for rows in held]], dtype)
    X /= 255
    return model(X, y, loss_named("softmax", int(table.y.max()) + 1), sizes=sizes)


def tune(
    method: str, settings: Compared, table: Any, partition: Any, progress: Progress = silent
) -> dict[str, Any]:
    """Search the step for every level and K, and choose K.

    A step must be stable (`replifed.engine.twins`). If none is, the best mean over all data sets of the
    search is taken, and marked as chaotic.

    Returns
    -------
    dict
        levels -> {local_steps: the best K, by_local_steps: {K: `tune.Search.record`}}. With each level comes
        the common step and the smoothness constant that it is a fraction of. Besides, `trials` and `cost`:
        what was run for it.
    """
    asked = settings.tuning
    found: dict[str, Any] = {}
    named, counts = drawn_levels(method, settings), sweep(method, settings)
    grid = Grid.of_steps(asked.steps, asked.refine)
    spent = Spent()  # of all levels
    used: set[int] = set()
    for done, level in enumerate(named):
        progress(f"searching the step {level}".strip(), done, len(named))
        trials = Trials.on(
            asked.replicates,
            partial(problem, settings, level, table=table, partition=partition),
            settings.seed,
            asked.rounds,
            asked.tail,
            spent=spent,
            used=used,
            # Splits of real data differ less than draws do.
            checked=1 if settings.problem == "dataset" else SCORED,
        )
        make = partial(algorithm, method, settings, batch=settings.batch)
        outcomes = {K: tune_step(partial(make, K), trials, grid, check=True) for K in counts}
        by_k = {str(K): one.record() for K, one in outcomes.items()}
        _, _, best = min((one.chaotic, one.score, K) for K, one in outcomes.items())
        found[level] = {"local_steps": best, "by_local_steps": by_k}
        if level:
            # Every client's local gradient steps tolerate it; to one significant digit.
            smoothness = max(float(data.smoothness().max()) for _, data in trials.problems)
            common = float(f"{asked.common_fraction / smoothness:.0e}")
            found[level] |= {"smoothness": smoothness, "common_step": common}
        if done in (0, len(named) - 1):
            for K, outcome in outcomes.items():
                by_k[str(K)] |= _printed(outcome, asked.steps, partial(make, K), trials)
        record = trials.record()
        del trials  # large ones go before the next come
    return {"method": method, "levels": found, **record}


def _printed(
    own: Search, steps: Sequence[float], make: Callable[[NDArray], Any], trials: Trials
) -> dict[str, Any]:
    """The best step of the printed grid, among what the search has found; nothing if all diverged."""
    known = dict(zip(own.steps, own.scores, strict=True))
    if not np.isfinite([known[step] for step in steps]).any():
        return {}

    def stable(some: NDArray) -> NDArray:
        return trials.stable(lambda numbers, factors: make(some[numbers] * factors), len(some))

    best = best_printed(own, steps, stable)
    return {"printed_step": best.step, "printed_score": best.score, "printed_chaotic": best.chaotic}


def plan(method: str, settings: Compared, tuned: dict) -> Iterator[Setting]:
    """List the curves of `method`, given the outcome of its `tune`."""
    named = drawn_levels(method, settings)
    for number, level in enumerate(named):
        found = tuned["levels"][level]
        by_k, best, batch = found["by_local_steps"], found["local_steps"], settings.batch
        largest = max(map(int, by_k))
        # Figure 1 draws every K, on the first level alone.
        every = sweep(method, settings) if number == 0 and level else []
        for K in sorted({best, *every}):
            yield Setting(level, "own", K, batch, by_k[str(K)]["step"], best == K)
        if level and number in (0, len(named) - 1):  # Figures 1 and 3; Figure 6 keeps to the text
            for K in sorted({largest, *every}):
                yield Setting(level, "common", K, batch, found["common_step"], largest == K)
        if method in COMPARED_OVER_LEVELS and level != named[-1]:
            yield Setting(level, "equal", largest, batch, tuned["levels"][named[-1]]["common_step"], True)
        if number in (0, len(named) - 1):
            on_grid = [
                (one["printed_chaotic"], one["printed_score"], int(K), one["printed_step"])
                for K, one in by_k.items()
                if "printed_step" in one
            ]
            if on_grid:
                _, _, K, step = min(on_grid)
                yield Setting(level, "printed", K, batch, step, True)
        if number == 0 and settings.full_batch_replicates:
            yield Setting(level, "own", best, None, by_k[str(best)]["step"], True)
            yield Setting(level, "common", largest, None, found["common_step"], True)


def run(
    method: str,
    settings: of.Experiment,
    tuned: dict,
    table: Any,
    partition: Any,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Run all curves and seeds of `method`; those of equal K and batch size run side by side."""
    if settings.problem == "planted":
        return _run_planted(method, settings, progress)
    if settings.problem == "biased":
        return _run_biased(method, settings, progress)
    if settings.problem == "classes":
        return _run_classes(method, settings, table, partition, progress)
    curves = list(plan(method, settings, tuned))
    frames = []
    named = drawn_levels(method, settings)
    everyone = dict.fromkeys([*settings.replicates, *settings.full_batch_replicates])
    # Levels inside: they share the data set's random numbers.
    visited = [named] if _side_by_side(method, settings) else [[level] for level in named]
    visits = list(itertools.product(everyone, visited))
    for number, (replicate, together) in enumerate(visits):
        progress(f"{' and '.join(together)} seed {replicate}".strip(), number, len(visits))
        groups: dict[Any, list[Setting]] = {}
        for curve in curves:
            replicates = settings.full_batch_replicates if curve.batch is None else settings.replicates
            if curve.level in together and replicate in replicates:
                groups.setdefault((curve.batch, curve.local_steps), []).append(curve)
        if groups:
            data = _data_of(settings, together, replicate, table, partition)
            frames += [_histories(method, settings, group, replicate, data) for group in groups.values()]
            del data  # it may be large: it goes before the next one comes
    frame = pd.concat(frames, ignore_index=True)
    if method in COMPARED_OVER_LEVELS and len(named) > 1:
        # At the last level the common step of that level is the equal one of all.
        last = frame[(frame["level"] == named[-1]) & (frame["reading"] == "common") & frame["tuned"]]
        frame = pd.concat([frame, last.assign(reading="equal")], ignore_index=True)
    return frame


def _side_by_side(method: str, settings: Compared) -> bool:
    """Whether the levels of an experiment are runs of one problem, which then reads the same features once.

    Methods without a threshold between local steps go through these faster in the span of a client's samples
    where they are few, and that is another one at each level.
    """
    return settings.problem == "simulation" and (
        method == "fediterht" or not in_span(settings.samples, settings.features)
    )


def _data_of(
    settings: Compared, together: list[str], replicate: int, table: Any, partition: Any
) -> Callable[[Sequence[str]], Any]:
    """The data of one replicate, as a function from the level of each run to the problem of these runs."""
    if settings.problem == "dataset" or len(together) == 1:
        one = problem(settings, together[0], replicate, table, partition)
        return lambda levels: one
    several = simulations(settings, [_variances(level) for level in together], replicate)
    return lambda levels: several.of_runs([together.index(level) for level in levels])


def _histories(
    method: str,
    settings: Compared,
    group: list[Setting],
    replicate: int,
    data: Callable[[Sequence[str]], Any],
) -> pd.DataFrame:
    """Curves of equal K and batch size on one replicate's data, side by side."""
    # Two readings may come to the same run.
    keys = [(curve.level, curve.step) for curve in group]
    distinct = sorted(set(keys))
    at, step = zip(*distinct, strict=True)
    K, batch, steps = group[0].local_steps, group[0].batch, np.array(step)
    place = np.array([distinct.index(key) for key in keys])
    streams = Streams(settings.seed, (replicate,) * len(distinct))
    rounds = _rounds(method, settings, group[0])
    recorded: dict[str, Any] = {"metrics": METRICS, "record_every": settings.record_every}
    if settings.twin_replicates is None or replicate in settings.twin_replicates:
        twinned = simulate_with_twins(
            lambda numbers, factors: algorithm(method, settings, K, steps[numbers] * factors, batch),
            data([level for level in at for _ in range(3)]),
            streams,
            rounds,
            **recorded,
        )
        history, chaotic, difference = twinned.beside, twinned.chaotic[place], twinned.difference[place]
    else:
        history = simulate(
            algorithm(method, settings, K, steps, batch), data(at), streams, rounds, **recorded
        )
        chaotic, difference = np.zeros(len(place), bool), np.full(len(place), np.nan)
    labels: dict[str, Any] = {name: [getattr(one, name) for one in group] for name in Setting._fields}
    labels["batch"] = "full" if batch is None else str(batch)
    labels |= {"replicate": replicate, "chaotic": chaotic, "twin_difference": difference}
    return history.take(place).frame(method=method, **labels)


def _rounds(method: str, settings: Compared, curve: Setting) -> int:
    if curve.batch is None:
        return settings.full_batch_rounds
    if sweep(method, settings) == [1]:  # a baseline that is cheap, and that others are held against far out
        return settings.baseline_rounds or settings.rounds
    return settings.rounds


# --- Planted problems, and digits by class ---


def _run_planted(method: str, settings: of.Planted, progress: Progress) -> pd.DataFrame:
    """Run `method` as its theorem prescribes: step 1/(6 l), batches growing as 1/theta^t, capped at m.

    The first batch is the theorem's, or, where no bound is promised, the one of the settings.
    """
    kappa, tau, tau_star = settings.condition, settings.sparsity, settings.planted
    step = 1.0 / (6.0 * kappa)  # l = kappa by construction
    frames = []
    for number, replicate in enumerate(settings.replicates):
        progress(f"seed {replicate}", number, len(settings.replicates))
        data, x_star, variance = planted(settings, replicate)
        for K in settings.local_steps:
            rate = RATES[method](kappa, tau, tau_star, K)
            asked = rate.spread * variance / (kappa**2 * (x_star**2).sum())
            firsts = {"theorem": max(int(np.ceil(asked)), 1), "small": settings.first_batch}
            for batch, first in firsts.items():
                labels = {"method": method, "level": "", "reading": "theory", "local_steps": K}
                labels |= {"batch": batch, "first_batch": first, "step": step, "tuned": True}
                labels |= {"replicate": replicate}
                decay = min(rate.theta, 1.0)
                made = algorithm(method, settings, K, np.array([step]), first, batch_decay=decay)
                frames.append(_to_solution(made, data, x_star, settings, labels))
    return pd.concat(frames, ignore_index=True)


def _to_solution(
    made: Any, data: Any, x_star: NDArray, settings: of.Planted | of.Biased, labels: dict[str, Any]
) -> pd.DataFrame:
    """The history of one run, with its labels and |x_t - x*|^2 as column error."""

    def error(_: Any, seen: dict[str, NDArray]) -> NDArray:
        return ((seen["server"] - x_star) ** 2).sum(axis=-1)

    history = simulate(
        made,
        data,
        Streams(settings.seed, (labels["replicate"],)),
        settings.rounds,
        metrics={**METRICS, "error": error},
        record_every=settings.record_every,
    )
    return history.frame(**labels)


def _run_biased(method: str, settings: of.Biased, progress: Progress) -> pd.DataFrame:
    """Run `method` with full gradients and the theorems' step, for every spread and K.

    Column gradient is |grad f(x*)|^2, of FedIterHT on the support that Theorem 2 restricts it to, and
    dissimilarity the least B^2 of Assumption 2, infinite where clients' minimisers differ.
    """
    tau, step = settings.sparsity, 1.0 / (6.0 * settings.condition)
    visits = list(itertools.product(settings.replicates, settings.spreads))
    frames = []
    for number, (replicate, spread) in enumerate(visits):
        progress(f"spread {spread:g} seed {replicate}", number, len(visits))
        data, x_star, curvature = biased(settings, spread, replicate)
        gradient = data.gradient(x_star[None])[0]
        if method == "fediterht":
            kept = hard_threshold(gradient, min(2 * settings.clients * tau, len(gradient)))
            gradient = np.where(x_star, gradient, kept)
        squares = (curvature**2).mean(axis=0) / curvature.mean(axis=0) ** 2
        labels = {"method": method, "level": f"{spread:g}", "step": step, "replicate": replicate}
        labels |= {"gradient": float(gradient @ gradient)}
        labels |= {"dissimilarity": np.inf if spread else float(squares.max())}
        for K in settings.local_steps:
            made = algorithm(method, settings, K, np.array([step]), None)
            frames.append(_to_solution(made, data, x_star, settings, {**labels, "local_steps": K}))
    return pd.concat(frames, ignore_index=True)


VARIANTS = ("paper", "class")
"""Threshold over all weights, as in Algorithm 2, or tau / C weights of each of the C classes."""


class Digits(DenseLinearModel):
    """Images with a local threshold by class, or as it is; they note the local models' non-zeros.

    Column u of `unseen` (N, C) says whether clients hold no sample of class u; `local_share` is the mean over
    clients of the share of their last models' non-zeros that belong to such classes.
    """

    unseen: NDArray
    by_class = False
    local_share = 0.0

    def local(self, x: NDArray, **promises: Any) -> Any:
        local = super().local(x, **promises)

        def threshold(u: NDArray, tau: int | NDArray) -> NDArray:
            u = threshold_by_class(u, tau, self.unseen.shape[1]) if self.by_class else hard_threshold(u, tau)
            self.local_share = share_unseen(u, self.unseen)
            return u

        local.threshold = threshold
        return local


def threshold_by_class(u: NDArray, tau: int | NDArray, classes: int) -> NDArray:
    """Keep the largest tau / C weights of each class."""
    by_class = u.reshape(*u.shape[:2], -1, classes).swapaxes(-1, -2)
    return hard_threshold(by_class, tau // classes).swapaxes(-1, -2).reshape(u.shape)


def share_unseen(u: NDArray, unseen: NDArray) -> float:
    """Mean over clients of the share of a model's non-zeros that belong to unseen classes."""
    clients, classes = unseen.shape
    count = np.count_nonzero(u.reshape(clients, -1, classes), axis=1)
    return float(np.mean((count * unseen).sum(axis=1) / np.maximum(count.sum(axis=1), 1)))


def _server_share(digits: Digits, seen: dict[str, NDArray]) -> float:
    return share_unseen(np.repeat(seen["server"], digits.n_clients, axis=0), digits.unseen)


def _run_classes(
    method: str, settings: of.Classes, table: Any, partition: Any, progress: Progress
) -> pd.DataFrame:
    """Run both variants on every repetition; columns server and local are shares of non-zeros."""
    (K,), step, frames = settings.local_steps, settings.step, []
    fediterht = algorithm(method, settings, K, step, settings.batch)
    metrics = {"objective": objective, "server": _server_share, "local": lambda digits, _: digits.local_share}
    for replicate in settings.replicates:
        client = partition.clients[replicate]
        digits = _images(table, client, np.dtype(settings.dtype), Digits)
        digits.unseen = group_counts(client, table.y) == 0
        for number, variant in enumerate(VARIANTS):
            progress(f"{variant} seed {replicate}", number, len(VARIANTS))
            digits.by_class, digits.local_share = variant == "class", 0.0
            streams = Streams(settings.seed, (replicate,))
            history = simulate(fediterht, digits, streams, settings.rounds, metrics=metrics)
            labels = {"method": method, "variant": variant, "local_steps": K, "step": step}
            frames.append(history.frame(**labels, replicate=replicate))
    return pd.concat(frames, ignore_index=True)
