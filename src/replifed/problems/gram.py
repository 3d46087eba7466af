"""Local models in the span of the client's samples.

A local step of a linear model moves along the client's samples only: after any number of them the model
is c x + X' a, with one coefficient a client's sample and output. With the Gram matrix X X', computed
once, a step costs m x m instead of m x d. Arrays are indexed (..., m, C) as everywhere, but each output's
samples are contiguous in memory, where numpy is fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replifed.problems.losses import Loss
from replifed.problems.products import FEWEST_COLUMNS, narrow_products


@dataclass
class GramLocalModels:
    """Clients' models as (a, c) with u = c x + X' a, for the server's models x."""

    # X_i X_i' of each client, (S, N, m, m), zero beyond its n_i samples; the first local step does without.
    gram: Callable[[], NDArray]
    predictions: NDArray  # X_i x, (R, N, m, C)
    targets: NDArray  # (S, N, m)
    sample_weights: NDArray  # of each sample in f_i, (S, N, m): 1/n_i for a mean, 1 for a sum, 0 for padding
    batch_weights: NDArray  # of the mean over a minibatch, (S, N): 1 for a mean, n_i for a sum
    l2: float  # weight of |x|^2 / 2
    loss: Loss
    combine: Callable[[NDArray], NDArray]  # a, weighted by p_i, (R, N, m, C), to sum_i X_i' a_i, (R, D)
    x: NDArray  # (R, D)
    weights: NDArray  # p_i, (S, N)

    def __post_init__(self) -> None:
        runs, clients, m, outputs = self.predictions.shape
        self.predictions = _by_output(self.predictions)
        # The last entry along the sample axis is c, the multiple of the server's model.
        self.start = np.zeros((runs, clients, outputs, m + 1), dtype=self.predictions.dtype).swapaxes(-1, -2)
        self.start[:, :, m] = 1.0

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        m = u.shape[2] - 1
        g = np.empty_like(u)
        g[:, :, m] = 0.0
        if batch is not None and 2 * batch.shape[-1] < m:
            self._minibatch_gradient(u, batch, g)
        else:
            # Residuals of all samples, weighted by how often each was drawn, need no gathering or scattering.
            r = self.loss.derivative(self._at_samples(u), self.targets)
            weights = self.sample_weights if batch is None else self._drawn_weights(batch)
            np.multiply(r, weights[..., None], out=g[:, :, :m])
        if self.l2:
            g += self.l2 * u
        return g

    def _at_samples(self, u: NDArray) -> NDArray:
        """Predictions (R, N, m, C) of the models `u`, not to be written to."""
        a, known = u[:, :, :-1], self.predictions
        if _is_start(u):
            return known
        z = self._products(a)
        z += u[:, :, -1:] * known if self.l2 else known  # without a ridge c stays one
        return z

    def _drawn_weights(self, batch: NDArray) -> NDArray:
        """Weights of all samples, (R or 1, N, m), by how often each is in the minibatch."""
        (runs, clients, b), m = batch.shape, self.predictions.shape[2]
        index = batch + m * np.arange(runs * clients).reshape(runs, clients, 1)
        counts = np.bincount(index.ravel(), minlength=runs * clients * m).reshape(runs, clients, m)
        return counts.astype(self.predictions.dtype) * (self.batch_weights / b)[..., None]

    def _minibatch_gradient(self, u: NDArray, batch: NDArray, g: NDArray) -> None:
        """Fill all of `g` but c's derivatives, without the ridge."""
        from replifed.kernels.gram import add_drawn, minibatch_predictions

        predictions = self.predictions.swapaxes(-1, -2)
        if _is_start(u):
            z = _drawn(predictions, batch[:, :, None])
        else:
            z = np.empty((*predictions.shape[:-1], batch.shape[-1]), predictions.dtype)
            models = np.ascontiguousarray(u.swapaxes(-1, -2))
            minibatch_predictions(self.gram(), batch, models, predictions, z)
        r = self.loss.derivative(z.swapaxes(-1, -2), _drawn(self.targets, batch))
        r *= (self.batch_weights / batch.shape[-1])[..., None, None]
        g[:, :, :-1] = 0.0
        # A sample drawn twice counts twice.
        add_drawn(batch, np.ascontiguousarray(r.swapaxes(-1, -2)), g.swapaxes(-1, -2))

    def _products(self, a: NDArray) -> NDArray:
        """X_i X_i' a_i for each client and run; as the Gram matrix is symmetric, row vectors times it."""
        gram, (runs, clients, m, outputs) = self.gram(), a.shape
        if len(gram) > 1 or runs * outputs < FEWEST_COLUMNS:
            return narrow_products(a.swapaxes(-1, -2), gram).swapaxes(-1, -2)
        flat = a.transpose(1, 0, 3, 2).reshape(clients, runs * outputs, m)
        return narrow_products(flat, gram[0]).reshape(clients, runs, outputs, m).transpose(1, 0, 3, 2)

    def mean(self, u: NDArray) -> NDArray:
        p = self.weights[..., None]
        c = (p * u[:, :, -1]).sum(axis=1)
        outputs = c.shape[-1]
        kept = (self.x.reshape(len(u), -1, outputs) * c[:, None, :]).reshape(self.x.shape)
        return kept + self.combine(p[..., None] * u[:, :, :-1])


def _is_start(u: NDArray) -> bool:
    """Whether the models are the server's, as in the first local step, so that predictions are known."""
    return bool((u[:, :, -1] == 1).all()) and not u[:, :, :-1].any()


def _by_output(array: NDArray) -> NDArray:
    """The same values (..., m, C), each output's contiguous in memory."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


def _drawn(values: NDArray, batch: NDArray) -> NDArray:
    """The values (S, N, ..., m) of the samples drawn, (B, N, ..., b)."""
    sets = max(len(values), len(batch))
    values, batch = (np.broadcast_to(array, (sets, *array.shape[1:])) for array in (values, batch))
    return np.take_along_axis(values, batch, axis=-1)
