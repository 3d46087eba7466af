"""Client participation: rules that draw the clients of a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError
from replifed.randomness import Streams

# With more clients than this a round costs what its cohort costs: it draws these clients alone, and what the
# server averages over all of them is kept as a running mean. With fewer, all draw, and all are averaged anew.
MANY = 1000


class Participation(NamedTuple):
    """Clients that take part in one round, drawn for each of R runs, or once for all runs."""

    active: NDArray  # boolean (R or 1, N)
    chosen: NDArray | None  # int (R or 1, c), in increasing order, where every round has equally many


@dataclass(frozen=True)
class FixedSize:
    """`size` clients, drawn uniformly without replacement."""

    size: int

    def __call__(self, streams: Streams, n_clients: int) -> Participation:
        if not 1 <= self.size <= n_clients:
            raise ConfigError(f"a cohort of {self.size} clients: must be between 1 and {n_clients}")
        # The first clients of a random order; a smaller cohort of the same round is part of a larger one.
        if n_clients > MANY:
            order = streams.draw("cohort", lambda rng: _first_of_order(rng, n_clients, self.size))
        else:
            keys = streams.draw("cohort", lambda rng: rng.random(n_clients))
            order = np.argsort(keys, axis=-1, kind="stable")[:, : self.size]
        chosen = np.sort(order, axis=-1)
        active = np.zeros((len(chosen), n_clients), dtype=bool)
        np.put_along_axis(active, chosen, True, axis=-1)
        return Participation(active, chosen)


def _first_of_order(rng: np.random.Generator, n: int, size: int) -> NDArray:
    """First `size` of `n` clients in a random order, in time proportional to `size`.

    The first half of the order comes from draws with replacement, in which at least half of the draws are
    new: clients in the order of their first draw. The others follow in a random permutation.
    """
    half = min(size, n // 2)
    drawn, order = np.empty(0, np.int64), np.empty(0, np.int64)
    while len(order) < half:
        drawn = np.concatenate([drawn, (rng.random(half) * n).astype(np.int64)])
        _, first = np.unique(drawn, return_index=True)
        order = drawn[np.sort(first)[:half]]
    if size > half:
        others = np.setdiff1d(np.arange(n), order, assume_unique=True)
        order = np.concatenate([order, rng.permutation(others)[: size - half]])
    return order


@dataclass(frozen=True)
class Independent:
    """Independent participation with one `probability`, or one per client (N,); a round may be empty."""

    probability: float | NDArray

    def __call__(self, streams: Streams, n_clients: int) -> Participation:
        p = np.asarray(self.probability, dtype=float)
        if not ((p > 0) & (p <= 1)).all() or p.shape not in ((), (n_clients,)):
            raise ConfigError(f"probabilities of taking part must be in (0, 1], one or {n_clients}: {p}")
        keys = streams.draw("cohort", lambda rng: rng.random(n_clients))
        return Participation(keys < p, None)
