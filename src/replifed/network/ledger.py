"""The ledger of traffic and work: what one communication round used, summed over the clients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.operators.hard_threshold import support_bits

BITS_PER_VALUE = 32


class Cost(NamedTuple):
    """What a round used. Each field is a number, or an array that goes with the runs of the simulation, (R,).

    Attributes
    ----------
    bits_up : from all clients to the server.
    bits_down : from the server to all active clients; a broadcast counts once per active client.
    exchanges : times that clients and server wait for each other.
    iterations : local steps of each active client.
    sample_gradients : gradients of single samples, over all clients.
    hessians : local Hessians computed, over all clients.
    line_search_messages : scalars sent for a line search, over all clients.
    """

    bits_up: float | NDArray
    bits_down: float | NDArray
    exchanges: float | NDArray = 1
    iterations: float | NDArray = 0
    sample_gradients: float | NDArray = 0
    hessians: float | NDArray = 0
    line_search_messages: float | NDArray = 0


class Ledger:
    """Running totals of `Cost` for R runs."""

    def __init__(self, runs: int) -> None:
        self.totals = {name: np.zeros(runs) for name in Cost._fields}

    def add(self, cost: Cost, runs: NDArray) -> None:
        """Add one round's cost to the runs that had that round (boolean, shape (R,))."""
        for name, used in zip(Cost._fields, cost, strict=True):
            self.totals[name] += np.where(runs, used, 0.0)


def dense_bits(d: int) -> int:
    """Bits of a vector of `d` values."""
    return BITS_PER_VALUE * d


def sparse_bits(k: int | NDArray, d: int, value_bits: int = BITS_PER_VALUE) -> NDArray:
    """Bits of a vector of `d` coordinates with `k` non-zero ones: their values and support, or all values."""
    return np.minimum(value_bits * np.asarray(k) + support_bits(k, d), value_bits * d)
