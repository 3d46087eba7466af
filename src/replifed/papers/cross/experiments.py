"""Logistic regression on real data, dealt to clients by k-means: one problem for all methods.

Whatever is sent and not quantised is a float of 32 bits: first-order methods compute with these, Newton-type
methods with doubles, of which they round what they send.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.network.fading import Constant
from replifed.papers.cross.methods import algorithm, tunes, width
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.progress import Progress, silent
from replifed.randomness import Streams, generator
from replifed.simulate import simulate
from replifed.tune import SCORED, Grid, Trials, best_of_chaotic, search, with_margin

# A gap below is rounding.
_EXACT = 1e-12
# Share of a trial's rounds, at the end, in which a stable run agrees with its twins.
_TAIL = 0.2


def problem(
    method: str, settings: dict, replicate: int, table: Any, partition: Any
) -> tuple[DenseLinearModel, DenseLinearModel]:
    """F in doubles, on which gaps are measured, and as the method computes on it (`methods.width`).

    Each client has at most so many samples, drawn; F is the plain mean of the losses f_i.
    """
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

    def at(dtype: type) -> DenseLinearModel:
        loss, l2 = loss_named("logistic"), settings["ridge"]
        return DenseLinearModel(X.astype(dtype), y.astype(dtype), loss, sizes=sizes, weights=weights, l2=l2)

    return at(np.float64), at(width(method))


def tune(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress = silent
) -> dict[str, Any]:
    """Search the method's one number on repetitions that are not reported.

    A multiple that suits one draw of the data may diverge on the next. So the score is the mean objective
    over several, infinite if one ends no lower than it began, and the choice keeps a distance from where this
    happens, see `tune.with_margin`. The choice is stable on all of them, see `twins`.

    Returns
    -------
    dict
        method, and search: what `tune.Search.record` says, where steps are multiples of the method's
        reference value; None for a method with no number to tune. Then cost, what the search used, and
        trials, on which repetitions.
    """
    if not tunes(method):
        return {"method": method, "search": None, "trials": {"replicates": []}}
    chosen = settings["tuning"]
    together = Trials((), settings["seed"], chosen["rounds"])

    def trial(name: int) -> _Trial:
        return _Trial(method, settings, name, table, partition, together)

    def rescored(multiples: NDArray, known: NDArray) -> NDArray:
        more = [trial(name).descents(multiples) for name in chosen["replicates"][SCORED:]]
        return np.mean([known] * SCORED + more, axis=0)

    trials = [trial(name) for name in chosen["replicates"][:SCORED]]
    found = search(
        lambda multiples: np.mean([trial.descents(multiples) for trial in trials], axis=0),
        Grid.of_steps(chosen["multiples"], chosen["refine"]),
        admissible=lambda multiples: np.all([trial.stable(multiples) for trial in trials], axis=0),
        choose=with_margin,
    )
    found = best_of_chaotic(found, rescored)
    return {"method": method, "search": found.record(), **together.record()}


class _Trial:
    """One repetition of the search; a multiple's reference value, and so the method, are of its own data."""

    def __init__(
        self, method: str, settings: dict, replicate: int, table: Any, partition: Any, trials: Trials
    ) -> None:
        self._method, self._settings = method, settings
        self._exact, self._own = problem(method, settings, replicate, table, partition)
        # What is spent is counted together.
        self._trials = replace(trials, problems=[(replicate, self._own)])

    def _make(self, multiples: NDArray) -> Any:
        return algorithm(self._method, multiples, self._exact, self._settings)

    def descents(self, multiples: NDArray) -> NDArray:
        """Objectives at the end, infinite where they are no lower than at the beginning.

        Such a run is on its way to diverge, or has found a step on which it only oscillates.
        """
        ends = self._trials.scores(lambda runs: self._make(multiples[runs]), len(multiples))
        start = self._own.loss(np.zeros((1, self._own.dim), self._own.dtype))
        return np.where(ends < start, ends, np.inf)

    def stable(self, multiples: NDArray) -> NDArray:
        """Whether the runs end as their twins do."""
        late = replace(self._trials, tail=_TAIL)
        return late.stable(lambda runs, factors: self._make(multiples[runs] * factors), len(multiples))


def run(
    method: str, settings: dict, tuned: dict | None, table: Any, partition: Any, progress: Progress = silent
) -> pd.DataFrame:
    """Run the method on the reported repetitions, at the multiple that the search chose."""
    multiple = tuned["search"]["step"] if tuned is not None and tunes(method) else 1.0
    frames = []
    for number, replicate in enumerate(settings["replicates"]):
        progress(f"seed {replicate}", number, len(settings["replicates"]))
        exact, own = problem(method, settings, replicate, table, partition)
        least = exact.loss(minimiser(exact, 1))
        start = exact.loss(np.zeros((1, exact.dim))) - least
        history = simulate(
            algorithm(method, np.array([multiple]), exact, settings),
            own,
            Streams(settings["seed"], (replicate,)),
            settings["rounds"],
            metrics={"objective": partial(_objective, exact)},
            record_every=settings["record_every"],
            channel=Constant(settings["bits"]),
        )
        history.metrics["gap"] = relative_gap(history.metrics["objective"], least, start)
        frames.append(history.frame(method=method, multiple=multiple, replicate=replicate))
    return pd.concat(frames, ignore_index=True)


def _objective(exact: DenseLinearModel, _: Any, seen: dict[str, NDArray]) -> NDArray:
    """F at the server's model, in doubles."""
    return exact.loss(seen["server"].astype(float))


def relative_gap(values: NDArray, least: NDArray, start: NDArray) -> NDArray:
    """(F(x) - F*) / (F(0) - F*) from the values F(x) (T, R), F* (R,) and F(0) - F* (R,)."""
    return np.maximum(values - least, _EXACT * start) / start
