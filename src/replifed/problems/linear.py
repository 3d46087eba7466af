"""Objective of linear models, dense or sparse, and checks of their data before compiled loops read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.problems.losses import Loss

# By how much weights in floats of 32 bits may miss one.
_OFF = 1e-5


class LinearObjective(ABC):
    """F(x) = sum_i p_i f_i(x), given the predictions of all samples; see `problems.base.Smooth` and `Ray`."""

    l2: float
    weights: NDArray

    @abstractmethod
    def predictions(self, x: NDArray) -> NDArray:
        """Predictions of all samples at the server's models `x` (R, D); shape (R, ...)."""

    @abstractmethod
    def _fit(self, z: NDArray) -> NDArray:
        """Each client's loss without the ridge, from the predictions `z` of its samples; shape (R, N)."""

    def client_losses(self, x: NDArray) -> NDArray:
        return self._fit(self.predictions(x)) + 0.5 * self.l2 * np.sum(x * x, axis=-1, keepdims=True)

    def loss(self, x: NDArray) -> NDArray:
        return (self.weights * self.client_losses(x)).sum(axis=-1)

    def along(self, x: NDArray, p: NDArray) -> Callable[[NDArray], NDArray]:
        z, dz = self.predictions(x), self.predictions(p)
        xx, xp, pp = (np.sum(a * b, axis=-1) for a, b in ((x, x), (x, p), (p, p)))

        def losses(eta: NDArray) -> NDArray:
            ridge = 0.5 * self.l2 * (xx + eta * (2 * xp + eta * pp))
            return self._fit(z + eta.reshape(-1, *(1,) * (z.ndim - 1)) * dz) + ridge[:, None]

        return losses


def floating(X):
    """Return features in floating point: integers become doubles, and other types are errors."""
    if X.dtype.kind in "biu":
        return X.astype(np.float64)
    if X.dtype.kind != "f":
        raise ReplifedError(f"features of dtype {X.dtype}: must be real numbers")
    return X


def check_finite(**arrays: NDArray) -> None:
    """Reject an array, named by its keyword, that holds NaN or infinite numbers."""
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise ReplifedError(f"{name} hold NaN or infinite numbers: leave such samples out")


def check_labels(y: NDArray, loss: Loss) -> None:
    """Reject labels `y`, of any shape, that `loss` does not accept."""
    if loss.name == "logistic":
        known, expected = np.abs(y) == 1, "-1 or +1"
    elif loss.name == "softmax":
        known = (y >= 0) & (y < loss.n_outputs) & (y == np.floor(y))
        expected = f"a whole number from 0 to {loss.n_outputs - 1}"
    else:
        return
    if not known.all():
        raise ReplifedError(f"{loss.name} labels hold {y[~known][0]}: must be {expected}")


def check_ids(client: NDArray, samples: int, clients: int) -> None:
    """Reject client ids unless there is one for each sample, a whole number from 0 to `clients` - 1."""
    if client.shape != (samples,) or client.dtype.kind not in "iu":
        raise ReplifedError(
            f"client ids of shape {client.shape} and dtype {client.dtype}: must be {samples} whole numbers, "
            "one a sample"
        )
    if ((client < 0) | (client >= clients)).any():
        raise ReplifedError(f"client ids from {client.min()} to {client.max()}: must be 0 to {clients - 1}")


def check_clients(sizes: NDArray, weights: NDArray | None, l2: float) -> None:
    """Reject clients without samples, weights p_i that are no shares, and a negative ridge.

    `sizes` and `weights` are (S, N), for S data sets of N clients; weights are positive and sum to 1.
    """
    if (sizes < 1).any():
        raise ReplifedError(f"client {np.argwhere(sizes < 1)[0, 1]} holds no sample: leave it out")
    if weights is not None:
        if weights.shape != sizes.shape:
            raise ReplifedError(f"weights of shape {weights.shape}: must be {sizes.shape}")
        wrong = ~((weights >= 0) & (weights < np.inf))
        if wrong.any():
            raise ReplifedError(f"weights hold {weights[wrong][0]}: must be finite, and above 0")
        if (weights == 0).any():
            raise ReplifedError(f"client {np.argwhere(weights == 0)[0, 1]} has weight 0: leave it out")
        totals = weights.sum(axis=1, dtype=float)
        if (np.abs(totals - 1) > _OFF).any():
            wrong_total = totals[np.abs(totals - 1).argmax()]
            raise ReplifedError(f"weights sum to {wrong_total:g}: must sum to 1; divide them by their sum")
    if not isinstance(l2, Real) or not 0 <= l2 < np.inf:
        raise ReplifedError(f"l2 = {l2!r}: must be a number, finite, and at least 0")


def check_runs(runs: int, sets: int) -> None:
    """Reject runs that cannot share the data sets evenly."""
    if runs % sets:
        raise ReplifedError(f"{runs} runs share {sets} data sets: each must have as many runs as the others")
