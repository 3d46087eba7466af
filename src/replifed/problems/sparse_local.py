"""Sparse linear models with a separate model at each client, side by side on the clients' own columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.operators.hard_threshold import as_integers, check_levels
from replifed.problems.losses import COMPILED

if TYPE_CHECKING:
    from replifed.problems.sparse import SparseLinearModel


def run_by_run(A: sp.sparray, x: NDArray) -> NDArray:
    """A x for each run's model, one by one: scipy takes several times as long for a few columns at once."""
    return np.stack([A @ model for model in x])


class _SideBySide:
    """Clients' models side by side, each on its own columns and `tail` spare ones; shape (R, W)."""

    def __init__(self, problem: SparseLinearModel, tail: int) -> None:
        self._problem = problem
        self._blocks, self._client_columns, self._bounds = problem.blocks(tail)

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        problem, A = self._problem, self._blocks
        if batch is None:
            g = run_by_run(A.T, problem.residuals(run_by_run(A, u)) / problem.counts)
        else:  # each drawn sample is read where it lies, and a client's model stays in the cache
            from replifed.kernels.sparse import minibatch_gradients

            models, samples = np.ascontiguousarray(u, problem.dtype), batch + problem.first[:-1, None]
            loss, g = COMPILED.index(problem.loss_function.name), np.empty_like(models)
            minibatch_gradients(
                A.data, A.indices, A.indptr, problem.y, self._bounds, samples, loss, models, g
            )
        if problem.l2:
            g += problem.l2 * u
        return g

    def descend(
        self: Any,
        batches: list[NDArray] | list[None],
        eta: float | NDArray,
        pull: float | NDArray,
        tau: int | NDArray | None,
    ) -> NDArray | None:
        """Compiled `algorithms.local_steps.gradient_steps` on minibatches; None where nothing is compiled."""
        if batches[0] is None or np.any(pull):
            return None
        from replifed.kernels.sparse import minibatch_steps

        problem, A = self._problem, self._blocks
        w = np.array(self.start, problem.dtype)
        moved = np.empty(np.diff(self._bounds).max(), w.dtype)
        (integers, most), R = as_integers(w), len(w)
        keys, levels = np.empty((0, 0), np.int64), np.empty(0, np.int64)
        if tau is not None:
            check_levels(tau, w.shape)
            keys, levels = self._columns, np.full(R, tau, np.int64)
        minibatch_steps(
            *(A.data, A.indices, A.indptr, problem.y, self._bounds),
            np.array(batches, np.int64) + problem.first[:-1, None],
            COMPILED.index(problem.loss_function.name),
            np.full(R, eta, w.dtype),
            w.dtype.type(problem.l2),
            levels,
            most,
            keys,
            w,
            integers,
            (moved, as_integers(moved)[0]),
        )
        return w


class SparseLocalModels(_SideBySide):
    """Sparse models that are thresholded between steps.

    Spare columns after a client's own ones hold the server model's non-zeros elsewhere: the client's data
    never change those entries, but they compete in the hard thresholding.
    """

    def __init__(self, problem: SparseLinearModel, x: NDArray, tau: int) -> None:
        super().__init__(problem, tau)
        self._x, self._tau = x, tau
        self._supports = [np.flatnonzero(model) for model in x]
        for support in self._supports:
            if len(support) > tau:
                raise ReplifedError(f"the server's model has {len(support)} non-zeros, more than {tau}")

    @cached_property
    def _placed(self) -> list[NDArray]:
        """`SparseLinearModel.places` of each run's support, (N, s)."""
        return [self._problem.places[:, support].toarray() for support in self._supports]

    @cached_property
    def _columns(self) -> NDArray:
        """The column that each entry of a run's models stands for, shape (R, W); `dim` for none."""
        named = np.empty((len(self._x), len(self._client_columns)), self._client_columns.dtype)
        for columns, support, placed in zip(named, self._supports, self._placed, strict=True):
            columns[:] = self._client_columns
            columns[self._spare(len(support))] = np.where(placed > 0, self._problem.dim, support)
        return named

    def _spare(self, size: int) -> NDArray:
        """Places of each client's first `size` spare columns, (N, size)."""
        return self._bounds[1:, None] - self._tau + np.arange(size)

    @cached_property
    def start(self) -> NDArray:
        begin = np.zeros((len(self._x), len(self._client_columns)), self._problem.dtype)
        for model, x, support, placed in zip(begin, self._x, self._supports, self._placed, strict=True):
            own = self._bounds[:-1, None] + placed - 1
            model[np.where(placed > 0, own, self._spare(len(support)))] = x[support]
        return begin

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        from replifed.kernels.selection import keep_largest

        check_levels(tau, u.shape)
        integers, most = as_integers(u)
        levels = np.broadcast_to(tau, len(u)).astype(np.int64)
        keep_largest(integers, most, self._columns, self._bounds, levels, integers)
        return u

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        problem = self._problem
        each = np.broadcast_to(problem.weights if weights is None else weights, (len(u), problem.n_clients))
        x = np.empty((len(u), problem.dim), problem.dtype)
        for model, columns, mean, p_i in zip(u, self._columns, x, each, strict=True):
            nonzero = np.flatnonzero(model != 0)  # much faster on booleans
            p = np.repeat(p_i, np.diff(np.searchsorted(nonzero, self._bounds)))
            total = np.bincount(columns[nonzero], p * model[nonzero], minlength=problem.dim)
            mean[:] = total[: problem.dim]
        return x


class SparseAdditiveModels(_SideBySide):
    """Models that change by gradients alone, where the clients' Gram matrices would be too large.

    Coordinates outside a client's own columns stay as the server sent them; only changes are averaged.
    """

    def __init__(self, problem: SparseLinearModel, x: NDArray) -> None:
        if problem.l2:
            # The ridge would move the columns that are left out here.
            raise ReplifedError(
                "a ridge needs the clients' Gram matrices, which are too large; split the data further"
            )
        super().__init__(problem, tail=0)
        self._x = x
        self.start = x[:, self._client_columns]

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        raise ReplifedError("models that change by gradients alone cannot be thresholded")

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        p = self._problem.weights if weights is None else weights
        change = (u - self.start) * np.repeat(p, np.diff(self._bounds), axis=1)
        total = [np.bincount(self._client_columns, each, self._problem.dim) for each in change]
        # The p_i usually sum to one, up to rounding.
        whole = np.round(p.sum(axis=1, keepdims=True, dtype=float), 12).astype(self._x.dtype)
        return whole * self._x + np.array(total, self._x.dtype)


class RunByRun:
    """Local models of runs with different cohorts, run after run, padded to one shape."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts
        shapes = [part.start.shape[1:] for part in parts]
        # Where each run's models lie in an array of all, without the padding.
        self._places = [(slice(r, r + 1), *map(slice, shape)) for r, shape in enumerate(shapes)]
        self.start = np.zeros((len(parts), *np.max(shapes, axis=0)), parts[0].start.dtype)
        for place, part in zip(self._places, parts, strict=True):
            self.start[place] = part.start

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        g = np.zeros_like(u)
        for run, (place, part) in enumerate(zip(self._places, self._parts, strict=True)):
            drawn = None if batch is None else batch[[run if len(batch) > 1 else 0]]
            g[place] = part.gradient(u[place], drawn)
        return g

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        levels = np.broadcast_to(tau, len(u))[:, None]
        for level, place, part in zip(levels, self._places, self._parts, strict=True):
            u[place] = part.threshold(u[place], level)
        return u

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        pairs = enumerate(zip(self._places, self._parts, strict=True))
        if weights is None:
            return np.concatenate([part.mean(u[place]) for _, (place, part) in pairs])
        own = weights if len(weights) > 1 else np.repeat(weights, len(self._parts), axis=0)
        return np.concatenate([part.mean(u[place], own[[run]]) for run, (place, part) in pairs])
