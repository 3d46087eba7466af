"""Linear models (least squares, logistic, softmax) on dense data, stacked over clients and rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from replifed.operators.hard_threshold import hard_threshold
from replifed.problems.gram import GramLocalModels
from replifed.problems.losses import Loss
from replifed.problems.products import (
    client_products,
    client_products_transposed,
    largest_eigenvalue,
    tall_product,
)

# The gathered minibatches of so many clients as fit stay in the cache between the two products.
_CACHE_BYTES = 1 << 20


class DenseLinearModel:
    """f_i(x) = mean (or sum) over the client's samples of loss(X_i x, y_i) + l2 |x|^2 / 2.

    Parameters
    ----------
    X : array, shape (S, N, m, d)
        Features; S is 1 if all rows share their data, else R. Clients with fewer than m samples are
        padded at the end with zeros. Its dtype is that of the whole computation.
    y : array, shape (S, N, m)
        Targets.
    loss : Loss
    sizes : int array, shape (S, N), optional
        n_i; all m by default.
    weights : array, shape (S, N), optional
        p_i; n_i / n by default.
    l2 : float
        Weight of |x|^2 / 2 in each f_i.
    summed : bool
        Whether f_i is the sum, not the mean, over its samples.
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
        self.X, self.y, self.loss_function, self.l2 = X, y, loss, l2
        self.dtype = X.dtype
        n_sets, self.n_clients, self.n_samples, self.n_features = X.shape
        self.dim = self.n_features * loss.n_outputs
        self.sizes = np.full((n_sets, self.n_clients), self.n_samples) if sizes is None else sizes
        total = self.sizes.sum(axis=1, keepdims=True)
        self.weights = (self.sizes / total if weights is None else weights).astype(X.dtype)
        real = np.arange(self.n_samples) < self.sizes[..., None]
        per_sample = np.ones(self.sizes.shape) if summed else 1.0 / self.sizes
        self.sample_weights = (real * per_sample[..., None]).astype(X.dtype)
        self.batch_weights = (self.sizes * per_sample).astype(X.dtype)

    # -- the objective at the server's models ----------------------------------------------------

    def predictions(self, x: NDArray) -> NDArray:
        """X_i x for the server's models `x` (R, D); shape (R, N, m, C)."""
        x = x.reshape(len(x), self.n_features, -1)
        if len(self.X) == 1:
            # One product over all samples and all rows.
            columns = x.transpose(1, 0, 2).reshape(self.n_features, -1)
            z = tall_product(self.X[0].reshape(-1, self.n_features), columns)
            z = z.reshape(self.n_clients, self.n_samples, len(x), -1)
            return z.transpose(2, 0, 1, 3)
        return np.matmul(self.X, x[:, None])

    def client_losses(self, x: NDArray) -> NDArray:
        values = self.loss_function.value(self.predictions(x), self.y)
        fit = np.einsum("rnm,rnm->rn", values, np.broadcast_to(self.sample_weights, values.shape))
        return fit + 0.5 * self.l2 * np.sum(x * x, axis=-1, keepdims=True)

    def loss(self, x: NDArray) -> NDArray:
        return (self.weights * self.client_losses(x)).sum(axis=-1)

    def client_gradients(self, x: NDArray) -> NDArray:
        """Gradient of each f_i at the server's models, shape (R, N, D)."""
        r = self.loss_function.derivative(self.predictions(x), self.y) * self.sample_weights[..., None]
        g = client_products_transposed(self.X, r)
        return g.reshape(len(x), self.n_clients, self.dim) + self.l2 * x[:, None]

    def gradient(self, x: NDArray) -> NDArray:
        r = self.loss_function.derivative(self.predictions(x), self.y)
        r *= (self.sample_weights * self.weights[..., None])[..., None]
        return self.combine(r) + self.l2 * x * self.weights.sum(axis=1, keepdims=True)

    def combine(self, coefficients: NDArray) -> NDArray:
        """sum_i X_i' a_i for coefficients (R, N, m, C); shape (R, D)."""
        rows, _, _, outputs = coefficients.shape
        flat = coefficients.reshape(rows, -1, outputs)
        if len(self.X) == 1:
            columns = flat.transpose(1, 0, 2).reshape(flat.shape[1], -1)
            g = tall_product(self.X[0].reshape(-1, self.n_features).T, columns)
            return g.reshape(self.n_features, rows, outputs).transpose(1, 0, 2).reshape(rows, self.dim)
        X = self.X.reshape(rows, -1, self.n_features)
        return np.matmul(X.swapaxes(1, 2), flat).reshape(rows, self.dim)

    def client_hessians(self, x: NDArray) -> NDArray:
        h = self.loss_function.second_derivative(self.predictions(x), self.y)
        h = h * self.sample_weights[..., None, None]
        rows, outputs = len(x), self.loss_function.n_outputs
        H = np.empty((rows, self.n_clients, self.n_features, outputs, self.n_features, outputs), self.X.dtype)
        for a in range(outputs):
            for b in range(outputs):
                H[:, :, :, a, :, b] = np.matmul(self.X.swapaxes(-1, -2), self.X * h[..., a, b, None])
        H = H.reshape(rows, self.n_clients, self.dim, self.dim)
        H += self.l2 * np.eye(self.dim)
        return H

    # -- constants -------------------------------------------------------------------------------

    def smoothness(self) -> NDArray:
        scaled = self.X * np.sqrt(self.sample_weights)[..., None]
        size = min(self.n_samples, self.n_features)
        largest = [largest_eigenvalue(A, size) for A in scaled.reshape(-1, self.n_samples, self.n_features)]
        return self.loss_function.curvature * np.reshape(largest, self.sizes.shape) + self.l2

    def strong_convexity(self) -> NDArray:
        # Logistic losses flatten out far from their minimiser: only the ridge is left everywhere. So it is
        # for least squares with fewer samples than coordinates.
        if self.loss_function.name != "least_squares" or self.n_features > self.n_samples:
            return np.full(self.sizes.shape, self.l2)
        scaled = self.X * np.sqrt(self.sample_weights)[..., None]
        return np.linalg.eigvalsh(scaled.swapaxes(-1, -2) @ scaled)[..., 0].clip(min=0.0) + self.l2

    # -- local models ----------------------------------------------------------------------------

    @cached_property
    def _gram(self) -> NDArray:
        return self.X @ self.X.swapaxes(-1, -2)

    def local(self, x: NDArray, *, additive: bool = False, sparsity: int | None = None):
        """See `problems.base.LocalSteps`."""
        # A minibatch needs m numbers a sample in the span of the samples, and 2 d (there and back) outside.
        if additive and 3 * self.n_samples <= 2 * self.n_features:
            return GramLocalModels(
                self._gram,
                self.predictions(x),
                self.y,
                self.sample_weights,
                self.batch_weights,
                self.l2,
                self.loss_function,
                self.combine,
                x,
                self.weights,
            )
        return DenseLocalModels(self, x)


class DenseLocalModels:
    """Clients' models held coordinate by coordinate, shape (R, N, D)."""

    def __init__(self, problem: DenseLinearModel, x: NDArray) -> None:
        self._problem = problem
        self.start = np.repeat(x[:, None], problem.n_clients, axis=1)

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        problem = self._problem
        rows, clients, _ = u.shape
        models = u.reshape(rows, clients, problem.n_features, -1)
        g = np.empty_like(models)
        if batch is None:
            z = client_products(problem.X, models)
            r = problem.loss_function.derivative(z, problem.y) * problem.sample_weights[..., None]
            g[...] = client_products_transposed(problem.X, r)
        else:
            self._minibatch_gradient(models, batch, g)
        g = g.reshape(u.shape)
        if problem.l2:
            g += problem.l2 * u
        return g

    def _minibatch_gradient(self, models: NDArray, batch: NDArray, g: NDArray) -> None:
        """Write the gradients on the minibatches `batch` (R or 1, N, b) into `g`, a few clients at a time."""
        problem = self._problem
        n_sets, clients, m, d = problem.X.shape
        sets, b = max(n_sets, len(batch)), batch.shape[-1]
        X = problem.X.reshape(-1, d)
        y = problem.y.reshape(-1)
        # Position of each drawn sample in the stacked data, whatever data set and client it is from.
        first = (np.arange(n_sets)[:, None] * clients + np.arange(clients)) * m
        positions = np.broadcast_to(batch + first[..., None], (sets, clients, b))
        scale = problem.batch_weights / b
        block = max(1, _CACHE_BYTES // (sets * b * d * X.itemsize))
        buffer = np.empty((sets, min(block, clients), b, d), dtype=X.dtype)
        for start in range(0, clients, block):
            now = slice(start, min(start + block, clients))
            chosen = positions[:, now]
            drawn = buffer[:, : chosen.shape[1]]
            if drawn.flags.c_contiguous:
                # Out-of-range positions cannot occur; "clip" lets take() write without a second buffer.
                np.take(X, chosen, axis=0, out=drawn, mode="clip")
            else:
                drawn = X[chosen]
            z = client_products(drawn, models[:, now])
            r = problem.loss_function.derivative(z, y[chosen])
            r *= scale[:, now, None, None]
            g[:, now] = client_products_transposed(drawn, r)

    def hard_threshold(self, u: NDArray, tau: int) -> NDArray:
        return hard_threshold(u, tau)

    def mean(self, u: NDArray) -> NDArray:
        p = np.broadcast_to(self._problem.weights, u.shape[:2])
        return np.matmul(p[:, None], u)[:, 0]
