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
        self._problem, self._tail = problem, tail

    @cached_property
    def _built(self) -> tuple[sp.csr_array, NDArray, NDArray]:
        return self._problem.blocks(self._tail)

    @property
    def _client_columns(self) -> NDArray:
        return self._built[1]

    @property
    def _bounds(self) -> NDArray:
        return self._built[2]

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        problem, A = self._problem, self._built[0]
        if batch is None:
            g = run_by_run(A.T, problem.residuals(run_by_run(A, u)) / problem.counts)
        else:  # each drawn sample is read where it lies, and a client's model stays in the cache
            from replifed.kernels.sparse import minibatch_gradients

            models, g = np.ascontiguousarray(u, problem.dtype), np.empty(u.shape, problem.dtype)
            loss, samples = COMPILED.index(problem.loss_function.name), _drawn([batch], problem)[0]
            minibatch_gradients(*_data(A, problem), self._bounds, samples, loss, models, g)
        if problem.l2:
            g += problem.l2 * u
        return g


def _data(A: sp.csr_array, problem: SparseLinearModel) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Features and targets as compiled loops take them."""
    return A.data, A.indices, A.indptr, problem.y


def _drawn(batches: list[NDArray] | list[None], problem: SparseLinearModel) -> NDArray:
    """Minibatches as numbers among the samples of all clients, (K, B, N, b)."""
    return np.array(batches, np.int64) + problem.first[:-1, None]


class SparseLocalModels(_SideBySide):
    """Sparse models that are thresholded between steps.

    Spare columns after a client's own ones hold the server model's non-zeros elsewhere: the client's data
    never change those entries, but they compete in the hard thresholding.
    """

    def __init__(
        self, problem: SparseLinearModel, x: NDArray, tau: int, supports: list[NDArray] | None = None
    ) -> None:
        super().__init__(problem, tau)
        self._x, self._tau = x, tau
        # Much faster on booleans.
        self._supports = supports or [np.flatnonzero(model != 0) for model in x]
        for support in self._supports:
            if len(support) > tau:
                raise ReplifedError(f"the server's model has {len(support)} non-zeros, more than {tau}")

    @cached_property
    def _placed(self) -> list[NDArray]:
        """One plus the place of each run's support among each client's columns, (N, s), 0 for none."""
        found = []
        for support in self._supports:
            placed = np.zeros((self._problem.n_clients, len(support)), np.int64)
            for client, own in enumerate(self._problem.own_columns):
                _, theirs, places = np.intersect1d(support, own, assume_unique=True, return_indices=True)
                placed[client, theirs] = 1 + places
            found.append(placed)
        return found

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

    def descend(
        self,
        batches: list[NDArray] | list[None],
        eta: float | NDArray,
        pull: float | NDArray,
        tau: int | NDArray | None,
    ) -> sp.csr_array | None:
        """`algorithms.local_steps.gradient_steps` with thresholds, without a pull; models as `rows` has them.

        One client after the other takes its steps, so that no array holds the columns of all.
        """
        if tau is None or np.any(pull):
            return None
        problem, x = self._problem, self._x
        (R, dim), N, dtype = x.shape, problem.n_clients, problem.dtype
        check_levels(tau, x.shape)
        step, levels = np.full(R, eta, dtype), np.full(R, tau, np.int64)
        if batches[0] is None:
            each = [self._alone(client, len(batches), step[:, None], levels) for client in range(N)]
            return sp.csr_array(sp.vstack(each)[np.arange(N * R).reshape(N, R).T.ravel()])
        from replifed.kernels.sparse import thresholded_steps

        A, own, bounds = problem.blocks(0)
        columns, values = np.zeros((R, N, self._tau), own.dtype), np.zeros((R, N, self._tau), dtype)
        for run, support in enumerate(self._supports):
            columns[run, :, : len(support)], values[run, :, : len(support)] = support, x[run, support]
        moved = np.empty(self._tau + np.diff(A.indptr[problem.first]).max() + 1, dtype)
        integers, most = as_integers(moved)
        thresholded_steps(
            *_data(A, problem),
            bounds,
            own,
            _drawn(batches, problem),
            COMPILED.index(problem.loss_function.name),
            step,
            problem.dtype.type(problem.l2),
            levels,
            most,
            (columns, values),
            (moved, integers),
        )
        first = np.arange(0, values.size + 1, self._tau)
        return sp.csr_array((values.ravel(), columns.ravel(), first), shape=(R * N, dim))

    def _alone(self, client: int, steps: int, eta: NDArray, tau: NDArray) -> sp.csr_array:
        """Models of one client after steps with all of its samples, (R, dim)."""
        part = self._problem.of_clients(np.array([client]))
        one = SparseLocalModels(part, self._x, self._tau, self._supports)
        u = one.start
        for _ in range(steps):
            u = one.threshold(u - eta * one.gradient(u, None), tau)
        return one.rows(u)

    def rows(self, u: NDArray) -> sp.csr_array:
        """Models (R, W) in the server's coordinates, a row for each run and client."""
        nonzeros = [np.flatnonzero(model != 0) for model in u]
        columns = [named[places] for named, places in zip(self._columns, nonzeros, strict=True)]
        values = [model[places] for model, places in zip(u, nonzeros, strict=True)]
        counts = [np.diff(np.searchsorted(places, self._bounds)) for places in nonzeros]
        first = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        shape = len(u) * self._problem.n_clients, self._problem.dim
        return sp.csr_array((np.concatenate(values), np.concatenate(columns), first), shape=shape)

    def mean(self, u: NDArray | sp.csr_array, weights: NDArray | None = None) -> NDArray:
        problem, rows = self._problem, self.rows(u) if isinstance(u, np.ndarray) else u
        N, x = problem.n_clients, np.empty_like(self._x, problem.dtype)
        each = np.broadcast_to(problem.weights if weights is None else weights, (len(x), N))
        for run, p_i in enumerate(each):
            first = rows.indptr[run * N : (run + 1) * N + 1]
            entries, p = slice(first[0], first[-1]), np.repeat(p_i, np.diff(first))
            x[run] = np.bincount(rows.indices[entries], p * rows.data[entries], minlength=problem.dim)
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

    def descend(
        self,
        batches: list[NDArray] | list[None],
        eta: float | NDArray,
        pull: float | NDArray,
        tau: int | NDArray | None,
    ) -> NDArray | None:
        """Compiled `algorithms.local_steps.gradient_steps` on minibatches without a pull; None for others."""
        if batches[0] is None or np.any(pull) or tau is not None:
            return None
        from replifed.kernels.sparse import minibatch_steps

        problem, (A, _, bounds), w = self._problem, self._built, self.start.copy()
        loss, step = COMPILED.index(problem.loss_function.name), np.full(len(w), eta, w.dtype)
        minibatch_steps(*_data(A, problem), bounds, _drawn(batches, problem), loss, step, w)
        return w

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
