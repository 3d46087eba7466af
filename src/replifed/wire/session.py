"""What clients and server know without a message: the method, public facts, and shared random numbers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import full_only
from replifed.errors import ReplifedError
from replifed.network.participation import MANY, Participation
from replifed.randomness import Streams
from replifed.wire import codec
from replifed.wire.messages import Part


@dataclass(frozen=True)
class Facts:
    """Public constants of a problem of N clients."""

    start: NDArray  # the server's first model x_0, (D,)
    sizes: NDArray  # samples n_i, (N,)
    weights: NDArray  # p_i, (N,)
    mu: float  # smallest strong-convexity constant of the losses
    L: float  # largest smoothness constant

    @property
    def dim(self) -> int:
        return len(self.start)

    @property
    def n_clients(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True)
class Session:
    """A run, as all sides know it.

    Parameters
    ----------
    method : Method
        One step, sparsity, ... for the run: its settings are no arrays.
    facts : Facts
    streams : Streams
        Of one replicate. All sides draw from them the numbers that the batched form draws.
    cohort, channel : callables, optional
        As of `engine.simulate`.
    exact : bool
        Send floats with 64 bits whatever they are booked with, so that nothing is rounded.
    """

    method: Any
    facts: Facts
    streams: Streams
    cohort: Callable[[Streams, int], Participation] | None = None
    channel: Callable[[Streams, int], NDArray] | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        if self.facts.n_clients > MANY:
            raise ReplifedError(f"{self.facts.n_clients} clients on the wire: at most {MANY}")
        if self.cohort is not None and not self.method.partial_participation:
            raise ReplifedError(full_only(type(self.method)))

    def key(self, up: bool) -> int:
        """Return what messages to the server, or from it, bear of the run: other settings have another."""
        return self._keys[up]

    @cached_property
    def _keys(self) -> tuple[int, ...]:
        about = self.method, self.streams, self.facts.dim, tuple(map(int, self.facts.sizes))
        return tuple(zlib.crc32(repr((up, *about)).encode()) for up in (False, True))

    def encode(self, parts: Sequence[Part], round_: int, exchange: int, client: int, up: bool) -> bytes:
        """Return a message of this run to the server, or from it, as `codec.encode` makes it."""
        return codec.encode(parts, round_, exchange, client, self.exact, self.key(up))

    def decode(
        self, data: bytes, clients: Collection[int], up: bool, at: tuple[int, int] | None = None
    ) -> codec.Message:
        """Read a message of this run, as `codec.decode` does."""
        return codec.decode(data, clients, self.exact, at, self.key(up))

    def turn(self, t: int, exchange: int = 0, client: int = -1) -> Turn:
        """Return what `client`, or the server, knows of an exchange in round t."""
        now, N = self.streams.at(t), self.facts.n_clients
        active, drawn, fixed = tuple(range(N)), tuple(range(N)), True
        if self.cohort is not None:
            who = self.cohort(now, N)
            if len(who) > 2 or not (who.chosen is None or who.active[0, who.chosen[0]].all()):
                raise ReplifedError("on the wire, cohorts have a fixed size or come independently")
            active, fixed = tuple(np.flatnonzero(who.active[0]).tolist()), who.chosen is not None
            drawn = active if fixed else drawn
        budget = None if self.channel is None else self.channel(now, N)[0]
        return Turn(t, exchange, client, active, drawn, fixed, self.facts, now, budget, self.exact)


@dataclass(frozen=True)
class Turn:
    """One exchange of a round, as a client or the server knows it without a message.

    Attributes
    ----------
    t, exchange : its round, from 0, and the exchange within it, from 0.
    client : number of the client; -1 at the server.
    cohort : clients that take part.
    drawn : clients that have numbers in what is drawn: a cohort of fixed size, or all of them.
    fixed : whether a cohort has the same size in every round.
    facts : Facts
    streams : Streams
    budget : bits per coordinate that each client may send, (N,); None without limit.
    exact : whether nothing is rounded.
    """

    t: int
    exchange: int
    client: int
    cohort: tuple[int, ...]
    drawn: tuple[int, ...]
    fixed: bool
    facts: Facts
    streams: Streams
    budget: NDArray | None
    exact: bool

    @property
    def everyone(self) -> bool:
        """Whether all clients take part in every round."""
        return self.fixed and len(self.cohort) == self.facts.n_clients

    @property
    def place(self) -> int:
        """Place of the client among those `drawn`."""
        return self.drawn.index(self.client)

    def draw(self, purpose: str, sample: Callable[[np.random.Generator], Any]) -> Any:
        """Draw numbers that all sides share; `purpose` names their stream."""
        return self.streams.draw(purpose, sample)[0]

    def draw_at_start(self, purpose: str, sample: Callable[[np.random.Generator], Any]) -> Any:
        """Draw numbers that are drawn once a run."""
        return replace(self.streams, round_=None).draw(purpose, sample)[0]

    def minibatches(self, steps: int, size: int | None, purpose: str = "batch") -> list[Any]:
        """Sample numbers (b,) of each of the client's minibatches; None for all samples."""
        if size is None or size >= self.facts.sizes.max():
            return [None] * steps
        uniform = self.draw(purpose, lambda rng: rng.random((steps, len(self.drawn), size)))
        return list((uniform[:, self.place] * self.facts.sizes[self.client]).astype(int))

    def received(self, part: Part) -> NDArray:
        """Return a part as the other side gets it, for a side that has to go on from the same numbers."""
        layout = part.layout(self.exact)
        return part.decode(part.encode(layout), layout)
