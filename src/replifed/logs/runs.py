"""Quantities of runs that are logs: by method and metric, with the better side that the settings declare."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replifed.claims import curves as of
from replifed.claims.claim import NotMeasurableError
from replifed.claims.pairs import used_until
from replifed.claims.quantities import Quantity, quantity, run
from replifed.claims.samples import Sample
from replifed.errors import ConfigError, unknown_name
from replifed.parts import text_of
from replifed.settings.reading import read_value

# A number that no run has: it stands for what a run that diverged would have come to, and is a bound.
_BEYOND = 1e12


class Runs:
    """Runs of one experiment, for expressions of claims.

    `last`, `best` and the like stand for what the runs will hold (`claims.quantities`). "Better" is as the
    settings say of a metric: a target of accuracy is reached from above, one of a loss from below.

    Parameters
    ----------
    metrics : the better side, "lower" or "higher", by metric.
    methods : of the experiment; by default any.
    experiment : its name in the settings.
    """

    def __init__(
        self, metrics: Mapping[str, str], methods: list[str] | None = None, experiment: str = "runs"
    ) -> None:
        self.metrics, self.methods, self.experiment = dict(metrics), methods, experiment

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
        return cls(
            {name: each["better"] for name, each in one["metrics"].items()}, one["methods"], experiment
        )

    def history(self, method: str) -> Quantity:
        """History of a method, with the columns replicate, round and the metrics."""
        if self.methods is not None and method not in self.methods:
            raise ConfigError(unknown_name(f"method of {self.experiment}", method, self.methods))
        return run(self.experiment, method)

    def curve(self, method: str, metric: str) -> Quantity:
        """Curves of a metric, one a seed, in the rounds in which it was evaluated."""
        self._better(metric)
        return _curve(self.history(method), metric)

    def first(self, method: str, metric: str) -> Quantity:
        """Value at the start."""
        return _bounded(of.first(self.curve(method, metric)))

    def last(self, method: str, metric: str) -> Quantity:
        """Value at the end; of a seed that diverged a bound is known, on the worse side."""
        return _bounded(of.last(self.curve(method, metric)))

    def at(self, method: str, metric: str, wanted: int) -> Quantity:
        """Value at the last recorded round up to `wanted`."""
        return _bounded(of.at(self.curve(method, metric), wanted))

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
        """Round from which on a run stays at the target or better, as `curves.rounds_to` has it."""
        down = self._better(metric) == "lower"
        curve = self.curve(method, metric) if down else _turned(self.curve(method, metric))
        return of.rounds_to(curve, target if down else -target, touch=touch, window=window)

    def bits_to(self, method: str, metric: str, target: float) -> Quantity:
        """Bits until a run stays at the target or better, where the logs count them."""
        return _bits_to(
            self.history(method), metric, target, 1.0 if self._better(metric) == "lower" else -1.0
        )

    def reaches(self, method: str, metric: str, target: float) -> Quantity:
        """True of each seed that comes to the target, and stays there."""
        return _is_exact(self.rounds_to(method, metric, target))

    def survives(self, method: str, metric: str) -> Quantity:
        """True of each seed whose metric ends in a number."""
        return _survives(self.curve(method, metric))

    def _better(self, metric: str) -> str:
        if metric not in self.metrics:
            raise ConfigError(unknown_name(f"metric of {self.experiment}", metric, self.metrics))
        return self.metrics[metric]


@quantity
def _curve(history: pd.DataFrame, metric: str) -> of.Curves:
    return of.curves(history.dropna(subset=[metric]), metric)


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
def _bits_to(history: pd.DataFrame, metric: str, target: float, side: float) -> Sample:
    if "bits" not in history:
        raise NotMeasurableError("the logs count no bits: name their column, columns: {bits: ...}")
    known = history.dropna(subset=[metric, "bits"])
    # The logs count all that was sent; `used_until` adds what went up and down.
    counted = known.assign(
        **{metric: side * known[metric]}, bits_up=known["bits"], bits_down=0.0, sample_gradients=0.0
    )
    return used_until(counted, [side * target], metric)[side * target, "bits"]


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
