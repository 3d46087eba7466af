"""Linear models (least squares, logistic, softmax) on dense data, stacked over clients and runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.operators.hard_threshold import hard_threshold
from replifed.problems import products, restricted
from replifed.problems.dense_clients import DenseClientModels
from replifed.problems.gram import GramLocalModels
from replifed.problems.linear import (
    LinearObjective,
    check_clients,
    check_finite,
    check_labels,
    check_runs,
    floating,
)
from replifed.problems.losses import Loss

if TYPE_CHECKING:
    import scipy.sparse as sp

# Arrays (S, N, ...) that a part of the problem has from the whole.
_STACKED = ("place", "y", "sizes", "weights", "sample_weights", "batch_weights")
# Fewest entries of a client's matrix for a product of its own, without a copy beside others.
_WORTH_A_CALL = 1 << 12
# A product summed into a Hessian where it belongs takes as long as so many of a dense product.
_ENTRY_COSTS = 12


def in_span(samples: int, features: int, draws: int | None = None, *, cohort: bool = False) -> bool:
    """True if local steps cost less in the span of the client's samples (m numbers each) than outside (2 d).

    In the span, the steps need the predictions of all samples before them, unless these are cached, and a
    product with all samples after them. If a client makes few `draws` (None: full batches), both cost more
    than the steps.
    """
    enough = draws is None or samples <= (draws if cohort else 4 * draws)
    return 3 * samples <= 2 * features and enough


class DenseLinearModel(DenseClientModels, LinearObjective):
    """f_i(x) = mean (or sum) over the client's samples of loss(X_i x, y_i) + l2 |x|^2 / 2.

    Parameters
    ----------
    X : array, shape (S, N, m, d)
        Features, with zeros behind the samples of clients that have fewer than m. Its dtype is that of the
        whole computation; whole numbers become doubles. S is 1, or the number of runs R. Where clients have
        models of their own (`problems.base.PerClientModels`), S need only divide R.
    y : array, shape (S, N, m)
        Targets; for logistic losses -1 or +1, for a softmax 0 to C - 1.
    loss : Loss
    sizes, weights : arrays, shape (S, N), optional
        Numbers of samples n_i, from 1 to m, and weights p_i >= 0; by default m and n_i / n.
    l2 : float
        At least 0.
    summed : bool
        Whether f_i is the sum, not the mean, over its samples.

    Raises
    ------
    ReplifedError
        One of these conditions fails, or features or targets are not finite.
    """

    def __init__(
        self,
        X: NDArray,
        y: NDArray,
        loss: Loss,
        *,
        sizes: NDArray | None = None,
        weights: NDArray | None = None,
        l2: float = 0.0,
        summed: bool = False,
    ) -> None:
        X, y = floating(np.asarray(X)), np.asarray(y)
        if X.ndim != 4 or y.shape != X.shape[:3]:
            raise ReplifedError(
                f"features {X.shape} and targets {y.shape}: must be (sets, clients, samples, features) and "
                "(sets, clients, samples)"
            )
        self.y, self.loss_function, self.l2, self.dtype = y, loss, l2, X.dtype
        n_sets, self.n_clients, self.n_samples, self.n_features = X.shape
        # Features of each client of each set, (P, m, d), and the number of each among them, (S, N).
        self.rows = X.reshape(-1, *X.shape[2:])
        self.place = np.arange(len(self.rows)).reshape(n_sets, -1)
        self.X = self.rows.reshape(X.shape)
        self.dim = self.n_features * loss.n_outputs
        self.sizes = np.full((n_sets, self.n_clients), self.n_samples) if sizes is None else np.asarray(sizes)
        _check_sizes(self.sizes, X.shape[:3])
        check_clients(self.sizes, weights, l2)
        check_finite(features=X, targets=y)
        total = self.sizes.sum(axis=1, keepdims=True)
        self.weights = (self.sizes / total if weights is None else weights).astype(X.dtype)
        real = np.arange(self.n_samples) < self.sizes[..., None]
        check_labels(y[real], loss)
        if loss.name == "softmax":
            # Compiled code takes classes for indices, also those of padding, which may be anything.
            self.y = np.where(real, y, 0).astype(np.int64)
        per_sample = np.ones(self.sizes.shape) if summed else 1.0 / self.sizes
        self.sample_weights = (real * per_sample[..., None]).astype(X.dtype)
        self.batch_weights = (self.sizes * per_sample).astype(X.dtype)
        # What `common_mu_L` returns for a part of a problem.
        self._of_all: tuple[NDArray, NDArray] | None = None
        # The data, models and outcome of the last predictions; a part of the problem has other data.
        self._predicted: tuple[Any, Any, Any] = None, None, None

    @property
    def _one_by_one(self) -> bool:
        """True if clients' matrices are multiplied in place, one by one."""
        return "X" not in vars(self) and self.n_samples * self.n_features >= _WORTH_A_CALL

    # -- the objective at the server's models ----------------------------------------------------

    def predictions(self, x: NDArray) -> NDArray:
        """X_i x for the server's models `x` (R, D); shape (R, N, m, C), not to be written to."""
        S = len(self.place)
        if S not in (1, len(x)):
            raise ReplifedError(
                f"{len(x)} models of the server and {S} data sets: must be one set, or one a model"
            )
        # The record of the objective and the next round ask for the same.
        place, last, z = self._predicted
        if place is not self.place or last.dtype != x.dtype or not np.array_equal(last, x):
            models = x.reshape(len(x), self.n_features, -1)
            if self._one_by_one:
                z = self._products_one_by_one(models)
            elif S == 1:
                # One product over all samples and all runs.
                columns = models.transpose(1, 0, 2).reshape(self.n_features, -1)
                z = products.tall_product(self.X[0].reshape(-1, self.n_features), columns)
                z = z.reshape(self.n_clients, self.n_samples, len(x), -1).transpose(2, 0, 1, 3)
            else:
                z = np.matmul(self.X, models[:, None])
            self._predicted = self.place, x.copy(), z
        return z

    def _products_one_by_one(self, models: NDArray) -> NDArray:
        """X_i x as `predictions`, for `models` (R, d, C)."""
        (runs, d, C), S = models.shape, len(self.place)
        columns = models.reshape(S, -1, d, C).transpose(0, 2, 1, 3).reshape(S, d, -1)
        z = np.array([[self.rows[p] @ u for p in each] for each, u in zip(self.place, columns, strict=True)])
        z = z.reshape(*z.shape[:3], -1, C).transpose(0, 3, 1, 2, 4)
        return z.reshape(runs, *z.shape[2:])

    def _fit(self, z: NDArray) -> NDArray:
        values = self.loss_function.value(z, self.y)
        return np.einsum("rnm,rnm->rn", values, np.broadcast_to(self.sample_weights, values.shape))

    def client_gradients(self, x: NDArray) -> NDArray:
        """Gradient of each f_i at the server's models, shape (R, N, D)."""
        r = self.loss_function.derivative(self.predictions(x), self.y) * self.sample_weights[..., None]
        g = products.client_products(self.X.swapaxes(-1, -2), r)
        return g.reshape(len(x), self.n_clients, self.dim) + self.l2 * x[:, None]

    def gradient(self, x: NDArray) -> NDArray:
        r = self.loss_function.derivative(self.predictions(x), self.y)
        r *= (self.sample_weights * self.weights[..., None])[..., None]
        return self.combine(r) + self.l2 * x * self.weights.sum(axis=1, keepdims=True)

    def combine(self, coefficients: NDArray) -> NDArray:
        """sum_i X_i' a_i for coefficients (R, N, m, C); shape (R, D)."""
        runs, _, m, outputs = coefficients.shape
        if self._one_by_one:
            S, g = len(self.place), np.empty((runs, self.n_features, outputs), coefficients.dtype)
            for s, each in enumerate(self.place):
                of_set = slice(s * runs // S, (s + 1) * runs // S)
                a = coefficients[of_set].transpose(1, 2, 0, 3).reshape(len(each), m, -1)
                total = sum(self.rows[p].T @ a_i for p, a_i in zip(each, a, strict=True))
                g[of_set] = total.reshape(self.n_features, -1, outputs).swapaxes(0, 1)
            return g.reshape(runs, self.dim)
        flat = coefficients.reshape(runs, -1, outputs)
        if len(self.X) == 1:
            columns = flat.transpose(1, 0, 2).reshape(flat.shape[1], -1)
            g = products.tall_product_transposed(self.X[0].reshape(-1, self.n_features), columns)
            return g.reshape(self.n_features, runs, outputs).transpose(1, 0, 2).reshape(runs, self.dim)
        X = self.X.reshape(runs, -1, self.n_features)
        return np.matmul(X.swapaxes(1, 2), flat).reshape(runs, self.dim)

    def client_hessians(self, x: NDArray) -> NDArray:
        return self._hessians(self.predictions(x))

    def _hessians(self, z: NDArray) -> NDArray:
        """Hessian of each f_i, from the predictions `z` (R, N, m, C) of its samples."""
        h = self.loss_function.second_derivative(z, self.y) * self.sample_weights[..., None, None]
        runs, (N, d), C = len(z), (self.n_clients, self.n_features), self.loss_function.n_outputs
        H = np.empty((runs, N, d, C, d, C), np.result_type(self.X, h))
        if C == 1 and self._sparse is not None:
            from replifed.kernels.sparse import squares

            (A, m), S = (self._sparse, self.n_samples), len(self.X)
            first, each = np.arange(N + 1) * m, runs // S
            for s in range(S):
                rows, of_set = slice(s * N * m, (s + 1) * N * m + 1), slice(s * each, (s + 1) * each)
                weights = h[of_set].reshape(each, N * m)
                squares(A.data, A.indices, A.indptr[rows], first, weights, H[of_set].reshape(each, N, d, d))
        elif C == 1:
            root, scaled = np.sqrt(h[..., 0]), np.empty(self.X.shape[2:], H.dtype)
            # A matrix times its own transpose costs half of a general product; one client stays in the cache.
            for r, i in np.ndindex(runs, N):
                np.multiply(self.X[r * len(self.X) // runs, i], root[r, i], out=scaled)
                np.matmul(scaled.T, scaled, out=H[r, i, :, 0, :, 0])
        else:
            for a, b in np.ndindex(C, C):
                H[:, :, :, a, :, b] = np.matmul(self.X.swapaxes(-1, -2), self.X * h[..., a, b, None])
        H = H.reshape(runs, N, self.dim, self.dim)
        np.einsum("rnii->rni", H)[:] += self.l2
        return H

    @cached_property
    def _sparse(self) -> sp.csr_array | None:
        """All samples (S N m, d) in CSR form, where a Hessian is sooner summed entry by entry; else None.

        Sums are of doubles, as those of all methods that need Hessians.
        """
        import scipy.sparse as sp

        rows = self.X.reshape(-1, self.n_features)
        if self.dtype != np.float64:
            return None
        entries = np.square(np.count_nonzero(rows, axis=1)).sum()
        return sp.csr_array(rows) if _ENTRY_COSTS * entries <= rows.size * self.n_features else None

    def hessian_products(self, x: NDArray) -> Callable[[NDArray], NDArray]:
        """See `problems.base.HessianProducts`."""
        h = self.loss_function.second_derivative(self.predictions(x), self.y)
        h *= (self.sample_weights * self.weights[..., None])[..., None, None]
        ridge = self.l2 * self._total_weight
        # (X'hX + ridge) v, from right to left.
        return lambda v: self.combine(np.einsum("rnmab,rnmb->rnma", h, self.predictions(v))) + ridge * v

    def per_client_hessians(self, u: NDArray) -> NDArray:
        """See `problems.base.PerClientModels`."""
        S, runs = len(self.X), len(u)
        check_runs(runs, S)
        sets = np.arange(runs) * S // runs
        data = self if S in (1, runs) else self._part(lambda array: array[sets])
        return data._hessians(products.client_products(data.X, u.reshape(*u.shape[:2], self.n_features, -1)))

    # -- constants -------------------------------------------------------------------------------

    def smoothness(self) -> NDArray:
        return self._smoothness

    def strong_convexity(self) -> NDArray:
        return self._strong_convexity

    @cached_property
    def _smoothness(self) -> NDArray:
        size = min(self.n_samples, self.n_features)
        largest = [
            products.largest_eigenvalue(A, size) for A in self.X.reshape(-1, self.n_samples, self.n_features)
        ]
        # Samples of a client weigh the same, and padding is zero.
        curvature = self.loss_function.curvature * self.batch_weights.astype(float) / self.sizes
        return curvature * np.reshape(largest, self.sizes.shape) + self.l2

    @cached_property
    def _strong_convexity(self) -> NDArray:
        # Far from their minimiser logistic losses are flat: only the ridge bounds the curvature from below.
        # The same holds for least squares with fewer samples than coordinates.
        if self.loss_function.name != "least_squares" or self.n_features > self.n_samples:
            return np.full(self.sizes.shape, self.l2)
        scaled = self.X * np.sqrt(self.sample_weights)[..., None]
        return np.linalg.eigvalsh(scaled.swapaxes(-1, -2) @ scaled)[..., 0].clip(min=0.0) + self.l2

    def common_mu_L(self) -> tuple[NDArray, NDArray]:
        """See `problems.base.PerClientModels`."""
        if self._of_all is None:
            self._of_all = self.strong_convexity().min(axis=1), self.smoothness().max(axis=1)
        return self._of_all

    # -- parts of the problem --------------------------------------------------------------------

    def with_clients(self, chosen: NDArray) -> DenseLinearModel:
        """See `problems.base.PerClientModels`."""
        n_sets = len(self.place)
        if n_sets > 1 and len(chosen) > 1:  # one cohort is that of all runs
            chosen = self._by_set(chosen, "share their cohorts")
        run = np.arange(n_sets)[:, None] if n_sets > 1 else 0
        part = self._part(lambda array: array[run, chosen])
        # Cohorts that differ between runs make one data set a run out of one for all.
        mu, L = (np.repeat(constant, len(part.place) // n_sets) for constant in self.common_mu_L())
        part._of_all = mu, L
        return part

    def with_runs(self, kept: NDArray) -> DenseLinearModel:
        """See `problems.base.PerClientModels`."""
        if len(self.place) == 1:
            return self
        sets = self._by_set(kept, "be kept together")
        part = self._part(lambda array: array[sets])
        mu, L = self.common_mu_L()
        part._of_all = mu[sets], L[sets]
        return part

    def with_equal_weights(self) -> DenseLinearModel:
        """Problem with the same F and p_i = 1/N: N p_i multiplies each client's mean loss, not its ridge.

        Constants such as mu and L are those of the new losses. All clients have the same ridge, so that the
        weights do not reduce the convexity of any.
        """
        part = self._part(lambda array: array)
        part.__dict__ |= {name: value for name, value in vars(self).items() if name == "X"}
        del part._sparse
        share = part.n_clients * self.weights
        part.sample_weights = self.sample_weights * share[..., None]
        part.batch_weights = self.batch_weights * share
        part.weights, part._of_all = np.full_like(self.weights, 1 / part.n_clients), None
        return part

    def _by_set(self, of_runs: NDArray, what: str) -> NDArray:
        """One entry a data set, of an array with one entry a run."""
        n_sets = len(self.place)
        check_runs(len(of_runs), n_sets)
        groups = of_runs.reshape(n_sets, -1, *of_runs.shape[1:])
        if (groups != groups[:, :1]).any():
            raise ReplifedError(f"runs that share a data set must {what}")
        return groups[:, 0]

    def _part(self, pick: Callable[[NDArray], NDArray]) -> DenseLinearModel:
        """Problem with the part that `pick` takes of arrays (S, N, ...), and the same features."""
        part = copy.copy(self)
        for name in list(vars(part)):
            if isinstance(getattr(type(self), name, None), cached_property):
                del part.__dict__[name]
        for name in _STACKED:
            part.__dict__[name] = pick(getattr(self, name))
        part.n_clients = part.place.shape[1]
        part._sparse = None  # a part of a round is not worth a count of its non-zeros
        return part

    # -- local models ----------------------------------------------------------------------------

    @cached_property
    def _total_weight(self) -> NDArray:
        """Sum of the weights p_i, (S, 1)."""
        return self.weights.sum(axis=1, keepdims=True)

    @cached_property
    def gram(self) -> NDArray:
        """X_i X_i' of each client, (S, N, m, m)."""
        return self.X @ self.X.swapaxes(-1, -2)

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
        part = self if clients is None else self._cohort(clients)
        if additive and in_span(self.n_samples, self.n_features, draws, cohort=clients is not None):
            return GramLocalModels(
                lambda: self.gram.reshape(-1, self.n_samples, self.n_samples),
                part.place,
                part.predictions(x),
                part.y,
                part.sample_weights,
                part.batch_weights,
                part.l2,
                part.loss_function,
                part.combine,
                x,
                part.weights,
            )
        return part.local_models(x)

    def local_models(self, x: NDArray) -> DenseLocalModels:
        """The clients' models, at first the server's `x`, coordinate by coordinate."""
        return DenseLocalModels(self, x)

    def _cohort(self, clients: NDArray) -> DenseLinearModel:
        """Problem of the clients that take part; their weights are scaled to the sum of all clients' p_i."""
        run = np.arange(len(self.place))[:, None] if len(self.place) > 1 else 0
        part = self._part(lambda array: array[run, clients])
        part.weights = part.weights * (self._total_weight / part.weights.sum(axis=1, keepdims=True))
        return part

    # -- minimisers over supports ----------------------------------------------------------------

    @cached_property
    def _columns(self) -> NDArray:
        """Features of each client by column, (S, N, d, m)."""
        return np.ascontiguousarray(self.X.swapaxes(-1, -2))

    @property
    def _ridge(self) -> NDArray:
        """Weight of |x|^2 / 2 for a loss that is the plain sum over a client's samples, shape (S, N)."""
        # batch_weights are n_i times the weight of a sample.
        return (self.l2 * self.sizes / self.batch_weights).astype(self.dtype)

    def restricted_minima(self, start: NDArray, support: NDArray) -> NDArray:
        """See `problems.base.RestrictedMinimiser`."""
        if self.loss_function.name == "least_squares":
            return restricted.least_squares(self._columns, self.y, self._ridge, start, support)
        return restricted.newton(self, start, support)

    def restricted_descent(self, start: NDArray, support: NDArray, steps: int) -> NDArray:
        """See `problems.base.RestrictedMinimiser`; least squares use an exact line search in each step."""
        if self.loss_function.name == "least_squares":
            return restricted.descent(self._columns, self.y, self._ridge, start, support, steps)
        length = (1.0 / self.smoothness()[..., None]).astype(start.dtype)
        w = start
        for _ in range(steps):
            w = w - length * self.per_client_gradients(w) * support
        return w

    def restricted_work(self, size: NDArray) -> NDArray:
        """See `problems.base.RestrictedMinimiser`: 2 m s^2 operations for s columns, 4 D for a gradient."""
        return self.n_samples * np.asarray(size, float) ** 2 / (2 * self.dim)


class DenseLocalModels:
    """Clients' models held coordinate by coordinate, shape (R, N, D)."""

    def __init__(self, problem: Any, x: NDArray) -> None:
        self._problem, self._x = problem, x
        self.gradient = problem.per_client_gradients

    @property
    def restricted_minima(self) -> Callable[..., NDArray]:
        return self._problem.restricted_minima

    @property
    def restricted_descent(self) -> Callable[..., NDArray]:
        return self._problem.restricted_descent

    @cached_property
    def start(self) -> NDArray:
        return np.repeat(self._x[:, None], self._problem.n_clients, axis=1)

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        return hard_threshold(u, tau)

    def descend(
        self,
        batches: list[NDArray] | list[None],
        eta: float | NDArray,
        pull: float | NDArray,
        tau: int | NDArray | None,
        **more: Any,
    ) -> NDArray | None:
        """Compiled `algorithms.local_steps.gradient_steps` on minibatches; None for all samples."""
        if batches[0] is None:
            return None
        linear = None
        if np.any(pull):
            linear = -np.reshape(pull, (-1, 1, 1)).astype(self.start.dtype) * self.start
        step = np.reshape(eta, (-1, 1, 1))
        more |= {"ridge": pull, "linear": linear, "tau": tau}
        return self._problem.minibatch_steps(self.start, batches, step, **more)

    def pursue(
        self,
        batches: list[NDArray] | list[None],
        inner: list[NDArray] | list[None],
        eta: float | NDArray,
        tau: int | NDArray,
        **more: Any,
    ) -> NDArray | None:
        """Compiled iterations of `algorithms.fedgradmp` on minibatches; None for all samples."""
        fast = getattr(self._problem, "minibatch_pursuit", None)
        if fast is None or batches[0] is None:
            return None
        step = np.reshape(eta, (-1, 1, 1))
        return fast(self.start, batches, inner, step, tau, **more)

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        p = np.broadcast_to(self._problem.weights if weights is None else weights, u.shape[:2])
        return np.matmul(p[:, None], u)[:, 0]


def _check_sizes(sizes: NDArray, shape: tuple[int, ...]) -> None:
    """Reject numbers of samples that exceed the rows of features of `shape` (S, N, m)."""
    *clients, capacity = shape
    if sizes.shape != tuple(clients) or sizes.dtype.kind not in "iu":
        raise ReplifedError(
            f"sizes of shape {sizes.shape} and dtype {sizes.dtype}: must be whole numbers, {tuple(clients)}"
        )
    if (sizes > capacity).any():
        raise ReplifedError(f"sizes hold {sizes.max()}: X has room for {capacity} samples a client")
