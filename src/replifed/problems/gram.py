"""Local models in the span of the client's samples.

A local step of a linear model moves along the client's rows only: after any number of them the model
is c x + X' a, with one coefficient a client's sample and output. With the Gram matrix X X', computed
once, a step costs m x m instead of m x d.

Arrays are indexed (..., m, C) as everywhere, but lie in memory output by output, each output's samples in
one piece: a softmax goes over outputs, and numpy is quick along what is contiguous.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from replifed.problems.losses import Loss
from replifed.problems.products import FEWEST_COLUMNS, client_products, narrow_products


class GramLocalModels:
    """Clients' models as (a, c) with u = c x + X' a.

    Parameters
    ----------
    gram : array, shape (S, N, m, m)
        X_i X_i' of each client, zero beyond its n_i samples.
    predictions : array, shape (R, N, m, C)
        X_i x at the server's models.
    targets : array, shape (S, N, m)
    sample_weights : array, shape (S, N, m)
        Weight of each sample in f_i: 1/n_i for a mean, 1 for a sum, 0 for padding.
    batch_weights : array, shape (S, N)
        Weight of the mean over a minibatch in f_i's estimate: 1 for a mean, n_i for a sum.
    l2 : float
        Weight of |x|^2 / 2.
    loss : Loss
    combine : callable
        Maps (a weighted by p_i, shape (R, N, m, C)) to sum_i X_i' a_i, shape (R, D).
    x, weights : arrays, shapes (R, D) and (S, N)
        The server's models, and p_i.
    """

    def __init__(
        self,
        gram: NDArray,
        predictions: NDArray,
        targets: NDArray,
        sample_weights: NDArray,
        batch_weights: NDArray,
        l2: float,
        loss: Loss,
        combine: Callable[[NDArray], NDArray],
        x: NDArray,
        weights: NDArray,
    ) -> None:
        self._gram, self._predictions = gram, _by_output(predictions)
        self._targets = targets
        self._sample_weights, self._batch_weights = sample_weights, batch_weights
        self._l2, self._loss, self._combine = l2, loss, combine
        self._x, self._weights = x, weights
        rows, clients, m, outputs = predictions.shape
        # The last entry along the sample axis is c, the multiple of the server's model.
        self.start = np.zeros((rows, clients, outputs, m + 1), dtype=predictions.dtype).swapaxes(-1, -2)
        self.start[:, :, m] = 1.0

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        a, c = u[:, :, :-1], u[:, :, -1:]
        m = a.shape[2]
        if batch is not None and not self._l2 and 2 * batch.shape[-1] >= m:
            return self._plain_gradient(u, a, batch)
        g = self._l2 * u
        if batch is None:
            z = c * self._predictions + self._products(a)
            g[:, :, :m] += self._loss.derivative(z, self._targets) * self._sample_weights[..., None]
            return g
        b = batch.shape[-1]
        scale = (self._batch_weights / b)[..., None, None]
        if 2 * b >= m:
            # All samples' residuals, each times how often it was drawn: no gathering, no scattering.
            z = c * self._predictions + self._products(a)
            r = self._loss.derivative(z, self._targets)
            r *= _counts(batch, m, a.dtype)[..., None] * scale
            g[:, :, :m] += r
            return g
        rows, clients = np.ogrid[: len(u), : u.shape[1]]
        pick = (rows[..., None], clients[..., None], batch)
        shared = (np.minimum(rows, len(self._gram) - 1)[..., None], clients[..., None], batch)
        sets = rows[: max(len(batch), len(self._gram))]
        drawn = (np.minimum(sets, len(self._gram) - 1)[..., None], clients[..., None], batch)
        z = c * self._predictions[pick] + client_products(self._gram[drawn], a)
        r = self._loss.derivative(z, self._targets[shared])
        r *= scale
        # A sample drawn twice counts twice.
        np.add.at(g, pick, r)
        return g

    def _plain_gradient(self, u: NDArray, a: NDArray, batch: NDArray) -> NDArray:
        """Gradient without a ridge, which leaves c at one, on a minibatch of at least half the samples."""
        m = a.shape[2]
        g = np.empty_like(u)
        g[:, :, m] = 0.0
        z = self._products(a)
        z += self._predictions
        r = self._loss.derivative(z, self._targets)
        counts = _counts(batch, m, a.dtype)
        counts *= (self._batch_weights / batch.shape[-1])[..., None]
        np.multiply(r, counts[..., None], out=g[:, :, :m])
        return g

    def _products(self, a: NDArray) -> NDArray:
        """X_i X_i' a_i for each client and row; as the Gram matrix is symmetric, row vectors times it."""
        rows, clients, m, outputs = a.shape
        if len(self._gram) > 1 or rows * outputs < FEWEST_COLUMNS:
            return narrow_products(a.swapaxes(-1, -2), self._gram).swapaxes(-1, -2)
        flat = a.transpose(1, 0, 3, 2).reshape(clients, rows * outputs, m)
        return narrow_products(flat, self._gram[0]).reshape(clients, rows, outputs, m).transpose(1, 0, 3, 2)

    def mean(self, u: NDArray) -> NDArray:
        p = self._weights[..., None]
        c = (p * u[:, :, -1]).sum(axis=1)
        outputs = c.shape[-1]
        kept = (self._x.reshape(len(u), -1, outputs) * c[:, None, :]).reshape(self._x.shape)
        return kept + self._combine(p[..., None] * u[:, :, :-1])


def _by_output(array: NDArray) -> NDArray:
    """The same values (..., m, C), each output's in one piece."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


def _counts(batch: NDArray, m: int, dtype: np.dtype) -> NDArray:
    """How often each of m samples is in a minibatch: (R or 1, N, b) to (R or 1, N, m)."""
    rows, clients, _ = batch.shape
    places = batch + m * np.arange(rows * clients).reshape(rows, clients, 1)
    return np.bincount(places.ravel(), minlength=rows * clients * m).reshape(rows, clients, m).astype(dtype)
