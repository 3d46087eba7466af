"""The package from Python: problems from arrays, methods by name or of one's own, runs as data frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.algorithms.registry import method_class
from replifed.claims.pairs import used_until
from replifed.engine.simulate import History, simulate
from replifed.errors import ReplifedError
from replifed.figures.lines import SEQUENCE
from replifed.network.participation import MANY, FixedSize
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams

# What a run has used, by the name of an axis.
_USED = {
    "rounds": ("round", "communication rounds"),
    "bits": ("bits", "bits, up and down, all clients"),
    "gradients": ("sample_gradients", "sample gradients"),
}
_EXACT = 1e-15  # a smaller gap is rounding
# Fewest records of a run whose objective costs more than its rounds.
_FEWEST = 20


def method(source: str, **settings: Any) -> Any:
    """A method by name (`replifed list methods`) or `FILE.py:CLASS`, with its settings."""
    return method_class(source)(**settings)


def run(
    algorithm: Any,
    problem: Any,
    rounds: int,
    seeds: int = 1,
    *,
    cohort: int | None = None,
    record_every: int | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Run a method on a problem.

    Parameters
    ----------
    algorithm : Method
        Such as from `method`.
    problem : Problem
        Such as from `problems.from_clients`.
    rounds : int
    seeds : int
        Repetitions, which run side by side; what the method draws differs.
    cohort : int, optional
        Clients that take part in a round, drawn anew each time; all by default.
    record_every : int, optional
        Rounds from one record to the next; the history has no others. 1 by default; with a cohort of more
        than 1,000 clients N / cohort, so that objectives of all clients cost about as much as the rounds, or
        fewer if there were less than 20 records.
    **options
        Of `simulate`.

    Returns
    -------
    DataFrame
        A line a seed and recorded round: seed, round, objective, bits, sample_gradients and the rest of the
        ledger, totals so far; diverged.
    """
    streams = Streams(0, tuple(range(1, seeds + 1)))
    chosen = None if cohort is None else FixedSize(cohort)
    if record_every is None:
        N = problem.n_clients
        record_every = 1 if cohort is None or N <= MANY else max(min(N // cohort, rounds // _FEWEST), 1)
    history: History = simulate(
        algorithm, problem, streams, rounds, cohort=chosen, record_every=record_every, **options
    )
    frame = history.frame(seed=streams.replicates)
    return frame.assign(bits=frame["bits_up"] + frame["bits_down"])


@dataclass(frozen=True)
class Comparison:
    """Runs of several methods on one problem: `frame`, with a column method and one gap."""

    frame: pd.DataFrame

    def plot(self, x: str = "rounds") -> Figure:
        """Gap against "rounds", "bits" or "gradients": median over seeds, with their range.

        Returns
        -------
        matplotlib Figure
            `savefig` writes it.
        """
        if x not in _USED:
            raise ReplifedError(f"x = {x!r}: must be one of {', '.join(_USED)}")
        column, label = _USED[x]
        figure = Figure(figsize=(5, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for (name, own), line in zip(self.frame.groupby("method", sort=False), SEQUENCE, strict=False):
            by_round = own.groupby("round")
            used, gaps = by_round[column].median(), by_round["gap"]
            axes.plot(used, gaps.median(), label=name, markevery=0.1, **line.look)
            axes.fill_between(used, gaps.min(), gaps.max(), color=line.color, alpha=0.15)
        axes.set(xlabel=label, ylabel="F - F*", yscale="log")
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
        axes.legend()
        return figure

    def table(self, target: float = 1e-4) -> pd.DataFrame:
        """Median use of each method until the gap is `target` times that at the start.

        Seeds that never get there count as later than any other; NaN where half of them do not.
        """
        rows = {}
        for name, own in self.frame.groupby("method", sort=False):
            share = own["gap"] / own.groupby("seed")["gap"].transform("first")
            reached = used_until(own.assign(replicate=own["seed"], gap=share), [target])
            uses = {use: np.where(one.bounds == 0, one.values, np.inf) for (_, use), one in reached.items()}
            rows[name] = {use: np.median(values) for use, values in uses.items()}
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
        return table.where(np.isfinite(table))


def compare(
    methods: Mapping[str, Any], problem: Any, rounds: int, seeds: int = 1, **options: Any
) -> Comparison:
    """Run methods on one problem, with the same random numbers.

    Parameters
    ----------
    methods : mapping
        Methods with their settings, by the names that figures show.
    problem, rounds, seeds, **options
        As of `run`.

    Returns
    -------
    Comparison
        The gap is F - F* where the problem has Hessians and a minimiser, else F less the lowest value seen.
    """
    runs = [
        run(algorithm, problem, rounds, seeds, **options).assign(method=name)
        for name, algorithm in methods.items()
    ]
    frame = pd.concat(runs, ignore_index=True)
    frame["gap"] = np.maximum(frame["objective"] - _least(problem, frame["objective"]), _EXACT)
    return Comparison(frame)


def _least(problem: Any, seen: pd.Series) -> float:
    try:
        return float(problem.loss(minimiser(problem, 1))[0])
    except (ReplifedError, AttributeError):  # no Hessians, or a singular one
        return float(seen.min())
