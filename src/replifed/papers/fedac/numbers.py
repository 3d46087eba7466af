"""The random numbers of a run: its start, and the sample of every worker at every step.

All methods, steps eta and numbers K of local steps of one seed and one M see the same numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.randomness import Streams

# Calls of the authors' generator are joined to this many steps, so that what it returns, of 64 bits, stays
# small.
_STEPS = 512


class Numbers(NamedTuple):
    """What a run draws."""

    start: NDArray  # (D,), standard normal
    samples: NDArray  # int32 (T, M), of n


def draw(source: str, stream: int, seed: int, dim: int, n: int, steps: int, workers: int) -> Numbers:
    """Draw from the "authors'" generator, or from our "own" streams.

    Parameters
    ----------
    stream : the seed of all streams of the paper, which the authors' generator has no use for.
    seed : the run's; theirs is 1 in all published runs.
    dim, n, steps, workers : D, number of samples, T and M.
    """
    if source == "authors":
        return _authors(seed, dim, n, steps, workers)
    streams = Streams(stream, (seed,))
    start = streams.draw("start", lambda rng: rng.standard_normal(dim))[0]
    shape = steps, workers
    samples = streams.draw("samples", lambda rng: rng.integers(n, size=shape, dtype=np.int32))[0]
    return Numbers(start, samples)


def _authors(seed: int, dim: int, n: int, steps: int, workers: int) -> Numbers:
    """numpy's legacy generator: D standard normals, then `choice(n, M)` at each step.

    Calls of M indices and of a multiple of M continue one stream alike. After the last record a run draws
    once more, which changes no number.
    """
    rng = np.random.RandomState(seed)
    start = rng.standard_normal(dim)
    samples = np.empty((steps, workers), np.int32)
    for first in range(0, steps, _STEPS):
        part = samples[first : first + _STEPS]
        part[:] = rng.choice(n, part.shape, replace=True)
    return Numbers(start, samples)
