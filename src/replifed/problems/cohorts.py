"""The part of a problem that the clients of one round hold, so that a round costs the cohort alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Arrays of a dense problem with one entry a data set and client.
STACKED = ("X", "y", "sizes", "weights", "sample_weights", "batch_weights")


def picked(problem: Any, pick: Callable[[NDArray], NDArray], keep: tuple[str, ...] = ()) -> Any:
    """Return `problem` with what `pick` takes of its arrays (S, N, ...).

    What the problem has computed of its data, the part computes anew, but for the arrays named in `keep`,
    of which it takes its part.
    """
    part = copy.copy(problem)
    for name in list(vars(part)):
        if isinstance(getattr(type(problem), name, None), cached_property):
            del part.__dict__[name]
    for name in STACKED + keep:
        part.__dict__[name] = pick(getattr(problem, name))
    part.n_clients = part.X.shape[1]
    return part


def cohort(problem: Any, chosen: NDArray, keep: tuple[str, ...] = ()) -> Any:
    """Return `problem` with the clients `chosen` alone.

    Parameters
    ----------
    problem : DenseLinearModel
    chosen : int array, shape (R or 1, c)
        The clients of each run, or of all runs.
    keep : tuple of str
        Cached arrays (S, N, ...) of the problem that the part takes over; others it makes anew.

    Returns
    -------
    DenseLinearModel
        Its weights p_i are scaled so that they have the sum that all clients' had.
    """
    runs = np.arange(len(problem.X))[:, None] if len(problem.X) > 1 else 0
    part = picked(problem, lambda array: array[runs, chosen], keep)
    total = problem.weights.sum(axis=1, keepdims=True)
    part.weights = part.weights * (total / part.weights.sum(axis=1, keepdims=True))
    return part
