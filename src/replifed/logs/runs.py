"""Quantities of runs that are logs: by method and metric, with the better side that the settings declare."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import unwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims import curves as of
from replifed.claims import printed as of_print
from replifed.claims.claim import NotMeasurableError
from replifed.claims.evidence import LOGS
from replifed.claims.quantities import Quantity, quantity, run
from replifed.claims.samples import Sample
from replifed.errors import ConfigError, unknown_name
from replifed.logs.settings import TAKEN
from replifed.parts import text_of
from replifed.settings.reading import read_value

# A number that no run has: it stands for what a run that diverged would have come to, and is a bound.
_BEYOND = 1e12
ROUND = "round"


class Runs:
    """Runs of one experiment, for expressions of claims.

    `last`, `best` and the like stand for what the runs will hold (`claims.quantities`). "Better" is as the
    settings say of a metric: a target of accuracy is reached from above, one of a loss from below.

    Parameters
    ----------
    metrics : the better side, "lower" or "higher", by metric.
    methods : of the experiment; by default any.
    experiment : its name in the settings.
    evidence : what claims on them rest on, as `Statements` is told.
    """

    def __init__(
        self,
        metrics: Mapping[str, str],
        methods: list[str] | None = None,
        experiment: str = "runs",
        evidence: str = LOGS,
    ) -> None:
        self.metrics, self.methods, self.experiment = dict(metrics), methods, experiment
        self.evidence = evidence

    @classmethod
    def of(cls, file: str | os.PathLike[str], experiment: str) -> Runs:
        """Runs of an experiment in the settings beside a file of the paper, its `__file__`."""
        settings = Path(file).resolve().with_name("settings.yaml")
        content = read_value(text_of(settings), str(settings)) or {}
        sections = [one for one in content.values() if isinstance(one, dict) and "experiments" in one]
        experiments = sections[0]["experiments"] if sections else {}
        if experiment not in experiments:
            raise ConfigError(f"{settings}: {unknown_name('experiment', experiment, experiments)}")
        one = experiments[experiment]
        better = {name: each["better"] for name, each in one["metrics"].items()}
        return cls(better, one["methods"], experiment, one.get("evidence", LOGS))

    def history(self, method: str) -> Quantity:
        """History of a method, with the columns replicate, round and the metrics."""
        if self.methods is not None and method not in self.methods:
            raise ConfigError(unknown_name(f"method of {self.experiment}", method, self.methods))
        return run(self.experiment, method)

    def curve(self, method: str, metric: str) -> Quantity:
        """Curves of a metric, one a seed, in the rounds in which it was evaluated.

        Once a run has diverged, in whichever metric, its values are the worst that there are.
        """
        worst = np.inf if self._better(metric) == "lower" else -np.inf
        return _curve(self.history(method), metric, worst)

    def first(self, method: str, metric: str) -> Quantity:
        """Value at the start."""
        return _bounded(of.first(self.curve(method, metric)))

    def last(self, method: str, metric: str) -> Quantity:
        """Value at the end; of a seed that diverged a bound is known, on the worse side."""
        return _bounded(of.last(self.curve(method, metric)))

    def at(self, method: str, metric: str, wanted: float, axis: str = "round") -> Quantity:
        """Value at the last record up to `wanted`: a round, or what another `axis` such as seconds counts."""
        if axis == ROUND:
            return _bounded(of.at(self.curve(method, metric), wanted))
        along = self._along(method, metric, axis)
        return _bounded(_at(self.curve(method, metric), along, wanted, method, axis))

    def best_of_seeds(self, method: str, metric: str) -> Quantity:
        """The best seed's value at the end: one number of unknown spread, for a shape or an identity."""
        return best(self.last(method, metric), self._better(metric))

    def ahead(self, method: str, other: str, metric: str) -> Quantity:
        """By how much the method ends better than the other, paired by seed."""
        difference = self.last(other, metric) - self.last(method, metric)
        return difference if self._better(metric) == "lower" else -difference

    def rounds_to(
        self, method: str, metric: str, target: float, *, touch: bool = False, window: int = 1
    ) -> Quantity:
        """Round from which on a run stays at the target or better, as `curves.rounds_to` has it.

        A run that gets there once and ends there has stopped at its target.
        """
        curve, target = self._falling(method, metric, target)
        return of.rounds_to(curve, target, touch=touch, window=window, stops=True)

    def used_to(self, method: str, metric: str, target: float, axis: str, *, touch: bool = False) -> Quantity:
        """What an axis such as seconds counts until a run stays at the target or better; see `rounds_to`."""
        curve, target = self._falling(method, metric, target)
        return _used_to(curve, self._along(method, metric, axis), target, touch)

    def bits_to(self, method: str, metric: str, target: float, *, touch: bool = False) -> Quantity:
        """Bits until a run stays at the target or better, where the logs count them."""
        return self.used_to(method, metric, target, "bits", touch=touch)

    def reaches(
        self, method: str, metric: str, target: float, *, touch: bool = False, window: int = 1
    ) -> Quantity:
        """True of each seed that comes to the target, and stays there; with `touch`, that comes there."""
        return _is_exact(self.rounds_to(method, metric, target, touch=touch, window=window))

    def printed(self, number: str, method: str, metric: str, *, times: float = 1.0) -> Quantity:
        """A number that is printed for a method, beside what each rule makes of its runs (`claims.printed`).

        `times` leads from the logs' numbers to printed ones: 100 for shares that are printed as percentages.
        """
        better, history = self._better(metric), self.history(method)
        named, survived = f"{metric} of {method}", _survived(history)
        return of_print.cell(
            _recorded(history, metric), number, better=better, name=named, times=times, survived=survived
        )

    def survives(self, method: str, metric: str) -> Quantity:
        """True of each seed whose metric ends in a number."""
        return _survives(self.curve(method, metric))

    def _falling(self, method: str, metric: str, target: float) -> tuple[Quantity, float]:
        """Curves whose lower values are better, and the target on their scale."""
        curve = self.curve(method, metric)
        return (curve, target) if self._better(metric) == "lower" else (_turned(curve), -target)

    def _along(self, method: str, metric: str, axis: str) -> Quantity:
        return _axis(self.history(method), metric, method, axis, tuple(self.metrics))

    def _better(self, metric: str) -> str:
        if metric not in self.metrics:
            raise ConfigError(unknown_name(f"metric of {self.experiment}", metric, self.metrics))
        return self.metrics[metric]


@quantity
def _curve(history: pd.DataFrame, metric: str, worst: float) -> of.Curves:
    records, lost = history.dropna(subset=[metric]), history.loc[history["diverged"], "replicate"]
    # A run may diverge after the metric was evaluated for the last time: its end is no result either.
    ends = ~records.duplicated("replicate", keep="last") & records["replicate"].isin(lost)
    values = records[metric].mask(records["diverged"] | ends, worst)
    return of.curves(records.assign(**{metric: values}), metric)


@quantity
def _recorded(history: pd.DataFrame, metric: str) -> of.Curves:
    """Curves as they were logged, also of runs that diverged in another metric."""
    return of.curves(history.dropna(subset=[metric]), metric)


@quantity
def _survived(history: pd.DataFrame) -> NDArray:
    return ~history.groupby("replicate")["diverged"].any().to_numpy()


@quantity
def _turned(curve: of.Curves) -> of.Curves:
    """Curves whose lower values are better."""
    return curve._replace(values=-curve.values)


@quantity
def _bounded(values: Sample) -> Sample:
    """Values of which those of diverged runs are bounds."""
    known, sign = np.isfinite(values.values), np.sign(values.values)
    return replace(
        values, values=np.where(known, values.values, sign * _BEYOND), bounds=np.where(known, 0, sign)
    )


@quantity
def best(ends: Sample, better: str) -> Sample:
    """The best of several seeds; what claims it is told to be so (`rules`)."""
    known = ends.values[ends.bounds == 0]
    if not len(known):
        raise NotMeasurableError("all seeds diverged")
    one = known.min() if better == "lower" else known.max()
    return Sample(np.array([one]), repetitions=len(ends.values))


@quantity
def _axis(history: pd.DataFrame, metric: str, method: str, axis: str, metrics: tuple[str, ...]) -> of.Curves:
    """What an axis counts at each record of a metric."""
    records = history.dropna(subset=[metric])
    if lacks(records, axis):
        cure = "columns: {bits: ...}" if axis == "bits" else f"axes: {{{axis}: ...}}"
        known = counts(history, method, metrics)
        raise NotMeasurableError(f"{known}, but no {axis}: name their column, {cure}")
    return of.curves(records, axis)


def axis_of(part: Quantity) -> str:
    """The axis along which a part of an expression counts; "" if it counts along none."""
    if part.function is unwrap(_axis):
        return part.arguments[3]
    return ROUND if part.function is unwrap(of.rounds_to) else ""


def lacks(history: pd.DataFrame, axis: str) -> bool:
    """Whether logs count something else than an axis."""
    return axis not in history or bool(history[axis].isna().any())


def counts(history: pd.DataFrame, method: str, metrics: Iterable[str]) -> str:
    """What the logs of a method count, and where each count ends."""
    axes = [ROUND, *sorted(set(history) - {*metrics, *TAKEN} | ({"bits"} & set(history)))]
    known = [f"{name} (to {history[name].max():.6g})" for name in axes if history[name].notna().any()]
    return f"the logs of {method} count {', '.join(known)}"


@quantity
def _at(curve: of.Curves, along: of.Curves, wanted: float, method: str, axis: str) -> Sample:
    ends = along.values[:, -1]
    if (ends < wanted).any() or (along.values[:, 0] > wanted).any():
        span = f"from {along.values[:, 0].max():.6g} to {ends.min():.6g}"
        raise NotMeasurableError(f"{method} was logged {span} {axis} in all seeds, not at {wanted:g}")
    index = (along.values <= wanted).sum(axis=1) - 1
    return curve.sample(curve.values[np.arange(len(index)), index])


@quantity
def _used_to(curve: of.Curves, along: of.Curves, target: float, touch: bool) -> Sample:
    there = of.rounds_to(curve, target, touch=touch, stops=True)
    index = np.searchsorted(curve.rounds, there.values)[:, None]
    # What is counted between two records is counted at the later one.
    steps = np.diff(along.values, axis=1, prepend=0.0)
    used, step = (np.take_along_axis(one, index, axis=1)[:, 0] for one in (along.values, steps))
    return replace(there, values=used, below=step)


@quantity
def _survives(curve: of.Curves) -> Sample:
    return curve.sample(curve.survived)


@quantity
def _is_exact(sample: Sample) -> Sample:
    return Sample(sample.bounds == 0, seeds=sample.seeds)


def reader(file: str | os.PathLike[str]) -> Callable[..., pd.DataFrame]:
    """Return the function `run` of a paper, whose `__file__` this is: it reads a method's logs."""

    def run(
        method: str, settings: Any, tuned: Any, table: Any, partition: Any, progress: Any = None
    ) -> pd.DataFrame:
        from replifed.logs.histories import read

        return read(Path(file).resolve().parent, settings).history(method)

    return run
