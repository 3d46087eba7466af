"""Which clients take part in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError
from replifed.randomness import Streams


class Participation(NamedTuple):
    """The clients of one round, for R runs, or for one that all runs share."""

    active: NDArray  # boolean (R or 1, N)
    chosen: NDArray | None  # int (R or 1, c), in increasing order, where every round has equally many


@dataclass(frozen=True)
class FixedSize:
    """`size` clients, drawn uniformly without replacement."""

    size: int

    def __call__(self, streams: Streams, n_clients: int) -> Participation:
        if not 1 <= self.size <= n_clients:
            raise ConfigError(f"a cohort of {self.size} clients: must be between 1 and {n_clients}")
        keys = streams.draw("cohort", lambda rng: rng.random(n_clients))
        # The clients with the smallest keys; a smaller cohort of the same round is part of a larger one.
        chosen = np.sort(np.argsort(keys, axis=-1, kind="stable")[:, : self.size], axis=-1)
        active = np.zeros(keys.shape, dtype=bool)
        np.put_along_axis(active, chosen, True, axis=-1)
        return Participation(active, chosen)


@dataclass(frozen=True)
class Independent:
    """Each client takes part with its own probability (one or (N,)), independently; at times none does."""

    probability: float | NDArray

    def __call__(self, streams: Streams, n_clients: int) -> Participation:
        p = np.asarray(self.probability, dtype=float)
        if not ((p > 0) & (p <= 1)).all() or p.shape not in ((), (n_clients,)):
            raise ConfigError(f"probabilities of taking part must be in (0, 1], one or {n_clients}: {p}")
        keys = streams.draw("cohort", lambda rng: rng.random(n_clients))
        return Participation(keys < p, None)
