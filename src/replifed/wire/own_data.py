"""A client's own data, and its loss: all that a client's form may look at beside messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Loss
from replifed.randomness import Streams
from replifed.wire.session import Facts


@dataclass(frozen=True)
class OwnData:
    """f(w) = scale / n sum_j loss(x_j' w, y_j) + l2 |w|^2 / 2.

    Parameters
    ----------
    X, y : features (n, d) and targets (n,).
    loss : Loss
    l2, scale : float
    mu, L : constants of strong convexity and smoothness of f.
    """

    X: NDArray
    y: NDArray
    loss: Loss
    l2: float
    scale: float
    mu: float
    L: float

    def value(self, w: NDArray) -> float:
        """Return f(w)."""
        fit = self.loss.value(self._predictions(w), self.y).mean()
        return float(self.scale * fit + self.l2 / 2 * (w @ w))

    def gradient(self, w: NDArray, batch: NDArray | None = None, clip: float | None = None) -> NDArray:
        """Return the gradient at `w`, of a minibatch or all samples; each sample's cut to length `clip`."""
        X, y = (self.X, self.y) if batch is None else (self.X[batch], self.y[batch])
        r = self.loss.derivative(X @ w.reshape(X.shape[1], -1), y)
        if clip is not None:
            lengths = np.linalg.norm(r, axis=1) * np.linalg.norm(X, axis=1)
            r = r * np.minimum(1, clip / np.maximum(lengths, np.finfo(float).tiny))[:, None]
        return (X.T @ r).ravel() * (self.scale / len(y)) + self.l2 * w

    def hessian(self, w: NDArray) -> NDArray:
        """Return the Hessian at `w`, (D, D)."""
        h = self.loss.second_derivative(self._predictions(w), self.y) * (self.scale / len(self.y))
        H = np.einsum("ma,mce,mb->acbe", self.X, h, self.X).reshape(len(w), len(w))
        return H + self.l2 * np.eye(len(w))

    def _predictions(self, w: NDArray) -> NDArray:
        return self.X @ w.reshape(self.X.shape[1], -1)


def split(method: Any, problem: Any, streams: Streams) -> tuple[Facts, list[OwnData]]:
    """Return what is public of a problem, with the method's first model, and each client's own data."""
    own = [of_client(problem, i) for i in range(problem.n_clients)]
    (mu,), (L,) = problem.common_mu_L()
    x_0 = method.observe(method.init(problem, streams))["server"][0]
    return Facts(x_0, problem.sizes[0], problem.weights[0].astype(float), float(mu), float(L)), own


def of_client(problem: Any, i: int) -> OwnData:
    """Return what client i of a problem has.

    Raises
    ------
    ReplifedError
        If the problem is no linear model on one dense data set.
    """
    if not isinstance(problem, DenseLinearModel) or len(problem.X) != 1:
        raise ReplifedError(
            f"{type(problem).__name__} on the wire: give a linear model on one dense data set"
        )
    n = problem.sizes[0, i]
    X, y, scale = problem.X[0, i, :n].astype(float), problem.y[0, i, :n], problem.batch_weights[0, i]
    constants = float(problem.strong_convexity()[0, i]), float(problem.smoothness()[0, i])
    return OwnData(X, y, problem.loss_function, problem.l2, float(scale), *constants)
