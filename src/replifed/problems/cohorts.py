"""The part of a problem that the clients of one round hold, so that a round costs the cohort alone."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Arrays of a dense problem with one entry a data set and client.
STACKED = ("X", "y", "sizes", "weights", "sample_weights", "batch_weights")


def without_cached(problem: Any) -> Any:
    """A copy of the problem that shares its arrays, but not what it has computed of them."""
    part = copy.copy(problem)
    for name in list(vars(part)):
        if isinstance(getattr(type(problem), name, None), cached_property):
            del part.__dict__[name]
    return part


def cohort(problem: Any, chosen: NDArray, keep: tuple[str, ...] = ()) -> Any:
    """Return `problem` with the clients `chosen` alone.

    Parameters
    ----------
    problem : DenseLinearModel
    chosen : int array, shape (R or 1, c)
        The clients of each row, or of all rows.
    keep : tuple of str
        Cached arrays (S, N, ...) of the problem that the part takes over; others it makes anew.

    Returns
    -------
    DenseLinearModel
        Its weights p_i are scaled so that they have the sum that all clients' had.
    """
    rows = np.arange(len(problem.X))[:, None] if len(problem.X) > 1 else 0
    part = without_cached(problem)
    for name in STACKED + keep:
        part.__dict__[name] = getattr(problem, name)[rows, chosen]
    part.n_clients = chosen.shape[-1]
    total = problem.weights.sum(axis=1, keepdims=True)
    part.weights = part.weights * (total / part.weights.sum(axis=1, keepdims=True))
    return part
