"""Runs of the paper: methods, data and settings.

Readings of "the step size" stand side by side. In `own`, as the text says, each method takes its own
best step, and the best number of local steps K at that. In `common`, all methods take one step that
local gradient steps of every client tolerate, a fixed fraction of 1/l with l the clients' largest
smoothness constant, and the largest K. In `equal`, all levels of heterogeneity take the common step of
the last one, so that Figure 2 compares levels at one step. In `printed`, each method takes the best step
of the coarse grid, which is the paper's, even where that lies at the grid's edge or diverges. In `theory`
(Figures 1 and 3, mildest level) all methods take the theorems' step, 1/(6 l).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.hard_thresholding import RATES
from replifed.algorithms.registry import method_class
from replifed.engine.plans import Planned, execute
from replifed.engine.search import Grid, Search
from replifed.engine.simulate import Metric, nonzeros, objective
from replifed.engine.trials import Check, Spent, Trials, best_printed, tune_steps
from replifed.operators.hard_threshold import hard_threshold
from replifed.papers.fedht.simulations import biased, planted, simulation, simulations, support_words
from replifed.problems.by_class import SoftmaxByClass
from replifed.problems.clients import stacked
from replifed.problems.dense import DenseLinearModel, in_span
from replifed.problems.losses import loss_named
from replifed.problems.sparse import SparseLinearModel
from replifed.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.fedht import settings as of

    Compared = of.Simulation | of.DataSet

# Methods of Figure 2.
COMPARED_OVER_LEVELS = ("fedht", "fediterht")
# Not in the paper; drawn beside the others, and no claim looks at it.
FOR_REFERENCE = "fedavg"
# Readings in which one step, half of 1/l or less, is for all methods.
AT_A_SHORT_STEP = ("common", "equal", "theory")
METRICS = {"objective": objective, "nonzeros": nonzeros}


def recovered(planted: NDArray) -> Metric:
    """Share of the planted coordinates, a mask, that the server's model has."""
    return lambda _, seen: (seen["server"][:, planted] != 0).mean(axis=-1)


# --- Methods, data and levels ---------------------------------------------------------------------


def plotted_levels(method: str, settings: Compared) -> list[str]:
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
    return [max(settings.local_steps)] if method == FOR_REFERENCE else list(settings.local_steps)


def algorithm(
    method: str, settings: of.Common, K: int, step: NDArray | float, batch: int | None, **more: Any
):
    """Build `method` with those of the experiment's settings that it has."""
    offered = {"sparsity": kept(settings), "local_steps": K, "step": step, "batch": batch}
    return method_class(method)(**{k: v for k, v in offered.items() if k in _settable(method)}, **more)


def kept(settings: of.Common) -> int:
    """Non-zeros that a threshold leaves, of all classes together."""
    return settings.sparsity * (getattr(settings, "classes", None) or 1)


def _settable(method: str) -> set[str]:
    return {field.name for field in fields(method_class(method)) if field.init}


def problem(settings: Compared, level: str, replicate: int, table: Any = None, partition: Any = None):
    """The federated problem of one replicate: of a simulation's level, or of a table and its partition."""
    if settings.problem == "simulation":
        return simulation(settings, _variances(level), replicate)
    client, dtype = partition.clients[replicate], np.dtype(settings.dtype)
    if settings.loss == "softmax":
        return _images(settings, table, client, dtype)
    X, y = table.X.astype(dtype), table.y.astype(dtype)
    return SparseLinearModel(X, y, loss_named(settings.loss), client)


def _images(settings: of.DataSet, table: Any, client: NDArray, dtype: np.dtype) -> DenseLinearModel:
    """Softmax regression on pixels in [0, 1], stacked by client."""
    held = [np.flatnonzero(client == i) for i in range(int(client.max()) + 1)]
    X, y, sizes = stacked([[(table.X[rows], table.y[rows]) for rows in held]], dtype)
    X /= 255
    loss = loss_named("softmax", int(table.y.max()) + 1)
    if settings.classes is None:
        return DenseLinearModel(X, y, loss, sizes=sizes)
    found = SoftmaxByClass(X, y, loss, sizes=sizes)
    found.kept = kept(settings)
    return found


def _variances(level: str) -> tuple[float, float]:
    """(alpha, beta) of a level's name."""
    alpha, beta = map(float, level.split(","))
    return alpha, beta


# --- Searches -------------------------------------------------------------------------------------


def tune(
    method: str, settings: Compared, table: Any, partition: Any, progress: Progress = silent
) -> dict[str, Any]:
    """Search the step for every level and K, and choose K.

    A step must be stable (`replifed.engine.perturbed`). If none is, the best mean over all data sets of the
    search is taken, and marked as chaotic.

    Returns
    -------
    dict
        levels -> {local_steps: the best K, by_local_steps: {K: `Search.record`}}. With each level comes
        the common step and the smoothness constant that it is a fraction of. Besides, `trials` and `cost`:
        what was run for it.
    """
    tuning, levels = settings.tuning, plotted_levels(method, settings)
    found: dict[str, Any] = {}
    spent = Spent()  # of all levels
    for grouped in _grouped(method, settings):
        progress(f"searching the step {' '.join(grouped)}".strip(), len(found), len(levels))
        trials = Trials(
            tuning.replicates,
            partial(_data, settings, grouped, table=table, partition=partition),
            settings.seed,
            tuning.rounds,
            tuning.tail,
            spent=spent,
            # Splits of real data differ less than draws do.
            check=Check(data_sets=1) if settings.problem == "dataset" else Check(),
            of_searches=(lambda data, levels: data.of_runs(levels)) if len(grouped) > 1 else None,
        )
        found |= _tune_levels(method, settings, grouped, trials)
        del trials  # its problems may be large, and are freed before the next levels' are made
    return {"method": method, "levels": found, **spent.of_trials()}


def _tune_levels(method: str, settings: Compared, levels: list[str], trials: Trials) -> dict[str, Any]:
    """Search the step for every K on the data of some levels, side by side; choose K."""
    tuning, every = settings.tuning, plotted_levels(method, settings)

    def make(K: int, _: NDArray, steps: NDArray) -> Any:
        return algorithm(method, settings, K, steps, settings.batch)

    grid = Grid.of_steps(tuning.steps, tuning.refine)
    searches = {K: tune_steps(partial(make, K), levels, trials, grid) for K in sweep(method, settings)}
    found: dict[str, Any] = {}
    for number, level in enumerate(levels):
        own = {K: of_levels[number] for K, of_levels in searches.items()}
        by_k = {str(K): one.record() for K, one in own.items()}
        # Figure 1 draws every K of a simulation, on the first level.
        printed = _printed(own, tuning.steps, make, trials, number, every_k=bool(level) and level == every[0])
        for K, one in printed.items():
            by_k[str(K)] |= one
        _, _, best = min((one.chaotic, one.score, K) for K, one in own.items())
        found[level] = {"local_steps": best, "by_local_steps": by_k}
    if levels != [""]:
        # Every client's local gradient steps tolerate it; to one significant digit.
        smoothness = np.max([data.smoothness().max(axis=1) for _, data in trials.problems], axis=0)
        for level, largest in zip(levels, smoothness.tolist(), strict=True):
            common = float(f"{tuning.common_fraction / largest:.0e}")
            found[level] |= {"smoothness": largest, "common_step": common}
    return found


def _printed(
    own: dict[int, Search],
    steps: Sequence[float],
    make: Callable[..., Any],
    trials: Trials,
    number: int,
    *,
    every_k: bool,
) -> dict[int, dict[str, Any]]:
    """The best steps of the printed grid, by K, among what the searches have found.

    Of `every_k`, or of those from whose scores it follows which one is best. Where all printed steps diverge,
    the shortest is taken, and marked as chaotic, without a score.
    """
    lowest = {}
    for K, one in own.items():
        scores = dict(zip(one.steps, one.scores, strict=True))
        lowest[K] = min(scores[step] for step in steps)
    found: dict[int, dict[str, Any]] = {}
    for K in sorted(lowest, key=lambda K: (lowest[K], K)):
        behind = any(
            not one["printed_chaotic"] and one["printed_score"] < lowest[K] for one in found.values()
        )
        diverges = bool(np.isinf(lowest[K]))
        if not every_k and found and (behind or diverges):
            break
        if diverges:
            step, score, chaotic = min(steps), None, True
        else:
            best = best_printed(own[K], steps, partial(make, K, None), trials, number)
            step, score, chaotic = best.step, best.score, best.chaotic
        found[K] = {"printed_step": step, "printed_score": score, "printed_chaotic": chaotic}
    return found


# --- Curves of the figures ------------------------------------------------------------------------


class Curve(NamedTuple):
    """One curve of one method; level is "" for real data, batch is None for all samples.

    `tuned` says whether K is the one that the reading prescribes (Figures 2, 3, 6), or one of Figure 1's
    sweep.
    """

    level: str
    reading: str
    local_steps: int
    batch: int | None
    step: float
    tuned: bool


def curves(method: str, settings: Compared, tuned: dict) -> Iterator[Curve]:
    """List the curves of `method`, given the outcome of its `tune`."""
    levels, searched, batch = plotted_levels(method, settings), tuned["levels"], settings.batch
    first, last = levels[0], levels[-1]
    for level in levels:
        own, by_k = searched[level]["local_steps"], searched[level]["by_local_steps"]
        common, largest = searched[level].get("common_step"), max(map(int, by_k))
        # Figure 1 draws every K of a simulation, on the first level.
        swept = sweep(method, settings) if level == first and level else []
        for K in sorted({own, *swept}):
            yield Curve(level, "own", K, batch, by_k[str(K)]["step"], own == K)
        if level and level in (first, last):  # Figures 1 and 3; Figure 6 keeps to the text
            for K in sorted({largest, *swept}):
                yield Curve(level, "common", K, batch, common, largest == K)
        if swept and method != FOR_REFERENCE:  # the remarks on K, and Figure 3, at the theorems' step
            # 1/(6 l_d) of Theorem 1, to two digits, so that rounding does not move it. Theorem 2 has the
            # restricted l_s, which is at most l_d and too costly to compute.
            step = float(f"{1.0 / (6.0 * searched[level]['smoothness']):.1e}")
            for K in swept:
                yield Curve(level, "theory", K, batch, step, largest == K)
        if method in COMPARED_OVER_LEVELS and len(levels) > 1:  # Figure 2
            yield Curve(level, "equal", largest, batch, searched[last]["common_step"], True)
        printed = {int(K): one for K, one in by_k.items() if "printed_step" in one}
        # Where all printed steps diverge, there is no score.
        scores = {K: np.inf if (one := p["printed_score"]) is None else one for K, p in printed.items()}
        best = min(printed, key=lambda K: (printed[K]["printed_chaotic"], scores[K], K))
        for K in sorted({best, *swept}):
            yield Curve(level, "printed", K, batch, printed[K]["printed_step"], best == K)
        if level == first and settings.full_batch_replicates:
            yield Curve(level, "own", own, None, by_k[str(own)]["step"], True)
            yield Curve(level, "common", largest, None, common, True)


def run(
    method: str,
    settings: of.Experiment,
    tuned: dict,
    table: Any,
    partition: Any,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Run all curves and seeds of `method`."""
    match settings.problem:
        case "planted":
            plans = _planted(method, settings)
        case "biased":
            plans = _biased(method, settings)
        case _:
            plans = _compared(method, settings, tuned, table, partition)
    return execute(method, settings.seed, plans, progress)


def _compared(method: str, settings: Compared, tuned: dict, table: Any, partition: Any) -> Iterator[Planned]:
    """Curves of equal K and batch size are runs side by side."""
    listed = list(curves(method, settings, tuned))
    replicates = dict.fromkeys([*settings.replicates, *settings.full_batch_replicates])
    # A cheap baseline is drawn for more rounds than the others.
    is_baseline = sweep(method, settings) == [1]
    rounds = settings.baseline_rounds or settings.rounds if is_baseline else settings.rounds
    # Supports are compared at the end, and show by how much they still change.
    near_end = round(0.8 * settings.rounds / settings.record_every) * settings.record_every
    for replicate, grouped in product(replicates, _grouped(method, settings)):
        groups: dict[tuple[int | None, int, bool], list[Curve]] = {}
        for curve in listed:
            full = curve.batch is None
            reported = settings.full_batch_replicates if full else settings.replicates
            if curve.level in grouped and replicate in reported:
                perturbed = replicate in _perturbed(method, settings, curve)
                groups.setdefault((curve.batch, curve.local_steps, perturbed), []).append(curve)
        if not groups:
            continue
        data = _data(settings, grouped, replicate, table, partition)
        supports = support_words(data.dim) if getattr(settings, "supports", False) else {}
        more = dict(supports)
        if settings.problem == "simulation":
            more["recovered"] = recovered(np.arange(data.dim) < settings.planted)
        for (batch, K, perturbed), group in groups.items():
            # Several readings may come to one run.
            points = sorted({(curve.level, curve.step) for curve in group})
            at = [grouped.index(level) for level, _ in points]
            yield Planned(
                algorithm=algorithm(method, settings, K, np.array([step for _, step in points]), batch),
                problem=data.of_runs(at) if len(grouped) > 1 else data,
                replicates=[replicate] * len(points),
                rounds=settings.full_batch_rounds if batch is None else rounds,
                run_of_curve=[points.index((curve.level, curve.step)) for curve in group],
                labels={
                    **{name: [getattr(curve, name) for curve in group] for name in Curve._fields},
                    "batch": "full" if batch is None else str(batch),
                    "replicate": replicate,
                },
                run_labels={
                    "chaotic": lambda ran: ran.chaotic,
                    "twin_difference": lambda ran: ran.difference,
                },
                metrics=METRICS | more,
                perturbed="recorded" if perturbed else None,
                record_every=settings.record_every,
                options={"schedule": dict.fromkeys(supports, near_end.__eq__)},
            )
        del data  # it may be large: it goes before the next one comes


def _perturbed(method: str, settings: Compared, curve: Curve) -> Sequence[int]:
    """Replicates of a curve that have perturbed runs.

    One tells where the step is at most half of 1/l, far from where runs of these methods leap.
    """
    every = settings.replicates if settings.twin_replicates is None else settings.twin_replicates
    if method == FOR_REFERENCE:
        return ()
    return every[:1] if curve.reading in AT_A_SHORT_STEP else every


def _grouped(method: str, settings: Compared) -> list[list[str]]:
    """The levels of an experiment, in groups that run side by side and share one pass over the features.

    They do not where the clients' Gram matrices, which differ by level, make local steps cheaper still: for
    methods without a threshold between local steps, where samples are few.
    """
    levels = plotted_levels(method, settings)
    if settings.problem == "simulation" and (
        method == "fediterht" or not in_span(settings.samples, settings.features)
    ):
        return [levels]
    return [[level] for level in levels]


def _data(
    settings: Compared, levels: list[str], replicate: int, table: Any = None, partition: Any = None
) -> Any:
    """The problem of one level, or of several, whose runs `of_runs` then picks."""
    if settings.problem == "dataset" or len(levels) == 1:
        return problem(settings, levels[0], replicate, table, partition)
    return simulations(settings, [_variances(level) for level in levels], replicate)


# --- Planted problems of the theorems, and digits by class ----------------------------------------


def _planted(method: str, settings: of.Planted) -> Iterator[Planned]:
    """`method` as its theorem prescribes: step 1/(6 l), batches growing as 1/theta^t, capped at m.

    The first batch is the theorem's, or, where no bound is promised, the one of the settings.
    """
    kappa, tau, tau_star = settings.condition, settings.sparsity, settings.planted
    step = 1.0 / (6.0 * kappa)  # l = kappa by construction
    for replicate in settings.replicates:
        data, x_star, variance = planted(settings, replicate)
        for K in settings.local_steps:
            rate = RATES[method](kappa, tau, tau_star, K)
            least = rate.spread * variance / (kappa**2 * (x_star**2).sum())
            firsts = {"theorem": max(int(np.ceil(least)), 1), "small": settings.first_batch}
            for batch, first in firsts.items():
                decay = min(rate.theta, 1.0)
                made = algorithm(method, settings, K, np.array([step]), first, batch_decay=decay)
                labels = {"level": "", "reading": "theory", "local_steps": K, "batch": batch}
                labels |= {"first_batch": first, "step": step, "tuned": True}
                yield _to_solution(made, data, x_star, settings, replicate, labels)


def _biased(method: str, settings: of.Biased) -> Iterator[Planned]:
    """`method` with the theorems' step, for every spread and K.

    Column gradient is |grad f(x*)|^2, of FedIterHT on the support that Theorem 2 restricts it to, and
    dissimilarity the least B^2 of Assumption 2, infinite where clients' minimisers differ.
    """
    tau, step = settings.sparsity, 1.0 / (6.0 * settings.condition)
    for replicate, spread in product(settings.replicates, settings.spreads):
        data, x_star, curvature = biased(settings, spread, replicate)
        gradient = data.gradient(x_star[None])[0]
        if method == "fediterht":
            kept = hard_threshold(gradient, min(2 * settings.clients * tau, len(gradient)))
            gradient = np.where(x_star, gradient, kept)
        squares = (curvature**2).mean(axis=0) / curvature.mean(axis=0) ** 2
        labels = {"level": f"{spread:g}", "step": step, "gradient": float(gradient @ gradient)}
        labels |= {"dissimilarity": np.inf if spread else float(squares.max())}
        for K in settings.local_steps:
            made = algorithm(method, settings, K, np.array([step]), settings.batch)
            yield _to_solution(made, data, x_star, settings, replicate, {**labels, "local_steps": K})


def _to_solution(
    made: Any, data: Any, x_star: NDArray, settings: of.Planted | of.Biased, replicate: int, labels: dict
) -> Planned:
    """One run, with |x_t - x*|^2 as column error."""

    def error(_: Any, seen: dict[str, NDArray]) -> NDArray:
        return ((seen["server"] - x_star) ** 2).sum(axis=-1)

    return Planned(
        algorithm=made,
        problem=data,
        replicates=[replicate],
        rounds=settings.rounds,
        labels={**labels, "replicate": replicate},
        metrics={**METRICS, "error": error, "recovered": recovered(x_star != 0)},
        record_every=settings.record_every,
    )
