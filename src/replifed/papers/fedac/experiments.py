"""Experiments of the paper, and on fresh seeds; each has a kind.

* `grid`: all steps eta, numbers M of workers and K of local steps, on one seed, each run with two perturbed
  ones, which show whether it can be reproduced at all;
* `fresh`: at each (M, K) the step that is best on some seeds, and the one that the authors chose, on other
  seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.engine.perturbed import PERTURBED
from replifed.engine.plans import in_one_table
from replifed.papers.fedac import published
from replifed.papers.fedac.coupled import Logistic, Numbers, constants_of, draw, joined, objectives
from replifed.papers.fedac.paper import VARIANTS
from replifed.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.fedac import settings as of

# Factor by which perturbed runs' starts, or steps, are longer.
_LONGER = 1 + 1e-10
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
    search = list(_search_fresh(method, settings, table, progress))
    return {"method": method, "search": search, "trials": {"replicates": settings.tuning.replicates}}


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
    assert tuned is not None  # as fresh seeds have
    steps = {(found["method"], found["M"], found["K"]): found["step"] for found in tuned["search"]}
    return _fresh(method, settings, steps, table, progress)


def variants(method: str, settings: of.Experiment) -> list[str]:
    """The authors' names for a method, of those that an experiment runs."""
    return [name for name in settings.steps if VARIANTS[name].method == method]


# --- All steps ------------------------------------------------------------------------------------


def _grid(method: str, settings: of.Grid, table: Any, progress: Progress) -> pd.DataFrame:
    """A line a run and record; of_start and of_step are objectives of perturbed runs."""
    problem, names, frames = Logistic(table, settings.l2), variants(method, settings), []
    cases = list(product(settings.replicates, settings.workers))
    for done, (seed, M) in enumerate(cases):
        numbers = _numbers(settings, problem, seed, M)
        for K in settings.local_steps:
            progress(f"M = {M}, K = {K}", done, len(cases))
            runs = [(name, eta) for name in names for eta in _steps(settings, name, M, K)]
            values = _with_perturbed(problem, settings, runs, K, numbers)
            frames.append(_lines(settings, runs, values, replicate=seed, M=M, K=K))
    return in_one_table(frames)


def _steps(settings: of.Grid, name: str, M: int, K: int) -> NDArray:
    """The steps of a method; with `neighbours` those around the one that the authors chose, if any."""
    ladder = np.array(settings.steps[name])
    if settings.neighbours is None:
        return ladder
    best = published.best_steps(settings.l2, name).get((M, K))
    return ladder[:0] if best is None else _around(ladder, best, settings.neighbours)


def _around(ladder: NDArray, step: float, neighbours: int) -> NDArray:
    """The step with its neighbours on either side, or further ones on the other side at an end."""
    ladder = np.sort(ladder)
    width = min(2 * neighbours + 1, len(ladder))
    first = int(np.abs(np.log(ladder / step)).argmin()) - neighbours
    first = min(max(first, 0), len(ladder) - width)
    return ladder[first : first + width]


def _numbers(settings: of.Grid | of.Fresh, problem: Logistic, seed: int, M: int) -> Numbers:
    return draw(settings.random, settings.seed, seed, problem.dim, problem.n, settings.iterations, M)


def _with_perturbed(
    problem: Logistic, settings: of.Grid | of.Fresh, runs: Runs, K: int, numbers: Numbers
) -> dict[str, NDArray]:
    """Objectives (records, L) of the runs, of runs with longer starts, and of runs with longer steps."""
    longer = [(name, eta * _LONGER) for name, eta in runs]
    start = np.repeat([1.0, _LONGER, 1.0], len(runs))[:, None] * numbers.start
    values = _objectives(problem, settings, [*runs, *runs, *longer], start, K, numbers)
    return dict(zip(("objective", *PERTURBED), np.split(values, 3, axis=1), strict=True))


def _objectives(
    problem: Logistic, settings: of.Grid | of.Fresh, runs: Runs, start: NDArray, K: int, numbers: Numbers
) -> NDArray:
    """Objectives (records, L) of runs that start at `start` (L, D)."""
    (kind,) = {VARIANTS[name].kind for name, _ in runs}
    constants = joined([constants_of(name, np.array([eta]), settings.l2, K) for name, eta in runs])
    return objectives(problem, kind, constants, start, numbers, K, settings.every)


def _lines(
    settings: of.Grid | of.Fresh, runs: Runs, objectives: Mapping[str, NDArray], **labels: Any
) -> dict[str, NDArray]:
    """Columns of objectives (records, L) as lines, run by run; labels are one for all, or (L,)."""
    name, eta = zip(*runs, strict=True)
    labels |= {"method": name, "eta": eta}
    records = len(objectives["objective"])
    columns = {key: np.repeat(np.broadcast_to(label, len(runs)), records) for key, label in labels.items()}
    columns["round"] = np.tile(settings.every * np.arange(records), len(runs))
    return columns | {key: values.T.ravel() for key, values in objectives.items()}


# --- Fresh seeds ----------------------------------------------------------------------------------


def _search_fresh(
    method: str, settings: of.Fresh, table: Any, progress: Progress
) -> Iterator[dict[str, Any]]:
    from replifed.papers.fedac.measures import sensitive_to_rounding

    problem, tuning = Logistic(table, settings.l2), settings.tuning
    cases = list(product(variants(method, settings), settings.workers))
    for done, (name, M) in enumerate(cases):
        numbers = [_numbers(settings, problem, seed, M) for seed in tuning.replicates]
        for K in settings.local_steps:
            progress(f"search {name}, M = {M}, K = {K}", done, len(cases))
            best = published.best_steps(settings.l2, name)[M, K]
            steps = _around(np.array(settings.steps[name]), best, tuning.neighbours)
            runs = [(name, eta) for eta in steps]
            by_seed = [_with_perturbed(problem, settings, runs, K, drawn) for drawn in numbers]
            scores = np.mean([_score(values["objective"], problem) for values in by_seed], axis=0)
            sensitive = [sensitive_to_rounding(*(v.T for v in values.values()))[1] for values in by_seed]
            yield {"method": name, "M": M, "K": K, **_choice(steps, scores, ~np.any(sensitive, axis=0))}


def _score(values: NDArray, problem: Logistic) -> NDArray:
    """Decimal logarithm of the least gap of records, as the paper takes it; (records, L) to (L,)."""
    return np.log10(np.maximum(values.min(axis=0) - problem.minimum, _LEAST))


def _choice(steps: NDArray, scores: NDArray, stable: NDArray) -> dict[str, Any]:
    allowed = stable if stable.any() else np.ones_like(stable)
    step = float(steps[np.where(allowed, scores, np.inf).argmin()])
    return {"steps": steps.tolist(), "scores": scores.tolist(), "stable": stable.tolist(), "step": step}


def _fresh(method: str, settings: of.Fresh, steps: dict, table: Any, progress: Progress) -> pd.DataFrame:
    """A line a run and record; `choice` is "searched" or "authors", and gap is to the true minimum."""
    problem, names, frames = Logistic(table, settings.l2), variants(method, settings), []
    choice = np.repeat(["searched", "authors"], len(names))
    cases = list(product(settings.replicates, settings.workers))
    for done, (seed, M) in enumerate(cases):
        progress(f"M = {M}, seed {seed}", done, len(cases))
        numbers = _numbers(settings, problem, seed, M)
        start = np.repeat(numbers.start[None], len(choice), axis=0)
        for K in settings.local_steps:
            runs = [(name, steps[name, M, K]) for name in names]
            runs += [(name, published.best_steps(settings.l2, name)[M, K]) for name in names]
            values = {"objective": _objectives(problem, settings, runs, start, K, numbers)}
            frames.append(_lines(settings, runs, values, replicate=seed, choice=choice, M=M, K=K))
    frame = in_one_table(frames)
    return frame.assign(gap=np.maximum(frame["objective"] - problem.minimum, _LEAST))
