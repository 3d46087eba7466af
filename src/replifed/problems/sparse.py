"""Linear models on sparse data: one block-diagonal matrix over all clients, columns compressed per client.

A client with a few hundred documents has non-zeros in a few thousand of a corpus' columns. Its local model
has these columns only, and the clients' models stand side by side in one long vector. Full batches of all
clients take one sparse product; minibatches are read client by client, in compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.errors import ReplifedError
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
from replifed.problems.sparse_local import RunByRun, SparseAdditiveModels, SparseLocalModels, run_by_run

_GRAM_BYTES = 1 << 30
# Non-zeros whose products are computed at a time.
_PIECE = 1 << 16


class SparseLinearModel(LinearObjective):
    """f_i(x) = mean over the client's samples of loss(X_i x, y_i) + l2 |x|^2 / 2, X in CSR form.

    Parameters
    ----------
    X : CSR matrix, shape (n, d)
        Samples of all clients, shared by all runs of a simulation; integers become doubles.
    y, client : arrays, shape (n,)
        Targets, for logistic losses -1 or +1, and the client of each sample, 0 to N-1; each client has at
        least one sample.
    loss : Loss
        Least squares or logistic.
    weights : array, shape (1, N), optional
        p_i >= 0; n_i / n by default.
    l2 : float
        At least 0.

    Raises
    ------
    ReplifedError
        One of these conditions fails, or features or targets are not finite.
    """

    # What to do if a method needs a capability that only dense data have.
    remedies: ClassVar = dict.fromkeys(
        ("PerClientModels", "RestrictedMinimiser"), "give dense features, such as X.toarray()"
    )

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
        sizes = np.bincount(client)[None]
        check_clients(sizes, weights, l2)
        if (client[1:] < client[:-1]).any():
            order = np.argsort(client, kind="stable")
            X, y = X[order], y[order]
        if not X.has_canonical_format:
            X = X.copy()  # the caller keeps theirs
            X.sum_duplicates()
        self.loss_function, self.l2, self.dtype, self.dim = loss, l2, X.dtype, X.shape[1]
        self._hold(X, y, sizes, sizes / len(y) if weights is None else weights)

    def _hold(self, X: sp.csr_array, y: NDArray, sizes: NDArray, weights: NDArray) -> None:
        """Store the samples, sorted by client, and the weights p_i."""
        self.X, self.y, self.sizes, self.weights = X, y, sizes, weights
        self.n_clients = sizes.shape[1]
        self.first = np.concatenate([[0], np.cumsum(sizes[0])])
        self.client = np.repeat(np.arange(self.n_clients), sizes[0])
        self._predicted: tuple[NDArray, NDArray] | None = None  # the last models, and their predictions
        self._own: dict[int, NDArray] = {}  # columns in which clients' data have non-zeros, once known
        self._kept: dict[int, NDArray] = {}  # places of clients' entries among these, for further cohorts
        # The problem that is asked instead, and which of its clients these are.
        self._part_of: tuple[SparseLinearModel, NDArray] | None = None

    def _part(self, chosen: NDArray) -> SparseLinearModel:
        """Problem of the clients `chosen` (c,), with weights scaled to the sum of all clients' weights."""
        sizes, p = self.sizes[:, chosen], self.weights[:, chosen]
        # Rows from first[i] on for each client i of them.
        before = np.cumsum(sizes[0]) - sizes[0]
        rows = np.arange(sizes.sum()) + np.repeat(self.first[chosen] - before, sizes[0])
        part = object.__new__(SparseLinearModel)
        part.loss_function, part.l2, part.dtype, part.dim = self.loss_function, self.l2, self.dtype, self.dim
        part._hold(self.X[rows], self.y[rows], sizes, p * (self._total_weight / p.sum()))
        return part

    def of_clients(self, chosen: NDArray) -> SparseLinearModel:
        """As `_part`, for parts that come again: they ask this problem which columns are theirs."""
        part = self._part(chosen)
        part._part_of = self, chosen
        return part

    @cached_property
    def _total_weight(self) -> float:
        return float(self.weights.sum())

    # -- the objective at the server's models ----------------------------------------------------

    def predictions(self, x: NDArray) -> NDArray:
        """X x for the server's models (R, d); shape (R, n), not to be written to."""
        # Recording the objective and the next round ask for the same predictions.
        if self._predicted is None or not np.array_equal(self._predicted[0], x):
            self._predicted = x.copy(), run_by_run(self.X, x)
        return self._predicted[1]

    def _fit(self, z: NDArray) -> NDArray:
        values = self.loss_function.value(z[..., None], self.y)
        return np.add.reduceat(values, self.first[:-1], axis=-1) / self.sizes

    def residuals(self, z: NDArray) -> NDArray:
        """Derivatives of the loss at the predictions (R, n) of all samples."""
        return self.loss_function.derivative(z[..., None], self.y)[..., 0]

    def gradient(self, x: NDArray) -> NDArray:
        r = self.residuals(self.predictions(x)) * (self.weights / self.sizes)[0, self.client]
        return run_by_run(self.X.T, r) + self.l2 * x * self.weights.sum()

    def client_gradients(self, x: NDArray) -> NDArray:
        """Gradient of each f_i at the server's models, dense, shape (R, N, d)."""
        r = self.residuals(self.predictions(x)) / self.counts
        g = np.empty((len(x), self.n_clients, self.dim))
        for i, (begin, end) in enumerate(pairwise(self.first)):
            g[:, i] = run_by_run(self.X[begin:end].T, r[:, begin:end])
        return g + self.l2 * x[:, None]

    @cached_property
    def counts(self) -> NDArray:
        """m_i of each sample's client."""
        return self.sizes[0, self.client]

    def client_hessians(self, x: NDArray) -> NDArray:
        """See `problems.base.Hessian`."""
        from replifed.kernels.sparse import squares

        h = self.loss_function.second_derivative(self.predictions(x)[..., None], self.y)[..., 0, 0]
        H = np.empty((len(x), self.n_clients, self.dim, self.dim))
        squares(self.X.data, self.X.indices, self.X.indptr, self.first, h / self.counts, H)
        np.einsum("rnii->rni", H)[:] += self.l2
        return H

    def hessian_products(self, x: NDArray) -> Callable[[NDArray], NDArray]:
        """See `problems.base.HessianProducts`."""
        h = self.loss_function.second_derivative(self.predictions(x)[..., None], self.y)[..., 0, 0]
        h *= (self.weights / self.sizes)[0, self.client]
        ridge = self.l2 * self._total_weight
        # (X'hX + ridge) v, from right to left.
        return lambda v: run_by_run(self.X.T, h * self.predictions(v)) + ridge * v

    # -- constants -------------------------------------------------------------------------------

    def _client_blocks(self) -> Iterator[sp.csr_array]:
        """Each client's samples, restricted to the columns in which they have non-zeros."""
        for (begin, end), touched in zip(pairwise(self.first), self.own_columns, strict=True):
            yield self.X[begin:end][:, touched]

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
        """Place of each sample in arrays (N, m): client and position."""
        return self.client, np.arange(len(self.y)) - self.first[self.client]

    @cached_property
    def _gram(self) -> NDArray:
        m = int(self.sizes.max())
        gram = np.zeros((1, self.n_clients, m, m), self.dtype)
        # Some clients at a time, since a product takes more room than its data.
        pieces = min(self.X.nnz // _PIECE + 1, self.n_clients)
        for some in np.array_split(np.arange(self.n_clients), pieces):
            part = self._part(some)
            A, *_ = part.blocks(0)  # one product for all of them, whose blocks do not meet
            products = (A @ A.T).tocoo()
            row, column = products.coords
            client, place = part._padded
            gram[0, some[client[row]], place[row], place[column]] = products.data
        return gram

    @cached_property
    def _gram_bytes(self) -> int:
        return self.dtype.itemsize * self.n_clients * int(self.sizes.max()) ** 2

    @cached_property
    def _in_span(self) -> bool:
        """True if models that change by gradients alone are held in the span of the samples."""
        return self._gram_bytes <= _GRAM_BYTES

    def _pad(self, values: NDArray) -> NDArray:
        """(..., n) to (..., N, m)."""
        padded = np.zeros((*values.shape[:-1], self.n_clients, int(self.sizes.max())), self.dtype)
        padded[(..., *self._padded)] = values
        return padded

    def _combine(self, coefficients: NDArray) -> NDArray:
        flat = coefficients[(slice(None), *self._padded, 0)]
        return run_by_run(self.X.T, flat.astype(self.dtype, copy=False))

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
            parts = [self.of_clients(chosen) for chosen in clients]
            if additive and self._gram_bytes <= self.X.data.nbytes:
                for part, chosen in zip(parts, clients, strict=True):
                    m = int(part.sizes.max())
                    part._gram = self._gram[:, chosen, :m, :m]
            elif not self.l2:  # Gram matrices of one round cost more than they save
                for part in parts:
                    part._in_span = False
            models = [x] if len(parts) == 1 else [model[None] for model in x]
            local = [
                part.local(own, additive=additive, sparsity=sparsity)
                for part, own in zip(parts, models, strict=True)
            ]
            return local[0] if len(local) == 1 else RunByRun(local)
        if additive:
            if not self._in_span:
                return SparseAdditiveModels(self, x)
            m = int(self.sizes.max())
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
            raise ReplifedError(
                "local models on sparse data must be sparse, or change by gradients alone: give dense "
                "features, such as X.toarray()"
            )
        return SparseLocalModels(self, x, min(sparsity, self.dim))

    def _columns(self, client: int) -> NDArray:
        """Columns in which a client's data have non-zeros, in increasing order."""
        if self._part_of is not None:
            whole, chosen = self._part_of
            return whole._columns(chosen[client])
        if client not in self._own:
            self._own[client] = np.unique(self._indices(client))
        return self._own[client]

    def _indices(self, client: int) -> NDArray:
        """Columns of a client's entries."""
        return self.X.indices[slice(*self.X.indptr[self.first[[client, client + 1]]])]

    def _places(self, client: int) -> NDArray:
        """Place of each of a client's entries' columns among its own; kept if it takes part in cohorts."""
        if self._part_of is not None:
            whole, chosen = self._part_of
            if (name := chosen[client]) not in whole._kept:
                whole._kept[name] = whole._places(name)
            return whole._kept[name]
        own = self._columns(client)
        return np.searchsorted(own, self._indices(client)).astype(np.min_scalar_type(len(own)))

    @property
    def own_columns(self) -> list[NDArray]:
        """Columns in which each client's data have non-zeros, in increasing order."""
        return [self._columns(client) for client in range(self.n_clients)]

    def blocks(self, tail: int) -> tuple[sp.csr_array, NDArray, NDArray]:
        """Block-diagonal data (n, W): each client's own columns, followed by `tail` spare ones.

        Also returned: the column of X for which each stands (d for spare ones), and the bounds of each
        client's columns.
        """
        if self.__dict__.get("_blocks_of") != tail:
            # Half as much to read, where that is enough.
            most = max(self.X.nnz + tail * self.n_clients, self.dim)
            whole = np.int32 if most < np.iinfo(np.int32).max else np.int64
            parts, bounds, spare = [], [0], np.full(tail, self.dim, whole)
            for own in self.own_columns:
                parts += [own, spare]
                bounds.append(bounds[-1] + len(own) + tail)
            columns = np.concatenate(parts, dtype=whole)
            for client in self._own:  # no second copy of them
                self._own[client] = columns[bounds[client] : bounds[client + 1] - tail]
            indices = np.empty_like(self.X.indices, dtype=whole)
            for client, rows in enumerate(pairwise(self.first)):
                entries = slice(*self.X.indptr[list(rows)])
                indices[entries] = self._places(client).astype(whole) + bounds[client]
            blocks = sp.csr_array((self.X.data, indices, self.X.indptr), shape=(len(self.y), bounds[-1]))
            self._built = blocks, columns, np.array(bounds)
            self._blocks_of = tail
        return self._built
