"""One problem for all methods that are made for it, many repetitions side by side.

Whatever is sent and not quantised is a float of 32 bits: first-order methods compute with these, Newton-type
methods with doubles, of which they round what they send. FedMM computes with doubles and rounds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.engine.simulate import simulate
from replifed.engine.tune import SCORED, Grid, Trials, best_of_chaotic, search, with_margin
from replifed.network.fading import Constant
from replifed.network.ledger import dense_bits
from replifed.papers.cross import rates
from replifed.papers.cross.methods import algorithm, tunes, width
from replifed.papers.cross.problems import Regression, problem, solution
from replifed.progress import Progress, silent
from replifed.randomness import Streams

if TYPE_CHECKING:
    from replifed.papers.cross import settings as of

# A gap below is rounding.
_EXACT = 1e-12
# Share of a trial's rounds, at the end, in which a stable run agrees with its twins.
_TAIL = 0.2


def tune(
    method: str, settings: of.Experiment, table: Any, partition: Any, progress: Progress = silent
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
    if settings.problem == "rates" or settings.problem == "planted_rates":
        return rates.tune(method, settings, table, partition, progress)
    if not tunes(method):
        return {"method": method, "search": None, "trials": {"replicates": []}}
    chosen = settings.tuning
    together = Trials((), settings.seed, chosen.rounds)

    def trial(name: int) -> _Trial:
        return _Trial(method, settings, name, table, partition, together)

    def rescored(multiples: NDArray, known: NDArray) -> NDArray:
        more = [trial(name).descents(multiples) for name in chosen.replicates[SCORED:]]
        return np.mean([known] * SCORED + more, axis=0)

    trials = [trial(name) for name in chosen.replicates[:SCORED]]
    found = search(
        lambda multiples: np.mean([trial.descents(multiples) for trial in trials], axis=0),
        Grid.of_steps(chosen.multiples, chosen.refine),
        admissible=lambda multiples: np.all([trial.stable(multiples) for trial in trials], axis=0),
        choose=with_margin,
    )
    found = best_of_chaotic(found, rescored)
    return {"method": method, "search": found.record(), **together.record()}


class _Trial:
    """One repetition of the search; a multiple's reference value, and so the method, are of its own data."""

    def __init__(
        self, method: str, settings: of.OneRidge, replicate: int, table: Any, partition: Any, trials: Trials
    ) -> None:
        self._method, self._settings = method, settings
        self._exact, self._own = _both(method, settings, [replicate], table, partition)
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
    method: str,
    settings: of.Experiment,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Run the method on the reported repetitions, side by side, at the multiple that the search chose.

    Beside what histories have: message_bits, of one model from each client, and samples, of all clients.
    """
    if settings.problem == "rates" or settings.problem == "planted_rates":
        return rates.run(method, settings, tuned, table, partition, progress)
    names = tuple(settings.replicates)
    multiple = tuned["search"]["step"] if tuned is not None and tunes(method) else 1.0
    exact, own = _both(method, settings, names, table, partition)
    least = exact.loss(solution(exact))
    start = exact.loss(np.zeros((len(names), exact.dim))) - least
    bits = settings.bits
    history = simulate(
        algorithm(method, np.full(len(names), multiple), exact, settings),
        own,
        Streams(settings.seed, names),
        settings.rounds,
        metrics={"objective": partial(_objective, exact)},
        record_every=settings.record_every,
        channel=None if bits is None else Constant(bits),
        progress=partial(progress, "rounds"),
    )
    history.metrics["gap"] = relative_gap(history.metrics["objective"], least, start)
    frame = history.frame(method=method, multiple=multiple, replicate=names)
    samples = dict(zip(names, exact.sizes.sum(axis=1), strict=True))
    return frame.assign(
        message_bits=exact.n_clients * dense_bits(exact.dim), samples=frame["replicate"].map(samples)
    )


def _both(
    method: str, settings: of.OneRidge, replicates: Sequence[int], table: Any, partition: Any
) -> tuple[Regression, Regression]:
    """The problem in doubles, on which gaps are measured, and as the method computes on it."""
    exact = problem(settings, replicates, table, partition)
    if width(method) is np.float64:
        return exact, exact
    return exact, problem(settings, replicates, table, partition, np.float32)


def _objective(exact: Regression, _: Any, seen: dict[str, NDArray]) -> NDArray:
    """F at the server's model, in doubles."""
    return exact.loss(seen["server"].astype(float))


def relative_gap(values: NDArray, least: NDArray, start: NDArray) -> NDArray:
    """(F(x) - F*) / (F(0) - F*) from the values F(x) (T, R), F* (R,) and F(0) - F* (R,)."""
    return np.maximum(values - least, _EXACT * start) / start
