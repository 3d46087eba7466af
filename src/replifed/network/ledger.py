"""Ledger of traffic and work: the cost of communication rounds, summed over the clients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.operators.hard_threshold import support_bits

BITS_PER_VALUE = 32
# Totals of who took part: clients, one each round that it does, and rounds to which nobody came.
COHORTS = ("took_part", "empty_rounds")


class Cost(NamedTuple):
    """Cost of a round. Each field is a number, or an array with an entry per run, (R,)."""

    bits_up: float | NDArray  # from all clients to the server
    bits_down: float | NDArray  # from the server to active clients; a broadcast counts once per client
    exchanges: float | NDArray = 1  # round trips in which clients and server wait for each other
    iterations: float | NDArray = 0  # local steps of each active client
    sample_gradients: float | NDArray = 0  # gradients of single samples, over all clients
    hessians: float | NDArray = 0  # local Hessians computed, over all clients
    line_search_messages: float | NDArray = 0  # scalars sent for a line search, over all clients


class Ledger:
    """Running totals of `Cost` for R runs; with `cohorts`, also of who took part."""

    def __init__(self, runs: int, cohorts: bool = False) -> None:
        self._sums, self._round = np.zeros((2, len(Cost._fields), runs))
        self._cohorts = dict(zip(COHORTS, np.zeros((2, runs)), strict=True)) if cohorts else {}

    @property
    def totals(self) -> dict[str, NDArray]:
        """Sums so far by name, (R,) each."""
        return {**dict(zip(Cost._fields, self._sums, strict=True)), **self._cohorts}

    def add(self, cost: Cost, runs: NDArray, came: NDArray | None = None) -> None:
        """Add a round's cost to the mask `runs` (R,), but for those to which nobody `came`, (R,)."""
        for row, amount in zip(self._round, cost, strict=True):
            row[:] = amount
        self._sums += np.where(runs if came is None else runs & (came > 0), self._round, 0.0)
        if self._cohorts and came is not None:
            took_part, empty = self._cohorts.values()
            took_part += np.where(runs, came, 0)
            empty += runs & (came == 0)


def dense_bits(d: int) -> int:
    """Bits of a vector of `d` values."""
    return BITS_PER_VALUE * d


def sparse_bits(k: int | NDArray, d: int, value_bits: int = BITS_PER_VALUE) -> NDArray:
    """Bits of a vector of `d` coordinates with `k` non-zero ones: their values and support, or all values."""
    return np.minimum(value_bits * np.asarray(k) + support_bits(k, d), value_bits * d)
