"""What the paper runs: which method, on which data, with which settings.

Readings of "the step size" stand side by side. In `own`, as the text says, each method takes its own
best step, and the best number of local steps K at that. In `common`, all methods take one step that
local gradient steps of every client tolerate, a fixed fraction of 1/l with l the clients' largest
smoothness constant, and the largest K. In `equal`, all levels of heterogeneity take the common step of
the last one, so that Figure 2 compares levels at one step. In `printed`, on real data, each method takes
the best step of the coarse grid, which is the paper's, even where that lies at the grid's edge.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.hard_thresholding import RATES
from replifed.algorithms.registry import method_class
from replifed.papers.fedht import by_class
from replifed.papers.fedht.simulations import planted, simulation, simulations
from replifed.problems.dense import DenseLinearModel, in_span
from replifed.problems.losses import loss_named
from replifed.problems.sparse import SparseLinearModel
from replifed.progress import Progress
from replifed.randomness import Streams
from replifed.simulate import nonzeros, objective, simulate
from replifed.tune import Grid, Search, Spent, Trials, search, tune_step
from replifed.twins import simulate_with_twins

# Methods of Figure 2.
COMPARED_OVER_LEVELS = ("fedht", "fediterht")

METRICS = {"objective": objective, "nonzeros": nonzeros}


class Setting(NamedTuple):
    """One curve of one method.

    Attributes
    ----------
    level : name of the heterogeneity level, "" for real data
    reading : "own", "common", "equal" or "printed"
    local_steps : K
    step : gamma
    batch : minibatch size; None for all samples
    tuned : whether K is the one that the reading prescribes (Figures 2, 3, 6), not one of Figure 1's sweep
    """

    level: str
    reading: str
    local_steps: int
    step: float
    batch: int | None
    tuned: bool


def levels(settings: dict) -> list[str]:
    """Names of the heterogeneity levels, "alpha,beta"; one nameless level for real data."""
    return [f"{alpha},{beta}" for alpha, beta in settings.get("levels", [])] or [""]


def drawn_levels(method: str, settings: dict) -> list[str]:
    """The levels at which `method` is drawn: all in Figure 2, the first and the last in Figure 3."""
    named = levels(settings)
    return named if method in COMPARED_OVER_LEVELS else list(dict.fromkeys([named[0], named[-1]]))


def sweep(method: str, settings: dict) -> list[int]:
    """The numbers of local steps K that are searched for `method`; the reference takes the largest."""
    if "local_steps" not in _settable(method):
        return [1]
    return [max(settings["local_steps"])] if method == "fedavg" else list(settings["local_steps"])


def algorithm(method: str, settings: dict, K: int, step: NDArray, batch: int | None, **more: Any):
    """Build `method` with those of the experiment's settings that it has."""
    offered = {"sparsity": settings["sparsity"], "local_steps": K, "step": step, "batch": batch}
    kept = {name: value for name, value in offered.items() if name in _settable(method)}
    return method_class(method)(**kept, **more)


def _settable(method: str) -> set[str]:
    return {field.name for field in fields(method_class(method)) if field.init}


def problem(settings: dict, level: str, replicate: int, table: Any = None, partition: Any = None):
    """The federated problem of one replicate.

    Parameters
    ----------
    settings : dict
        The experiment's.
    level : str
        Heterogeneity level of a simulation.
    replicate : int
    table, partition : Table and Partition, for real data
    """
    if settings["problem"] == "simulation":
        return simulation(settings, _variances(level), replicate)
    client = partition.clients[replicate]
    dtype = np.dtype(settings.get("dtype", "float64"))
    if settings["loss"] != "softmax":
        loss = loss_named(settings["loss"])
        return SparseLinearModel(table.X.astype(dtype), table.y.astype(dtype), loss, client)
    return _images(table, client, dtype)


def _variances(level: str) -> tuple[float, float]:
    """(alpha, beta) of a level's name."""
    alpha, beta = map(float, level.split(","))
    return alpha, beta


def _images(table: Any, client: NDArray, dtype: np.dtype) -> DenseLinearModel:
    """Softmax regression on pixels in [0, 1], stacked by client."""
    sizes = np.bincount(client)
    order = np.argsort(client, kind="stable")
    position = np.arange(len(client)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    X = np.zeros((1, len(sizes), sizes.max(), table.X.shape[1]), dtype=dtype)
    y = np.zeros(X.shape[:3], dtype=np.int64)
    X[0, client[order], position] = table.X[order]
    X /= 255
    y[0, client[order], position] = table.y[order]
    return DenseLinearModel(X, y, loss_named("softmax", int(table.y.max()) + 1), sizes=sizes[None])


def tune(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None = None
) -> dict[str, Any]:
    """Search the step for every level and K, and choose K.

    A step must be stable (`replifed.twins`). If none is, the best mean over all data sets of the search is
    taken, and marked as chaotic.

    Returns
    -------
    dict
        levels -> {local_steps: the best K, by_local_steps: {K: {step, score, steps, scores, ...}}}, see
        `tune.Search.record`. A score is the objective at the end of the search's rounds, None for a run that
        diverged. With each level comes the common step and the smoothness constant that it is a fraction of.
        Besides, `trials` and `cost`: what was run for it.
    """
    asked = settings["tuning"]
    found: dict[str, Any] = {}
    named, counts = drawn_levels(method, settings), sweep(method, settings)
    grid = Grid.of_steps(asked["steps"], asked["refine"])
    spent = Spent()  # of all levels
    used: set[int] = set()
    for done, level in enumerate(named):
        if progress is not None:
            progress(f"searching the step {level}".strip(), done, len(named))
        trials = Trials.on(
            asked["replicates"],
            partial(problem, settings, level, table=table, partition=partition),
            settings["seed"],
            asked["rounds"],
            asked["tail"],
            spent=spent,
            used=used,
        )
        make = partial(algorithm, method, settings, batch=settings["batch"])
        outcomes = [tune_step(partial(make, K), trials, grid, check=True) for K in counts]
        by_k = {str(K): one.record() for K, one in zip(counts, outcomes, strict=True)}
        found[level] = {
            "local_steps": int(min(by_k, key=lambda K: _rank(by_k[K], K))),
            "by_local_steps": by_k,
        }
        if level:
            problems = [data for _, data in trials.problems]
            found[level] |= _common_step(problems, asked["common_fraction"])
        else:  # real data keep to the text's reading
            for K, outcome in zip(counts, outcomes, strict=True):
                by_k[str(K)] |= _printed(outcome, asked["steps"], make, K, trials)
        record = trials.record()
        del trials  # large ones go before the next come
    return {"method": method, "levels": found, **record}


def _rank(found: dict[str, Any], K: str) -> tuple[bool, float, int]:
    return found["chaotic"], np.inf if found["score"] is None else found["score"], int(K)


def _printed(
    outcome: Search, steps: Sequence[float], make: Callable[[int, NDArray], Any], K: int, trials: Trials
) -> dict[str, Any]:
    """The best step of the printed grid, even at its edge, among what the search has found."""
    known = dict(zip(outcome.steps, outcome.scores, strict=True))
    if not np.isfinite([known[step] for step in steps]).any():
        return {}
    best = search(
        lambda points: np.array([known[step] for step in points]),
        Grid.of_steps(steps, 0, grow=False),
        admissible=lambda points: trials.stable(
            lambda rows, factors: make(K, points[rows] * factors), len(points)
        ),
    )
    return {"printed_step": best.step, "printed_score": best.score, "printed_chaotic": best.chaotic}


def _common_step(problems: list, fraction: float) -> dict[str, float]:
    """The step that every client's local gradient steps tolerate, to one significant digit."""
    smoothness = max(float(data.smoothness().max()) for data in problems)
    return {"smoothness": smoothness, "common_step": float(f"{fraction / smoothness:.0e}")}


def plan(method: str, settings: dict, tuned: dict) -> Iterator[Setting]:
    """List the curves of `method`, given the outcome of its `tune`."""
    named = drawn_levels(method, settings)
    for number, level in enumerate(named):
        found = tuned["levels"][level]
        by_k, best, batch = found["by_local_steps"], found["local_steps"], settings["batch"]
        largest = max(map(int, by_k))
        # Figure 1 draws every K, on the first level alone.
        every = sweep(method, settings) if number == 0 and level else []
        for K in sorted({best, *every}):
            yield Setting(level, "own", K, by_k[str(K)]["step"], batch, best == K)
        if level and number in (0, len(named) - 1):  # Figures 1 and 3; Figure 6 keeps to the text
            for K in sorted({largest, *every}):
                yield Setting(level, "common", K, found["common_step"], batch, largest == K)
        if method in COMPARED_OVER_LEVELS and level != named[-1]:
            yield Setting(level, "equal", largest, tuned["levels"][named[-1]]["common_step"], batch, True)
        if not level:
            on_grid = {int(K): one for K, one in by_k.items() if "printed_step" in one}
            if on_grid:
                best_on_grid = min(
                    on_grid, key=lambda K: (on_grid[K]["printed_chaotic"], on_grid[K]["printed_score"], K)
                )
                step = on_grid[best_on_grid]["printed_step"]
                yield Setting(level, "printed", best_on_grid, step, batch, True)
        if number == 0 and settings["full_batch_replicates"]:
            yield Setting(level, "own", best, by_k[str(best)]["step"], None, True)
            yield Setting(level, "common", largest, found["common_step"], None, True)


def run(
    method: str,
    settings: dict,
    tuned: dict,
    table: Any,
    partition: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run all curves and seeds of `method`; those of equal K and batch size run side by side."""
    if settings["problem"] == "planted":
        return _run_planted(method, settings, progress)
    if settings["problem"] == "classes":
        return by_class.run(method, settings, problem, table, partition, progress)
    curves = list(plan(method, settings, tuned))
    frames = []
    named = drawn_levels(method, settings)
    everyone = dict.fromkeys([*settings["replicates"], *settings["full_batch_replicates"]])
    # Levels inside: they share the data set's random numbers.
    visited = [named] if _side_by_side(method, settings) else [[level] for level in named]
    visits = list(itertools.product(everyone, visited))
    for number, (replicate, together) in enumerate(visits):
        if progress is not None:
            progress(f"{' and '.join(together)} seed {replicate}".strip(), number, len(visits))
        here = [
            curve
            for curve in curves
            if curve.level in together
            and replicate in settings["full_batch_replicates" if curve.batch is None else "replicates"]
        ]
        if here:
            data = _data_of(settings, together, replicate, table, partition)
            for kind in dict.fromkeys((curve.batch, curve.local_steps) for curve in here):
                group = [curve for curve in here if (curve.batch, curve.local_steps) == kind]
                frames.append(_histories(method, settings, group, replicate, data))
            del data  # it may be large: it goes before the next one comes
    frame = pd.concat(frames, ignore_index=True)
    if method in COMPARED_OVER_LEVELS and len(named) > 1:
        # At the last level the common step of that level is the equal one of all.
        last = frame[(frame["level"] == named[-1]) & (frame["reading"] == "common") & frame["tuned"]]
        frame = pd.concat([frame, last.assign(reading="equal")], ignore_index=True)
    return frame


def _side_by_side(method: str, settings: dict) -> bool:
    """Whether the levels of an experiment are rows of one problem, which then reads the same features once.

    Methods without a threshold between local steps go through these faster in the span of a client's samples
    where they are few, and that is another one at each level.
    """
    if settings["problem"] != "simulation":
        return False
    return method == "fediterht" or not in_span(settings["samples"], settings["features"])


def _data_of(
    settings: dict, together: list[str], replicate: int, table: Any, partition: Any
) -> Callable[[Sequence[str]], Any]:
    """The data of one replicate, as a function from the level of each row to the problem of these rows."""
    if len(together) == 1:
        one = problem(settings, together[0], replicate, table, partition)
        return lambda levels: one
    several = simulations(settings, [_variances(level) for level in together], replicate)
    return lambda levels: several.of_runs([together.index(level) for level in levels])


def _histories(
    method: str,
    settings: dict,
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
    streams = Streams(settings["seed"], (replicate,) * len(distinct))
    rounds = _rounds(method, settings, group[0])
    recorded = {"metrics": METRICS, "record_every": settings["record_every"]}
    if replicate in settings.get("twin_replicates", [replicate]):
        twinned = simulate_with_twins(
            lambda rows, factors: algorithm(method, settings, K, steps[rows] * factors, batch),
            data([level for level in at for _ in range(3)]),
            streams,
            rounds,
            **recorded,
        )
        history, chaotic, difference = twinned.history, twinned.chaotic[place], twinned.difference[place]
    else:
        history = simulate(
            algorithm(method, settings, K, steps, batch), data(at), streams, rounds, **recorded
        )
        chaotic, difference = np.zeros(len(place), bool), np.full(len(place), np.nan)
    return history.take(place).frame(
        method=method,
        level=[curve.level for curve in group],
        reading=[curve.reading for curve in group],
        local_steps=[curve.local_steps for curve in group],
        batch="full" if batch is None else str(batch),
        step=[curve.step for curve in group],
        tuned=[curve.tuned for curve in group],
        replicate=replicate,
        chaotic=chaotic,
        twin_difference=difference,
    )


def _rounds(method: str, settings: dict, curve: Setting) -> int:
    if curve.batch is None:
        return settings["full_batch_rounds"]
    # A baseline with one local step is cheap, and is what the others are held against far out.
    return (
        settings.get("baseline_rounds", settings["rounds"])
        if sweep(method, settings) == [1]
        else settings["rounds"]
    )


def _run_planted(method: str, settings: dict, progress: Progress | None) -> pd.DataFrame:
    """Run `method` as its theorem prescribes: step 1/(6 l), batches growing as 1/theta^t, capped at m.

    The first batch is the theorem's, or, where no bound is promised, the one of the settings.
    """
    kappa, tau, tau_star = settings["condition"], settings["sparsity"], settings["planted"]
    frames = []
    for number, replicate in enumerate(settings["replicates"]):
        if progress is not None:
            progress(f"seed {replicate}", number, len(settings["replicates"]))
        data, x_star, variance = planted(settings, replicate)

        def error(problem: Any, seen: dict[str, NDArray], x_star: NDArray = x_star) -> NDArray:
            return ((seen["server"] - x_star) ** 2).sum(axis=-1)

        for K in settings["local_steps"]:
            rate = RATES[method](kappa, tau, tau_star, K)
            step = 1.0 / (6.0 * kappa)  # l = kappa by construction
            asked = rate.spread * variance / (kappa**2 * (x_star**2).sum())
            for batch, first in (
                ("theorem", max(int(np.ceil(asked)), 1)),
                ("small", settings["first_batch"]),
            ):
                history = simulate(
                    algorithm(method, settings, K, np.array([step]), first, batch_decay=min(rate.theta, 1.0)),
                    data,
                    Streams(settings["seed"], (replicate,)),
                    settings["rounds"],
                    metrics={**METRICS, "error": error},
                    record_every=settings["record_every"],
                )
                frames.append(
                    history.frame(
                        method=method,
                        level="",
                        reading="theory",
                        local_steps=K,
                        batch=batch,
                        first_batch=first,
                        step=step,
                        tuned=True,
                        replicate=replicate,
                    )
                )
    return pd.concat(frames, ignore_index=True)
