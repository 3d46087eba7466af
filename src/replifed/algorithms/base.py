"""The contract of a federated algorithm.

An algorithm is a frozen dataclass of settings with pure methods: `init` makes the state, `round`
maps a state to the next one and its cost, `observe` names what metrics may look at. It does not
print, draw, read files or remember anything outside its state; cohorts, recording, progress,
divergence and tuning are the simulator's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError
from replifed.network.ledger import Cost
from replifed.randomness import Streams


class Round(NamedTuple):
    """What the simulator tells an algorithm of the round it is to run.

    Attributes
    ----------
    t : the round's number, from 0.
    active : boolean (R or 1, N), which clients take part; None if all do.
    budget : bits per coordinate that each client may send, (R or 1, N); None if unlimited.
    streams : random streams of this round.
    chosen : int (R or 1, c), the active clients where all rounds have equally many; None otherwise.
    """

    t: int
    active: NDArray | None
    budget: NDArray | None
    streams: Streams
    chosen: NDArray | None = None


class ServerModel(NamedTuple):
    """State of a method whose clients remember nothing.

    Attributes
    ----------
    x : array, shape (R, D)
        The server's model x_t.
    """

    x: NDArray


class Algorithm(Protocol):
    """A federated method. `State` is a NamedTuple of arrays, the batch axis first.

    A registered method is tested (tests/unit/test_contract.py). For that it has a class method `example()`
    that returns an instance with small settings, and where it applies a class attribute:

    equal_clients_differ : str
        Why clients with the same data and random numbers do not act as one.
    centralised : bool
        Whether the data are where the server is, so that nothing is sent.
    """

    @property
    def needs(self) -> tuple[type, ...]: ...

    @property
    def stochastic(self) -> bool: ...

    @property
    def partial_participation(self) -> bool: ...

    def init(self, problem: Any, streams: Streams) -> Any:
        """State before round 0."""

    def round(self, state: Any, problem: Any, ctx: Round) -> tuple[Any, Cost]:
        """One communication round."""

    def observe(self, state: Any) -> dict[str, NDArray]:
        """What metrics may look at; "server" always, shape (R, D)."""


@dataclass(frozen=True)
class Range:
    """Allowed values of a numeric setting, for annotation and check: low < or <= value < or <= high."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    whole: bool = False

    def __contains__(self, value: float) -> bool:
        number = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            return False
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        left, right = "(" if self.low_open else "[", ")" if self.high_open else "]"
        return f"{kind} in {left}{self.low:g}, {self.high:g}{right}"


POSITIVE = Range(0, low_open=True)
COUNT = Range(1, whole=True)


def check_settings(algorithm: Any, ranges: dict[str, Range]) -> None:
    """Refuse settings outside their ranges, naming method, setting, value and range.

    A setting may be an array with one value a run (a step-size grid), and None where that is its default.
    """
    defaults = {field.name: field.default for field in fields(algorithm)}
    for name, allowed in ranges.items():
        value, default = getattr(algorithm, name), defaults[name]
        if value is None and default is None:
            continue
        values = np.ravel(value)
        if not values.size:
            raise ConfigError(f"{type(algorithm).__name__}.{name} = {value}: must be {allowed}")
        for one in values:
            if one not in allowed:
                raise ConfigError(f"{type(algorithm).__name__}.{name} = {one}: must be {allowed}")


def per_run(setting: float | NDArray, array: NDArray) -> NDArray:
    """Shape a setting, one value a run or one for all, so that it multiplies `array` (R, ...)."""
    return np.asarray(setting, dtype=array.dtype).reshape(-1, *(1,) * (array.ndim - 1))
