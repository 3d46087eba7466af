"""One problem for all methods that suit it, many repetitions side by side.

Messages that are not quantised have floats of 32 bits: first-order methods compute with these, Newton-type
methods with doubles, and round their messages. FedMM computes with doubles and rounds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.registry import BUILT_IN, method_class, tunes
from replifed.engine.accuracy import ACCURACY, NEW, WORST, TestSet
from replifed.engine.perturbed import PERTURBED
from replifed.engine.plans import Planned, execute
from replifed.engine.search import Budget, Grid, search, with_margin
from replifed.engine.simulate import BLOW_UP, objective
from replifed.engine.trials import Check, Spent, Trials
from replifed.network.fading import Constant
from replifed.network.ledger import dense_bits
from replifed.network.participation import weighted_view
from replifed.papers.cross.held_out import Held
from replifed.papers.cross.methods import algorithm, asked_for, law, width
from replifed.papers.cross.problems import Regression, SparseRegression, problem, solution
from replifed.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.cross import settings as of

# A gap below is rounding.
_EXACT = 1e-12
# Weight of the objective, as a share of that at the beginning, among trials that are equally accurate.
_TIE = 1e-6
# Share of a trial's rounds, at the end, in which a stable run agrees with its perturbed runs.
_TAIL = 0.2


def tune(
    method: str,
    settings: of.Experiment,
    table: Any,
    partition: Any,
    progress: Progress = silent,
    *,
    test: Any = None,
) -> dict[str, Any]:
    """Search the method's one number on repetitions that are not reported, without what is kept for a test.

    A multiple that suits one draw of the data may diverge on the next. So the score is the mean objective
    over several, infinite if one ends no lower than it began, and the choice keeps a distance from where
    this happens, see `search.with_margin`. The choice is stable on all of them, see `perturbed`. Each method
    may spend as many runs, those of an extended grid and of checks included. With `tuning.validation` the
    score is the share of wrong samples, mean over clients, of a share of the training samples, which is kept
    for this; of equal ones the lower objective is better.

    Returns
    -------
    dict
        method, and search: what `search.Search.record` says, where steps are multiples of the method's
        reference value; None for a method with no number to tune. Then cost, what the search used of its
        budget, a number of runs, and trials, on which repetitions.
    """
    if not tunes(method):
        return {"method": method, "search": None, "trials": {"replicates": []}}
    chosen = settings.tuning
    spent, each = Spent(), len(chosen.replicates)
    held = _held(settings, table, partition, test, chosen.validation)
    trials = [
        _Trial(method, settings, name, *held[:2], spent, held.test([name]) if chosen.validation else None)
        for name in chosen.replicates
    ]
    budget = None
    if chosen.runs is not None:
        budget = Budget(chosen.runs, lambda: spent.runs, each, (1 + len(PERTURBED)) * each)
    found = search(
        lambda multiples: np.mean([trial.descents(multiples) for trial in trials], axis=0),
        Grid.of_steps(chosen.multiples, chosen.refine),
        admissible=lambda multiples: np.all([trial.stable(multiples) for trial in trials], axis=0),
        choose=with_margin,
        budget=budget,
    )
    return {
        "method": method,
        "search": found.record(),
        "trials": {"replicates": sorted(spent.replicates)},
        "cost": {**spent.record(), "budget": chosen.runs},
    }


class _Trial:
    """One repetition of the search; a multiple's reference value, and so the method, are of its own data."""

    def __init__(
        self,
        method: str,
        settings: of.Experiment,
        replicate: int,
        table: Any,
        partition: Any,
        spent: Spent,
        validation: TestSet | None = None,
    ) -> None:
        _, exact, own = _problems(method, settings, [replicate], table, partition)
        start = own.loss(np.zeros((1, own.dim), own.dtype))
        # Shares of wrong samples are above 1 where the objective is no lower than at the beginning.
        self._start = start if validation is None else np.ones(1)
        self._make = partial(algorithm, method, problem=exact, settings=settings)
        self._trials = Trials(
            [replicate],
            lambda _: own,
            settings.seed,
            settings.tuning.rounds,
            metric=objective if validation is None else partial(_wrong, validation, start),
            check=Check(tail=_TAIL),
            options={"cohort": law(method, own, settings)},
            spent=spent,
        )

    def descents(self, multiples: NDArray) -> NDArray:
        """Objectives, or wrong shares, at the end; infinite where the objective is not below the beginning's.

        Such a run is on its way to diverge, or has found a step on which it only oscillates.
        """
        ends, _ = self._trials.scores(self._runs(multiples), np.zeros(len(multiples), int))
        return np.where(ends < self._start, ends, np.inf)

    def stable(self, multiples: NDArray) -> NDArray:
        """Mask of the runs that end as their perturbed runs do."""
        return self._trials.stable(self._runs(multiples), np.zeros(len(multiples), int))

    def _runs(self, multiples: NDArray) -> Callable[[NDArray, NDArray], Any]:
        return lambda runs, factors: self._make(multiples[runs] * factors)


def run(
    method: str,
    settings: of.Experiment,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress = silent,
    *,
    test: Any = None,
) -> pd.DataFrame:
    """Run the method on the reported repetitions, side by side, at the multiple that the search chose.

    With a test, accuracies are recorded, too; they are 0 once a run has diverged.
    """
    held = _held(settings, table, partition, test)
    # Repetitions on sparse features have a problem each.
    parts = (
        [[name] for name in settings.replicates] if settings.problem == "sparse" else [settings.replicates]
    )
    plans = (_planned(method, settings, part, tuned, *held) for part in parts)
    frame = execute(method, settings.seed, plans, progress, total=len(parts))
    accuracies = [name for name in (ACCURACY, WORST, NEW) if name in frame]
    return frame.assign(**{name: frame[name].mask(frame["diverged"], 0.0) for name in accuracies})


class _Held(NamedTuple):
    """Data set and split to train on, and what makes the test set of some repetitions."""

    table: Any
    partition: Any
    test: Callable[[Sequence[int]], TestSet | None]


def _held(
    settings: of.Experiment, table: Any, partition: Any, official: Any, validation: str | None = None
) -> _Held:
    if settings.problem == "planted" or settings.test is None:
        return _Held(table, partition, lambda _: None)
    held = Held(settings, table, partition, official, validation)
    return _Held(held.table, held.partition, held.test)


def _wrong(validation: TestSet, start: NDArray, problem: Any, seen: dict[str, NDArray]) -> NDArray:
    """Share of wrong samples, one more where the objective is not below `start`, infinite if it blows up."""
    x = seen["server"]
    F, wrong = problem.loss(x), 1.0 - validation.accuracies(x.astype(float))[ACCURACY]
    score = wrong + _TIE * F / start + (start <= F)
    return np.where(BLOW_UP * np.maximum(start, 1.0) >= F, score, np.inf)


def _planned(
    method: str,
    settings: of.Experiment,
    replicates: Sequence[int],
    tuned: dict | None,
    table: Any,
    partition: Any,
    tests: Callable[[Sequence[int]], TestSet | None] = lambda _: None,
) -> Planned:
    """Some repetitions; message_bits is of one model from each client, and samples of all clients."""
    test = tests(replicates)
    multiple = tuned["search"]["step"] if tuned is not None and tunes(method) else 1.0
    exact, made_for, own = _problems(method, settings, replicates, table, partition)
    least = exact.loss(solution(exact))
    start = exact.loss(np.zeros((len(least), exact.dim))) - least
    return Planned(
        algorithm=algorithm(method, np.full(len(least), multiple), made_for, settings),
        problem=own,
        replicates=replicates,
        rounds=settings.rounds,
        labels={
            "multiple": multiple,
            "message_bits": exact.n_clients * dense_bits(exact.dim),
            "samples": exact.sizes.sum(axis=1),
            **({} if test is None else _counts(test, len(least))),
        },
        metrics={"objective": partial(_objective, exact), **({} if test is None else test.metrics())},
        derived={"gap": lambda history: relative_gap(history.metrics["objective"], least, start)},
        record_every=settings.record_every,
        options={
            "cohort": law(method, own, settings),
            "channel": None if settings.bits is None else Constant(settings.bits),
            "audited": method not in BUILT_IN,  # which the tests hold to their books
        },
    )


def _problems(
    method: str, settings: of.Experiment, replicates: Sequence[int], table: Any, partition: Any
) -> tuple[Any, Any, Any]:
    """The problem in doubles, for gaps; as the method gets it; and that in the method's precision."""
    exact = problem(settings, replicates, table, partition)
    cohorts = law(method, exact, settings) is not None
    own = weighted_view(method_class(method), exact, asked_for(settings).average if cohorts else "own")
    return exact, own, own if width(method) is np.float64 else own.in_floats()


def _counts(test: TestSet, runs: int) -> dict[str, Any]:
    """Over how many samples, clients that train and new clients the accuracies of each run are."""
    counts = {"test_samples": test.samples, "test_clients": test.known, "test_new_clients": test.new}
    return {name: np.resize(np.asarray(count), runs) for name, count in counts.items()}


def _objective(exact: Regression | SparseRegression, _: Any, observed: dict[str, NDArray]) -> NDArray:
    """F at the server's model, in doubles."""
    return exact.loss(observed["server"].astype(float))


def relative_gap(values: NDArray, least: NDArray, start: NDArray) -> NDArray:
    """(F(x) - F*) / (F(0) - F*) from the values F(x) (T, R), F* (R,) and F(0) - F* (R,)."""
    return np.maximum(values - least, _EXACT * start) / start
