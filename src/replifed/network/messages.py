"""What the clients and the server send in a round, counted by hand: each method's class declares it.

Tests hold the costs that a method books against this declaration, which shares no code with them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Sent(NamedTuple):
    """Bits of one round, samples that are looked at (None: not counted here), and exchanges."""

    up: Any
    down: Any
    samples: Any = None
    exchanges: int = 1


class Counted(NamedTuple):
    """What a count may follow from.

    Samples of the clients that take part, and of the largest client of all; N clients, of which c take part;
    K local steps; D coordinates of a model, d of theta; settings a; states before and after; Hessians are new
    or not; trials of the line search.
    """

    sizes: list[int]
    largest: int
    N: int
    K: Any
    D: int
    d: int
    a: Any
    before: Any
    after: Any
    renewed: bool
    trials: Any

    @property
    def c(self) -> int:
        """Clients that take part."""
        return len(self.sizes)

    @property
    def n(self) -> int:
        """Their samples in a local step."""
        batch = getattr(self.a, "batch", None)
        return sum(self.sizes) if batch is None else self.c * batch

    @property
    def dense(self) -> int:
        """Bits of a model."""
        return 32 * self.D

    @property
    def sparse(self) -> int:
        """Bits of tau values and where they are: a bit a coordinate, or a number for each."""
        tau = self.a.sparsity
        return 32 * tau + min(self.D, tau * math.ceil(math.log2(self.D)))


def both_ways(r: Counted, vectors: int = 1, gradients: int = 0, exchanges: int = 1) -> Sent:
    """Count vectors from each client, as many to it, K local steps, and further gradients."""
    bits = r.c * vectors * r.dense
    return Sent(bits, bits, (r.K + gradients) * r.n, exchanges)
