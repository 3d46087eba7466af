"""Plans: an experiment yields its simulations as plans, and `execute` runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replifed.algorithms.base import Algorithm
from replifed.engine.perturbed import simulate_perturbed
from replifed.engine.simulate import History, Metric, objective, simulate
from replifed.progress import Progress, silent
from replifed.randomness import Streams

if TYPE_CHECKING:
    import pandas as pd


class Ran(NamedTuple):
    """A history, and for each run (R,) the difference from perturbed ones and whether it is chaotic."""

    history: History
    chaotic: NDArray
    difference: NDArray  # NaN where the runs have no perturbed runs


@dataclass(frozen=True, kw_only=True)
class Planned:
    """Runs side by side on one problem, and the labels of their curves."""

    algorithm: Algorithm  # of R runs
    problem: Any
    replicates: Sequence[int]  # names of the repetition of each run, (R,)
    rounds: int
    # Columns of the history: a value for all curves, or a list of one per curve. The last column is
    # replicate, unless it is among these.
    labels: Mapping[str, Any] = field(default_factory=dict)
    # Columns that follow from the runs: a function of `Ran` to one value per run, (R,).
    run_labels: Mapping[str, Callable[[Ran], ArrayLike]] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=lambda: {"objective": objective})
    derived: Mapping[str, Callable[[History], NDArray]] = field(default_factory=dict)  # more metrics, (T, R)
    # Index of the run that each curve shows, where several curves show one run; by default one curve per run.
    run_of_curve: Sequence[int] | None = None
    # Whether the runs are compared with perturbed runs, and whether what these record is kept.
    perturbed: Literal["compared", "recorded"] | None = None
    compared: str = "objective"  # the metric by which they are compared
    record_every: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)  # further ones of `simulate`, such as the cohort


def execute(
    method: str, seed: int, plans: Iterable[Planned], progress: Progress = silent, total: int = 0
) -> pd.DataFrame:
    """Run plans, one after the other.

    Parameters
    ----------
    method : str
        Name of the method, the first column.
    seed : int
        Seed of the experiment.
    plans : iterable of Planned
        A generator can build each problem only when its plan is run, and free it afterwards.
    progress : Progress
    total : int
        Number of plans, 0 if unknown.

    Returns
    -------
    DataFrame
        A row for each plan, curve and recorded round: method, labels, and the columns of `History.frame`.
    """
    frames: list[pd.DataFrame] = []
    for plan in plans:
        case = _case(plan)
        progress(case, len(frames), total)
        rounds = partial(progress, f"{case}, rounds".removeprefix(", "))
        frames.append(_frame(method, plan, run_plan(plan, seed, rounds)))
        del plan  # its problem may be large, and goes before the next one comes
    return in_one_table(frames)


def in_one_table(pieces: Iterable[Mapping[str, Any] | pd.DataFrame]) -> pd.DataFrame:
    """Concatenate pieces: tables, or dictionaries of columns."""
    import pandas as pd  # late: with pyarrow it takes as long as all else that a job imports

    return pd.concat([pd.DataFrame(piece) for piece in pieces], ignore_index=True)


def run_plan(plan: Planned, seed: int, progress: Callable[[int, int], None] | None = None) -> Ran:
    """Run one plan and return its history, without making a table."""
    streams, R = Streams(seed, tuple(plan.replicates)), len(plan.replicates)
    options = {"metrics": plan.metrics, "record_every": plan.record_every, **plan.options}
    if plan.perturbed is None:
        history = simulate(plan.algorithm, plan.problem, streams, plan.rounds, progress=progress, **options)
        return Ran(history, np.zeros(R, bool), np.full(R, np.nan))
    perturbed = simulate_perturbed(
        plan.algorithm,
        plan.problem,
        streams,
        plan.rounds,
        compared=plan.compared,
        progress=progress,
        **options,
    )
    history = perturbed.recorded if plan.perturbed == "recorded" else perturbed.history
    return Ran(history, perturbed.chaotic, perturbed.difference)


def _case(plan: Planned) -> str:
    """The labels that all curves share, as text."""
    shared = {key: value for key, value in plan.labels.items() if isinstance(value, str | int | float)}
    if len(plan.replicates) == 1:
        shared["replicate"] = plan.replicates[0]
    texts = {key: value if isinstance(value, str) else f"{value:g}" for key, value in shared.items()}
    return ", ".join(f"{key} {text}" for key, text in texts.items() if text)


def _frame(method: str, plan: Planned, ran: Ran) -> pd.DataFrame:
    history = ran.history
    runs = np.arange(len(ran.chaotic)) if plan.run_of_curve is None else np.asarray(plan.run_of_curve)
    more = {name: values(history) for name, values in plan.derived.items()}
    history = replace(history, metrics={**history.metrics, **more}).take(runs)
    labels = {"replicate": np.asarray(plan.replicates)[runs]}
    labels = {**plan.labels} if "replicate" in plan.labels else {**plan.labels, **labels}
    labels |= {name: np.asarray(value(ran))[runs] for name, value in plan.run_labels.items()}
    return history.frame(method=method, **labels)
