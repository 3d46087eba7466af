"""The agents of one round, for methods whose agents remember: all of them, a fixed-size cohort, or a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round
from replifed.algorithms.local_solvers import Draws, LocalSolver
from replifed.network.ledger import dense_bits


class Agents:
    """Those who take part in a round.

    A cohort of fixed size is cut out, so that nothing is computed for the others; with a mask every agent
    computes, and those who are out keep what they had.

    Attributes
    ----------
    problem : the problem of those who compute, c agents a row.
    names : int (R or 1, c), which agents these are; None for all.
    """

    def __init__(self, problem: Any, ctx: Round) -> None:
        self.names, self._ctx, self._whole = ctx.chosen, ctx, problem
        self._mask = ctx.active if ctx.chosen is None else None
        self.problem = problem if self.names is None else problem.with_clients(self.names)

    def take(self, array: NDArray) -> NDArray:
        """Of an array (R, N, D), the part of those who compute, (R, c, D)."""
        return array if self.names is None else np.take_along_axis(array, self.names[..., None], axis=1)

    def put(self, old: NDArray, new: NDArray) -> NDArray:
        """`old` (R, N, D) with the results `new` (R, c, D) of those who take part."""
        if self._mask is not None:
            return np.where(self._mask[..., None], new, old)
        if self.names is None:
            return new
        out = old.copy()
        np.put_along_axis(
            out, np.broadcast_to(self.names[..., None], (len(old), *new.shape[1:])), new, axis=1
        )
        return out

    def draw(self, solver: LocalSolver, steps: int | None = None) -> Draws:
        """Random numbers of a solver's steps; those of an agent do not depend on who else takes part."""
        drawn = solver.draw(self._ctx, self._whole, solver.steps if steps is None else steps)
        return drawn if self.names is None else drawn.of_agents(self.names)

    def mean(self, array: NDArray) -> NDArray:
        """Mean over those who take part, (R, c, D) -> (R, D); 0 where nobody does."""
        if self._mask is None:
            return array.mean(axis=1)
        some = np.maximum(self.count(), 1)
        return np.where(self._mask[..., None], array, 0.0).sum(axis=1) / some[:, None]

    def count(self) -> NDArray:
        """Number of agents that take part, shape (R or 1,)."""
        if self._mask is not None:
            return self._mask.sum(axis=1)
        return np.array([self._whole.n_clients if self.names is None else self.names.shape[1]])

    @property
    def everyone(self) -> bool:
        """Whether all agents take part in every round."""
        return self._mask is None and self.count()[0] == self._whole.n_clients

    def message(self, vectors: int = 1) -> NDArray:
        """Bits of `vectors` dense models to or from each of them, (R or 1,)."""
        return self.count() * vectors * dense_bits(self._whole.dim)

    def samples(self, used: NDArray) -> NDArray:
        """Sum of `used` (S, N), samples of each agent, over those who take part; shape (R,)."""
        rows = len(self._ctx.streams) // len(used)
        if self.names is None and self._mask is None:
            return np.repeat(used.sum(axis=1), rows)
        used = np.repeat(used, rows, axis=0)
        if self.names is not None:
            names = np.broadcast_to(self.names, (len(used), self.names.shape[1]))
            used = np.take_along_axis(used, names, axis=1)
        else:
            used = used * self._mask
        return used.sum(axis=1)
