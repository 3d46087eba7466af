"""Quantities: expressions that know which runs they read, and are computed once the runs exist.

`run("mnist", "fedht")` stands for a history. A function decorated with `quantity` takes the real thing, as in
a test with a history made by hand, and gives a number; or takes a quantity and gives one. So a claim is
arithmetic: `rounds(fednl, "rayleigh") / rounds(fednl) - 1`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from replifed.claims.claim import Measured
from replifed.claims.samples import UNDECIDED, Sample, paired


@dataclass(frozen=True)
class Quantity(NDArrayOperatorsMixin):
    """A function of other quantities, or, if it has keys of its own, of the inputs.

    Operators and functions of numpy make quantities of quantities. Equal expressions are equal, and computed
    once for the same inputs: `==` and `!=` compare expressions, `np.equal` and `np.not_equal` their values.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()
    keys: tuple[str, ...] | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the inputs that it reads, in order of first mention."""
        parts = (*self.arguments, *(value for _, value in self.named))
        read = [key for part in parts if isinstance(part, Quantity) for key in part.needs]
        return tuple(dict.fromkeys([*(self.keys or ()), *read]))

    def __call__(self, inputs: Any) -> Any:
        """Compute it."""
        known = _COMPUTED.setdefault(inputs, {})
        if self not in known:
            values = [_value(part, inputs) for part in self.arguments]
            named = {name: _value(part, inputs) for name, part in self.named}
            first = () if self.keys is None else (inputs,)
            known[self] = self.function(*first, *values, **named)
        return known[self]

    def note(self, template: str | Callable[..., str], *about: Any) -> Quantity:
        """Add a note: `template`, formatted with the quantities `about`, or itself, or called on them."""
        return Quantity(_noted, (self, template, *(about or (self,))))

    def needing(self, *others: Quantity) -> Quantity:
        """Its value, as a statement on runs that it does not look at, too."""
        return Quantity(_first, (self, *others))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *arguments: Any, **named: Any) -> Quantity:
        return Quantity(ufunc, arguments)

    def __ne__(self, other: object) -> bool:  # for numpy's own is a quantity, which is true
        return not self == other

    def __getitem__(self, index: Any) -> Quantity:
        return Quantity(operator.getitem, (self, index))


_COMPUTED: WeakKeyDictionary[Any, dict[Quantity, Any]] = WeakKeyDictionary()


def _value(part: Any, inputs: Any) -> Any:
    return part(inputs) if isinstance(part, Quantity) else part


def _first(value: Any, *others: Any) -> Any:
    return value


def _noted(value: Any, template: str | Callable[..., str], *about: Any) -> Measured:
    text = template.format(*about) if isinstance(template, str) else template(*about)
    return as_measured(value, note=text)


def as_measured(value: Any, **more: Any) -> Measured:
    """Value of an expression as the rules of verdicts take it."""
    if isinstance(value, Measured):
        note = "; ".join(filter(None, (value.note, more.pop("note", ""))))
        return replace(value, note=note, **more)
    return value.measured(**more) if isinstance(value, Sample) else Measured(value, **more)


def quantity(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let `function` take quantities too, and then give one."""

    @functools.wraps(function)
    def lifted(*arguments: Any, **named: Any) -> Any:
        if any(isinstance(part, Quantity) for part in (*arguments, *named.values())):
            return Quantity(function, arguments, tuple(named.items()))
        return function(*arguments, **named)

    return lifted


def formula(function: Callable[..., Any], *arguments: Any, **named: Any) -> Quantity:
    """A quantity that reads no run."""
    return Quantity(function, arguments, tuple(named.items()))


# --- Inputs (`papers.inputs`) ---------------------------------------------------------------------


def run(experiment: str, method: str) -> Quantity:
    """History of a method on an experiment."""
    return Quantity(_read, ("run", experiment, method), keys=(f"run:{experiment}/{method}",))


def tuned(experiment: str, method: str) -> Quantity:
    """Outcome of a method's search on an experiment."""
    return Quantity(_read, ("tuned", experiment, method), keys=(f"tuned:{experiment}/{method}",))


def partition(experiment: str) -> Quantity:
    """Split of an experiment's samples between the clients."""
    return Quantity(_read, ("partition", experiment), keys=(f"partition:{experiment}",))


def partition_table(experiment: str) -> Quantity:
    """Table of the clients' sizes and distances."""
    return Quantity(_read, ("partition_table", experiment), keys=(f"partition:{experiment}",))


def data_kind(experiment: str) -> Quantity:
    """Kind of an experiment's data, and what a picture says of them."""
    return Quantity(_read, ("data_kind", experiment), keys=(f"partition:{experiment}",))


def settings(experiment: str) -> Quantity:
    """Settings of an experiment, an object of its paper's class, with the seed of its paper."""
    return Quantity(_settings, (experiment,), keys=())


def _read(inputs: Any, method: str, *names: str) -> Any:
    """Result of a method of the inputs."""
    return getattr(inputs, method)(*names)


def _settings(inputs: Any, experiment: str) -> Any:
    return inputs.experiment(experiment)


# --- Samples --------------------------------------------------------------------------------------

decided = quantity(Sample.decided)


@quantity
def as_it_stands(sample: Sample) -> Sample:
    """Take an undecided number as it stands, as where both methods were cut off by the end of the run."""
    return replace(sample, bounds=np.where(sample.bounds == UNDECIDED, 0, sample.bounds))


@quantity
def least(*samples: Sample) -> Sample:
    """Minimum of several numbers, seed by seed: a bound where no exact number is that small."""
    samples = tuple(paired(*samples))
    values = np.stack([sample.values for sample in samples])
    minimum, first = values.min(axis=0), values.argmin(axis=0)
    at = first, np.arange(len(first))
    below = np.stack([sample.below for sample in samples])[at]
    above = np.stack([sample.above for sample in samples])[at]
    exact = np.stack([sample.bounds == 0 for sample in samples])
    bounds = np.where(((values == minimum) & exact).any(axis=0), 0, 1)
    chaotic = any(sample.chaotic for sample in samples)
    return Sample(minimum, bounds, samples[0].seeds, chaotic, None, below, above)


@quantity
def joined(*samples: Sample, apart: bool = False) -> Sample:
    """Cases of several samples, of the same seeds or of other seeds (`apart`), one behind the other."""
    return Sample(
        np.concatenate([sample.values for sample in samples]),
        np.concatenate([sample.bounds for sample in samples]),
        chaotic=any(sample.chaotic for sample in samples),
        repetitions=None if apart else len(samples[0].values),
        below=np.concatenate([sample.below for sample in samples]),
        above=np.concatenate([sample.above for sample in samples]),
    )
