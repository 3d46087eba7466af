"""Local gradient steps, for local models of any kind: one after the other, a few clients at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Steps = list[tuple[int, NDArray | None]]
"""Of each local step, how many rows take it and the minibatches (R or 1, N, b); None for all samples."""


class InParts(Protocol):
    """Local models (see `problems.base.LocalModels`) of which some clients' can be had."""

    def parts(self, steps: Steps) -> Iterator[tuple[Any, Steps]]:
        """So many clients at a time as stay in the cache from one local step to the next.

        Parameters
        ----------
        steps : list of (rows, minibatches)
            The local steps to come.

        Yields
        ------
        LocalModels
            Of some clients, of which `mean` gives the share in the sum over all.
        list of (rows, minibatches)
            These clients' local steps.
        """


def mean_after(
    local: InParts, steps: Steps, step: float | NDArray, tau: int | NDArray | None = None
) -> NDArray:
    """See `problems.base.LocalModels`."""
    mean = 0.0
    for some, theirs in local.parts(steps):
        u = some.start
        gamma = np.asarray(step, u.dtype).reshape(-1, *(1,) * (u.ndim - 1))
        for n, batch in theirs:
            moved = some.gradient(u[:n], batch)
            moved *= gamma[:n]
            np.subtract(u[:n], moved, out=moved)
            if tau is not None:
                moved = some.hard_threshold(moved, tau if np.ndim(tau) == 0 else tau[:n])
            # As all rows take the first step, `u` is by the next no longer what the local models began with.
            if n == len(u):
                u = moved
            else:
                u[:n] = moved
        mean += some.mean(u)
    return mean


def few_at_a_time(clients: int, few: int, steps: Steps) -> Iterator[tuple[slice, Steps]]:
    """Go through the clients, so many at a time; yields which ones, and their local steps."""
    for first in range(0, clients, few):
        now = slice(first, first + few)
        yield now, [(rows, batch if batch is None else batch[:, now]) for rows, batch in steps]


def stacked(steps: Steps) -> tuple[NDArray, NDArray | None]:
    """How many rows take each local step, (K,), and the minibatches of all, (K, R or 1, N, b), or None.

    Where each row has minibatches of its own, those of the rows that do not take a step say nothing.
    """
    counts, first = np.array([rows for rows, _ in steps]), steps[0][1]
    if first is None:
        return counts, None
    batches = np.zeros((len(steps), *first.shape), np.int64)
    for stack, (_, batch) in zip(batches, steps, strict=True):
        stack[: len(batch)] = batch
    return counts, batches
