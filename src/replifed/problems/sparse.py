"""Linear models on sparse data: one block-diagonal matrix over all clients, columns compressed per client.

A client of a few hundred documents touches a few thousand of a corpus' columns. Its models live on
those alone, and the clients' columns stand side by side in one long vector. One sparse product serves
all clients where they use all samples; minibatches are read client by client, in compiled loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.operators.hard_threshold import as_integers, check_levels
from replifed.problems.gram import GramLocalModels
from replifed.problems.linear import (
    LinearObjective,
    check_clients,
    check_finite,
    check_ids,
    check_labels,
    floating,
)
from replifed.problems.losses import COMPILED, Loss
from replifed.problems.products import largest_eigenvalue

_GRAM_BYTES = 1 << 30
# Of all clients' Hessians, for one model.
_MOST_ENTRIES = 1 << 31


class SparseLinearModel(LinearObjective):
    """f_i(x) = mean over the client's samples of loss(X_i x, y_i) + l2 |x|^2 / 2, X in CSR form.

    Parameters
    ----------
    X : CSR matrix, shape (n, d)
        Samples of all clients, shared by all runs of a simulation; whole numbers become doubles.
    y, client : arrays, shape (n,)
        Targets, for logistic losses -1 or +1, and the client of each sample, 0 to N-1; each holds at least
        one.
    loss : Loss
        Least squares or logistic.
    weights : array, shape (1, N), optional
        p_i >= 0; n_i / n by default.
    l2 : float
        At least 0.

    Raises
    ------
    ReplifedError
        If any of these does not hold, or if features or targets are not finite.
    """

    def __init__(
        self,
        X: sp.csr_array | sp.csr_matrix,
        y: NDArray,
        loss: Loss,
        client: NDArray,
        *,
        weights: NDArray | None = None,
        l2: float = 0.0,
    ) -> None:
        if loss.name not in COMPILED:
            raise ReplifedError(
                f"sparse data take the losses {', '.join(COMPILED)}, not {loss.name}; use dense features"
            )
        X, y, client = floating(sp.csr_array(X)), np.asarray(y), np.asarray(client)
        if y.shape != X.shape[:1]:
            raise ReplifedError(f"targets of shape {y.shape}: must be {X.shape[:1]}, one a sample")
        # Every client holds a sample, so there are at most as many clients as samples.
        check_ids(client, len(y), len(y) if weights is None else np.shape(weights)[-1])
        check_finite(features=X.data, targets=y)
        check_labels(y, loss)
        order = np.argsort(client, kind="stable")
        self.X = X[order]
        self.X.sum_duplicates()  # which does nothing where there are none
        self.y = y[order]
        self.loss_function, self.l2 = loss, l2
        self.dtype = self.X.dtype
        self.dim, self.sizes = self.X.shape[1], np.bincount(client)[None]
        self.n_clients = self.sizes.shape[1]
        check_clients(self.sizes, weights, l2)
        self.weights = self.sizes / len(self.y) if weights is None else weights
        self.first = np.concatenate([[0], np.cumsum(self.sizes[0])])
        self.client = np.repeat(np.arange(self.n_clients), self.sizes[0])
        self._predicted: tuple[NDArray, NDArray] | None = None  # the last models, and their predictions

    # -- the objective at the server's models ----------------------------------------------------

    def predictions(self, x: NDArray) -> NDArray:
        """X x for the server's models (R, d); shape (R, n), not to be written to."""
        # Recording the objective and the next round ask for the same predictions.
        if self._predicted is None or not np.array_equal(self._predicted[0], x):
            self._predicted = x.copy(), _run_by_run(self.X, x)
        return self._predicted[1]

    def _fit(self, z: NDArray) -> NDArray:
        values = self.loss_function.value(z[..., None], self.y)
        return np.add.reduceat(values, self.first[:-1], axis=-1) / self.sizes

    def residuals(self, z: NDArray) -> NDArray:
        """Derivatives of the loss in predictions (R, n) of all samples."""
        return self.loss_function.derivative(z[..., None], self.y)[..., 0]

    def gradient(self, x: NDArray) -> NDArray:
        r = self.residuals(self.predictions(x)) * (self.weights / self.sizes)[0, self.client]
        return _run_by_run(self._transposed, r) + self.l2 * x * self.weights.sum()

    def client_gradients(self, x: NDArray) -> NDArray:
        """Gradient of each f_i at the server's models, dense, shape (R, N, d)."""
        r = self.residuals(self.predictions(x)) / self.counts
        g = np.empty((len(x), self.n_clients, self.dim))
        for i, (begin, end) in enumerate(pairwise(self.first)):
            g[:, i] = _run_by_run(self.X[begin:end].T, r[:, begin:end])
        return g + self.l2 * x[:, None]

    @cached_property
    def _transposed(self) -> sp.csr_array:
        """X' in CSR form: its product reads in order, that of X.T scatters its writes."""
        return self.X.T.tocsr()

    @cached_property
    def counts(self) -> NDArray:
        """m_i of each sample's client."""
        return self.sizes[0, self.client]

    def client_hessians(self, x: NDArray) -> NDArray:
        """See `problems.base.Hessian`."""
        from replifed.kernels.sparse import add_squares

        if self.n_clients * self.dim**2 > _MOST_ENTRIES:
            raise ReplifedError(f"{self.n_clients} Hessians of {self.dim} columns are too large")
        h = self.loss_function.second_derivative(self.predictions(x)[..., None], self.y)[..., 0, 0]
        H = np.zeros((len(x), self.n_clients, self.dim, self.dim))
        add_squares(self.X.data, self.X.indices, self.X.indptr, self.first, h / self.counts, H)
        np.einsum("rnii->rni", H)[:] += self.l2
        return H

    # -- constants -------------------------------------------------------------------------------

    def _client_blocks(self) -> Iterator[sp.csr_array]:
        """Each client's samples on the columns that they touch."""
        for begin, end in pairwise(self.first):
            block = self.X[begin:end]
            yield block[:, np.unique(block.indices)]

    def smoothness(self) -> NDArray:
        largest = [largest_eigenvalue(A, min(A.shape)) / A.shape[0] for A in self._client_blocks()]
        return self.loss_function.curvature * np.array([largest]) + self.l2

    def strong_convexity(self) -> NDArray:
        # Logistic losses are flat far off, others on columns that a client does not touch.
        if self.loss_function.name != "least_squares":
            return np.full(self.sizes.shape, self.l2)
        least = np.zeros(self.sizes.shape)
        for i, A in enumerate(self._client_blocks()):
            if A.shape[0] >= A.shape[1] == self.dim:
                least[0, i] = np.linalg.eigvalsh((A.T @ A).toarray() / A.shape[0])[0].clip(min=0.0)
        return least + self.l2

    # -- local models ----------------------------------------------------------------------------

    @property
    def _padded(self) -> tuple[NDArray, NDArray]:
        """Where each sample stands in arrays (N, m): client and position."""
        return self.client, np.arange(len(self.y)) - self.first[self.client]

    @cached_property
    def _gram(self) -> NDArray:
        m = int(self.sizes.max())
        gram = np.zeros((1, self.n_clients, m, m), self.dtype)
        for i, (begin, end) in enumerate(pairwise(self.first)):
            own = self.X[begin:end]
            gram[0, i, : end - begin, : end - begin] = (own @ own.T).toarray()
        return gram

    def _pad(self, values: NDArray) -> NDArray:
        """(..., n) to (..., N, m)."""
        padded = np.zeros((*values.shape[:-1], self.n_clients, int(self.sizes.max())), self.dtype)
        padded[(..., *self._padded)] = values
        return padded

    def _combine(self, coefficients: NDArray) -> NDArray:
        flat = coefficients[(slice(None), *self._padded, 0)]
        return _run_by_run(self.X.T, flat.astype(self.dtype, copy=False))

    def local(
        self,
        x: NDArray,
        *,
        additive: bool = False,
        sparsity: int | None = None,
        clients: NDArray | None = None,
        draws: int | None = None,
    ):
        """See `problems.base.LocalSteps`."""
        if clients is not None:
            raise ReplifedError("cohorts on sparse data are not supported; use dense features")
        if additive:
            m = int(self.sizes.max())
            if self.dtype.itemsize * self.n_clients * m * m > _GRAM_BYTES:
                return SparseAdditiveModels(self, x)
            real = np.arange(m) < self.sizes[..., None]
            return GramLocalModels(
                lambda: self._gram[0],
                np.arange(self.n_clients)[None],
                self._pad(self.predictions(x))[..., None],
                self._pad(self.y)[None],
                (real / self.sizes[..., None]).astype(self.dtype),
                np.ones(self.sizes.shape, self.dtype),
                self.l2,
                self.loss_function,
                self._combine,
                x,
                self.weights.astype(self.dtype, copy=False),
            )
        if sparsity is None:
            raise ReplifedError("local models on sparse data must be sparse, or change by gradients alone")
        return SparseLocalModels(self, x, min(sparsity, self.dim))

    @cached_property
    def touched(self) -> NDArray:
        """Whether each client's data touch each column, shape (N, d)."""
        touched = np.zeros((self.n_clients, self.dim), dtype=bool)
        for i, (begin, end) in enumerate(pairwise(self.first)):
            touched[i, self.X.indices[self.X.indptr[begin] : self.X.indptr[end]]] = True
        return touched

    def blocks(self, tail: int) -> tuple[sp.csr_array, NDArray, NDArray]:
        """Block-diagonal data (n, W) whose clients own their columns, then `tail` spare ones.

        With the column of X that each stands for, d for spare ones, and where each client's begin and end.
        """
        if self.__dict__.get("_blocks_of") != tail:
            columns, bounds = [], [0]
            indices = np.empty_like(self.X.indices, dtype=np.int64)
            for i, (begin, end) in enumerate(pairwise(self.first)):
                entries = slice(self.X.indptr[begin], self.X.indptr[end])
                touched = np.flatnonzero(self.touched[i])
                indices[entries] = bounds[-1] + np.searchsorted(touched, self.X.indices[entries])
                columns += [touched, np.full(tail, self.dim)]
                bounds.append(bounds[-1] + len(touched) + tail)
            # Half as much to read, where that is enough.
            whole = np.int32 if max(bounds[-1], self.dim) < np.iinfo(np.int32).max else np.int64
            csr = self.X.data, indices.astype(whole), self.X.indptr
            blocks = sp.csr_array(csr, shape=(len(self.y), bounds[-1]))
            self._built = blocks, np.concatenate(columns, dtype=whole), np.array(bounds)
            self._blocks_of = tail
        return self._built


def _run_by_run(A: sp.sparray, x: NDArray) -> NDArray:
    """A x for the model of each run: scipy takes several times as long for a few columns at once."""
    return np.stack([A @ model for model in x])


class _SideBySide:
    """Clients' models side by side on the columns that each touches, and `tail` spare ones; shape (R, W)."""

    def __init__(self, problem: SparseLinearModel, tail: int) -> None:
        self._problem = problem
        self._blocks, self._client_columns, self._bounds = problem.blocks(tail)

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        problem, A = self._problem, self._blocks
        if batch is None:
            g = _run_by_run(A.T, problem.residuals(_run_by_run(A, u)) / problem.counts)
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
        """Compiled `algorithms.local_steps.gradient_steps` on minibatches; None for what it lacks."""
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

    Behind a client's own columns stand spare ones for what the server's model has outside of them: data never
    change those entries, but they compete in the hard thresholding.
    """

    def __init__(self, problem: SparseLinearModel, x: NDArray, tau: int) -> None:
        super().__init__(problem, tau)
        self._x, self._tau = x, tau
        self._supports = [np.flatnonzero(model) for model in x]
        for support in self._supports:
            if len(support) > tau:
                raise ReplifedError(f"the server's model has {len(support)} non-zeros, more than {tau}")

    @cached_property
    def _columns(self) -> NDArray:
        """The column that each entry of a run's models stands for, shape (R, W); `dim` for none."""
        problem, spare = self._problem, self._bounds[1:, None] - self._tau
        named = np.empty((len(self._x), len(self._client_columns)), self._client_columns.dtype)
        for columns, support in zip(named, self._supports, strict=True):
            columns[:] = self._client_columns
            inside = problem.touched[:, support]
            columns[spare + np.arange(len(support))] = np.where(inside, problem.dim, support)
        return named

    @cached_property
    def start(self) -> NDArray:
        padded = np.pad(self._x, ((0, 0), (0, 1))).astype(self._problem.dtype, copy=False)
        return np.stack([model[columns] for model, columns in zip(padded, self._columns, strict=True)])

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        from replifed.kernels.selection import keep_largest

        check_levels(tau, u.shape)
        integers, most = as_integers(u)
        levels = np.broadcast_to(tau, len(u)).astype(np.int64)
        keep_largest(integers, most, self._columns, self._bounds, levels, integers)
        return u

    def mean(self, u: NDArray) -> NDArray:
        problem = self._problem
        x = np.empty((len(u), problem.dim), problem.dtype)
        for model, columns, mean in zip(u, self._columns, x, strict=True):
            nonzero = np.flatnonzero(model != 0)  # much faster on booleans
            p = np.repeat(problem.weights[0], np.diff(np.searchsorted(nonzero, self._bounds)))
            total = np.bincount(columns[nonzero], p * model[nonzero], minlength=problem.dim)
            mean[:] = total[: problem.dim]
        return x


class SparseAdditiveModels(_SideBySide):
    """Models that change by gradients alone, where the clients' Gram matrices would be too large.

    What a client's data do not touch stays as the server sent it; only changes are averaged.
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

    def mean(self, u: NDArray) -> NDArray:
        change = (u - self.start) * np.repeat(self._problem.weights[0], np.diff(self._bounds))
        total = [np.bincount(self._client_columns, each, self._problem.dim) for each in change]
        return self._x + np.array(total, self._x.dtype)
