"""Logistic regression on real data, dealt to clients by k-means: one problem for all methods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.network.fading import Constant
from replifed.papers.cross.methods import Moduli, algorithm, tunes
from replifed.papers.progress import Progress
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams, generator
from replifed.simulate import objective, simulate
from replifed.tune import Search, search

# A gap below is rounding.
_EXACT = 1e-12
# Rounds of a trial between two looks at whether it has diverged.
_LOOK = 10


def problem(settings: dict, replicate: int, table: Any, partition: Any) -> DenseLinearModel:
    """Each client's samples, at most `samples` of them, drawn; F is the plain mean of the losses f_i."""
    client = partition.clients[replicate]
    N, m = int(client.max()) + 1, settings["samples"]
    rng = generator(settings["seed"], replicate, None, "samples")
    drawn = [rng.permutation(np.flatnonzero(client == i))[:m] for i in range(N)]
    sizes = np.array([[len(rows) for rows in drawn]])
    X = np.zeros((1, N, sizes.max(), table.X.shape[1]))
    y = np.ones(X.shape[:3])
    for i, rows in enumerate(drawn):
        X[0, i, : len(rows)] = table.X[rows].toarray()
        y[0, i, : len(rows)] = np.where(table.y[rows] > 0, 1.0, -1.0)
    weights = np.full(sizes.shape, 1.0 / N)
    return DenseLinearModel(X, y, loss_named("logistic"), sizes=sizes, weights=weights, l2=settings["ridge"])


def tune(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None = None
) -> dict[str, Any]:
    """Search the method's one number on repetitions that are not reported.

    A multiple that suits one draw of the data may diverge on the next. So the score is the mean objective
    over several, infinite if one diverges, and the choice keeps a distance from where this happens, see
    `_with_margin`.

    Returns
    -------
    dict
        method, and search: {step, score, steps, scores}, see `tune.Search.record`, where steps are multiples
        of the method's reference value; None for a method with no number to tune.
    """
    if not tunes(method):
        return {"method": method, "search": None}
    chosen = settings["tuning"]
    if progress is not None:
        progress("searching", 0, 1)
    problems = {name: problem(settings, name, table, partition) for name in chosen["replicates"]}

    def score(multiples: NDArray) -> NDArray:
        total = np.zeros(len(multiples))
        for replicate, data in problems.items():
            left = np.isfinite(total)
            if left.any():
                total[left] += _trial(method, multiples[left], settings, replicate, data)
        return total / len(problems)

    found = search(score, chosen["multiples"], chosen["refine"])
    return {"method": method, "search": _with_margin(found).record()}


def _with_margin(found: Search) -> Search:
    """The search with the step for which the worse of its own and the next larger step's score is lowest.

    The best step often lies just below the largest that works. How large that is differs from draw to draw,
    so there the best step of one draw is lost on another.
    """
    worse = np.maximum(found.scores[:-1], found.scores[1:])
    if not np.isfinite(worse).any():
        return found
    return replace(found, best=found.steps[int(np.argmin(worse))])


def _trial(
    method: str, multiples: NDArray, settings: dict, replicate: int, data: DenseLinearModel
) -> NDArray:
    """Objective at the end of the search's rounds, infinite where it is no lower than at the beginning.

    Such a run is on its way to diverge, or has found a step on which it only oscillates.
    """
    rounds = settings["tuning"]["rounds"]
    history = simulate(
        algorithm(method, multiples, _moduli(data), settings, data.dim),
        data,
        Streams(settings["seed"], (replicate,) * len(multiples)),
        rounds,
        record_every=min(_LOOK, rounds),
    )
    values = history.metrics["objective"]
    return np.where(values[-1] < values[0], values[-1], np.inf)


def run(
    method: str,
    settings: dict,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run the method on the reported repetitions, at the multiple that the search chose."""
    multiple = tuned["search"]["step"] if tunes(method) else 1.0
    frames = []
    for number, replicate in enumerate(settings["replicates"]):
        if progress is not None:
            progress(f"seed {replicate}", number, len(settings["replicates"]))
        data = problem(settings, replicate, table, partition)
        least = data.loss(minimiser(data, 1))
        start = data.loss(np.zeros((1, data.dim))) - least
        history = simulate(
            algorithm(method, np.array([multiple]), _moduli(data), settings, data.dim),
            data,
            Streams(settings["seed"], (replicate,)),
            settings["rounds"],
            metrics={"objective": objective},
            record_every=settings["record_every"],
            channel=Constant(settings["bits"]),
        )
        history.metrics["gap"] = relative_gap(history.metrics["objective"], least, start)
        frames.append(history.frame(method=method, multiple=multiple, replicate=replicate))
    return pd.concat(frames, ignore_index=True)


def relative_gap(values: NDArray, least: NDArray, start: NDArray) -> NDArray:
    """(F(x) - F*) / (F(0) - F*) from the values F(x) (T, R), F* (R,) and F(0) - F* (R,)."""
    return np.maximum(values - least, _EXACT * start) / start


def _moduli(data: DenseLinearModel) -> Moduli:
    return Moduli(float(data.strong_convexity().min()), float(data.smoothness().max()), data.n_clients)
