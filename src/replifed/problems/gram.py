"""Local models in the span of the client's samples.

A local step of a linear model adds a combination of the client's samples: after any number of steps the
model is c x + X' a, with one coefficient per sample and output in a. With the Gram matrix X X', computed
once, a step costs m x m operations instead of m x d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replifed.problems.losses import KERNELS, Loss


@dataclass
class GramLocalModels:
    """Clients' models as (a, c) with u = c x + X' a, for the server's models x: arrays (R, N, m + 1, C)."""

    gram: Callable[[], NDArray]  # X X' of clients, (P, m, m), zero beyond its n_i samples; unused by one step
    place: NDArray  # number of each client's among them, (S, N)
    predictions: NDArray  # X_i x, (R, N, m, C)
    targets: NDArray  # (S, N, m)
    sample_weights: NDArray  # of each sample in f_i, (S, N, m): 1/n_i for a mean, 1 for a sum, 0 for padding
    batch_weights: NDArray  # of the mean over a minibatch, (S, N): 1 for a mean, n_i for a sum
    l2: float  # weight of |x|^2 / 2
    loss: Loss
    combine: Callable[[NDArray], NDArray]  # a, weighted by p_i, (R, N, m, C), to sum_i X_i' a_i, (R, D)
    x: NDArray  # (R, D)
    weights: NDArray  # p_i, (S, N)

    @property
    def start(self) -> NDArray:
        R, N, m, C = self.predictions.shape
        u = np.zeros((R, N, m + 1, C), self.predictions.dtype)
        u[:, :, m] = 1.0
        return u

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        a, c = u[:, :, :-1], u[:, :, -1:]
        z = c * self.predictions + np.matmul(self.gram()[self.place], a)
        weights = self.sample_weights if batch is None else self._drawn_weights(batch)
        g = self.l2 * u
        g[:, :, :-1] += self.loss.derivative(z, self.targets) * weights[..., None]
        return g

    def _drawn_weights(self, batch: NDArray) -> NDArray:
        """Weights of all samples, (R or 1, N, m), from the number of times that each is in the minibatch."""
        (runs, clients, b), m = batch.shape, self.predictions.shape[2]
        index = batch + m * np.arange(runs * clients).reshape(runs, clients, 1)
        counts = np.bincount(index.ravel(), minlength=runs * clients * m).reshape(runs, clients, m)
        return counts.astype(self.predictions.dtype) * (self.batch_weights / b)[..., None]

    def descend(
        self,
        batches: list[NDArray] | list[None],
        eta: float | NDArray,
        pull: float | NDArray,
        tau: int | NDArray | None,
    ) -> NDArray | None:
        """Compiled `algorithms.local_steps.gradient_steps`; None for losses and thresholds without it."""
        if self.loss.name not in KERNELS or tau is not None:
            return None
        from replifed.kernels.gram import gradient_steps

        (runs, _, m, _), dtype, K = self.predictions.shape, self.predictions.dtype, len(batches)
        gram = self.gram() if K > 1 else np.empty((0, m, m), dtype)
        b = 1 if batches[0] is None else batches[0].shape[-1]
        gradient_steps(
            gram,
            self.place,
            np.ascontiguousarray(self.predictions),
            self.targets,
            self.sample_weights,
            self.batch_weights / b,
            K,
            stacked(batches, self.place.shape[1]),
            KERNELS.index(self.loss.name),
            np.full(runs, eta, dtype),
            dtype.type(self.l2),
            np.full(runs, pull, dtype),
            models := np.empty((*self.predictions.shape[:2], m + 1, self.loss.n_outputs), dtype),
        )
        return models

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        p = (self.weights if weights is None else weights)[..., None]
        c = (p * u[:, :, -1]).sum(axis=1)
        outputs = c.shape[-1]
        kept = (self.x.reshape(len(u), -1, outputs) * c[:, None, :]).reshape(self.x.shape)
        return kept + self.combine(p[..., None] * u[:, :, :-1])


def stacked(batches: list[NDArray] | list[None], clients: int) -> NDArray:
    """The minibatches of all steps, (K, R or 1, N, b), for compiled code; (0, 1, N, 0) for all samples."""
    if batches[0] is None:
        return np.empty((0, 1, clients, 0), np.int64)
    return np.array(batches, dtype=np.int64)
