"""Logistic regression on real data, dealt to clients by k-means: one problem for all methods."""

from __future__ import annotations

from collections.abc import Callable
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
from replifed.tune import tune_step

# A gap below is rounding.
_EXACT = 1e-12


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


def run(
    method: str,
    settings: dict,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Search the method's one number on a repetition that is not reported, then run the others with it."""
    search = settings["search"]
    apart = problem(settings, search["replicate"], table, partition)
    multiple = 1.0
    if tunes(method):
        if progress is not None:
            progress("searching", 0, 1)
        multiple = tune_step(
            lambda grid: algorithm(method, grid, _moduli(apart), settings, apart.dim),
            [(search["replicate"], apart)],
            settings["seed"],
            search["rounds"],
            search["multiples"],
            search["refine"],
        ).best
    reported = [name for name in settings["replicates"] if name != search["replicate"]]
    frames = []
    for number, replicate in enumerate(reported):
        if progress is not None:
            progress(f"seed {replicate}", number, len(reported))
        data = problem(settings, replicate, table, partition)
        least = data.loss(minimiser(data, 1))
        start = data.loss(np.zeros((1, data.dim))) - least
        history = simulate(
            algorithm(method, np.array([multiple]), _moduli(data), settings, data.dim),
            data,
            Streams(settings["seed"], (replicate,)),
            settings["rounds"],
            metrics={"objective": objective, "gap": _gap(least, start)},
            record_every=settings["record_every"],
            channel=Constant(settings["bits"]),
        )
        frames.append(history.frame(method=method, multiple=multiple, replicate=replicate))
    return pd.concat(frames, ignore_index=True)


def _gap(least: NDArray, start: NDArray) -> Callable[[Any, dict[str, NDArray]], NDArray]:
    """(F(x) - F*) / (F(0) - F*)."""

    def gap(data: Any, seen: dict[str, NDArray]) -> NDArray:
        return np.maximum(data.loss(seen["server"]) - least, _EXACT * start) / start

    return gap


def _moduli(data: DenseLinearModel) -> Moduli:
    return Moduli(float(data.strong_convexity().min()), float(data.smoothness().max()), data.n_clients)
