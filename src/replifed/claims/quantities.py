"""Quantities: expressions that know which runs they read, and are computed once the runs are at hand.

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

from replifed.claims.samples import UNDECIDED, Sample, paired
from replifed.claims.verdicts import Measured


@dataclass(frozen=True)
class Quantity(NDArrayOperatorsMixin):
    """A function of other quantities, or, if it has keys of its own, of the inputs.

    Operators and functions of numpy make quantities of quantities. Equal expressions are equal, and computed
    once for the same inputs.
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

    def beside(self, *others: Quantity) -> Quantity:
        """The same, as a statement on other runs, too, which it does not look at."""
        return Quantity(_first, (self, *others))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *arguments: Any, **named: Any) -> Quantity:
        return Quantity(ufunc, arguments)

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
    """What an expression came to, as the rules of verdicts take it."""
    if isinstance(value, Measured):
        return value
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


# --- What is read --------------------------------------------------------------------------------


def _input(kind: str, key: str = "") -> Callable[..., Quantity]:
    """What makes quantities of what `papers.inputs` has under a kind and names."""
    return lambda *names: Quantity(_read, (kind, *names), keys=(key.format(*names),) if key else ())


run = _input("run", "run:{}/{}")  # the history of a method on an experiment
tuned = _input("tuned", "tuned:{}/{}")  # the outcome of its search
partition = _input("partition", "partition:{}")  # how the samples are split between the clients
partition_table = _input("partition_table", "partition:{}")  # each client's size and distances
data_kind = _input("data_kind", "partition:{}")  # kind and stamp of an experiment's data
drawn = _input("artefact")  # the numbers of a figure


def settings(experiment: str) -> Quantity:
    """The settings of an experiment, an object of its paper's class, with the seed of its paper."""
    return Quantity(_settings, (experiment,), keys=())


def _read(inputs: Any, kind: str, *names: str) -> Any:
    return getattr(inputs, kind)(*names)


def _settings(inputs: Any, experiment: str) -> Any:
    return inputs.experiment(experiment)


# --- On samples ----------------------------------------------------------------------------------

decided = quantity(Sample.decided)
power10 = functools.partial(np.power, 10)


@quantity
def as_it_stands(sample: Sample) -> Sample:
    """Take an undecided number as it stands, as where both methods were cut off by the end of the run."""
    return replace(sample, bounds=np.where(sample.bounds == UNDECIDED, 0, sample.bounds))


@quantity
def least(*several: Sample) -> Sample:
    """The least of several numbers, seed by seed: a bound where no exact number is that small."""
    several = tuple(paired(*several))
    values = np.stack([one.values for one in several])
    lowest, first = values.min(axis=0), values.argmin(axis=0)
    at = first, np.arange(len(first))
    below, above = (np.stack([getattr(one, side) for one in several])[at] for side in ("below", "above"))
    known = np.stack([one.bounds == 0 for one in several])
    bounds = np.where(((values == lowest) & known).any(axis=0), 0, 1)
    return Sample(lowest, bounds, several[0].seeds, any(one.chaotic for one in several), None, below, above)


@quantity
def joined(*several: Sample, apart: bool = False) -> Sample:
    """Put the cases of several samples, of the same seeds or of seeds `apart`, one behind the other."""
    return Sample(
        np.concatenate([one.values for one in several]),
        np.concatenate([one.bounds for one in several]),
        chaotic=any(one.chaotic for one in several),
        repetitions=None if apart else len(several[0].values),
        below=np.concatenate([one.below for one in several]),
        above=np.concatenate([one.above for one in several]),
    )
