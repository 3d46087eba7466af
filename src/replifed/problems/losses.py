"""Losses of linear predictions z = <a, x>, sample by sample.

A loss does not depend on clients, memory layout or sparsity; `dense` and `sparse` combine it with data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError, unknown_name

# Losses of one output whose gradients have compiled inner loops.
COMPILED = ("least_squares", "logistic")
# Losses whose local steps are compiled as a whole.
KERNELS = (*COMPILED, "softmax")


class Loss(Protocol):
    """A convex, smooth loss of C linear predictions."""

    @property
    def name(self) -> str: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def curvature(self) -> float:
        """Upper bound on the largest eigenvalue of the second derivative in z."""

    def value(self, z: NDArray, y: NDArray) -> NDArray:
        """Loss of predictions `z` (..., m, C), floating, for targets `y` that broadcast to (..., m)."""

    def derivative(self, z: NDArray, y: NDArray) -> NDArray:
        """Gradient in z, shape (..., m, C)."""

    def second_derivative(self, z: NDArray, y: NDArray) -> NDArray:
        """Hessian in z, shape (..., m, C, C)."""


@dataclass(frozen=True)
class LeastSquares:
    """Half the squared residual, (z - y)^2 / 2."""

    name = "least_squares"
    n_outputs = 1
    curvature = 1.0

    def value(self, z: NDArray, y: NDArray) -> NDArray:
        return 0.5 * (z[..., 0] - y) ** 2

    def derivative(self, z: NDArray, y: NDArray) -> NDArray:
        return z - y[..., None]

    def second_derivative(self, z: NDArray, y: NDArray) -> NDArray:
        return np.ones((*z.shape, 1), dtype=z.dtype)


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-y z)) for labels y in {-1, +1}."""

    name = "logistic"
    n_outputs = 1
    curvature = 0.25

    def value(self, z: NDArray, y: NDArray) -> NDArray:
        from replifed.kernels.losses import logistic_values

        t = np.multiply(-y, z[..., 0], order="C")
        f = np.empty_like(t)
        logistic_values(t.reshape(-1), f.reshape(-1))
        return f

    def derivative(self, z: NDArray, y: NDArray) -> NDArray:
        # -y sigma(-y z) = -y / (1 + exp(y z)); an overflow stands for the limit, zero.
        if z.dtype != np.float64:
            y = y[..., None]
            r = np.asarray(y * z)
            with np.errstate(over="ignore"):
                np.exp(r, out=r)
            r += 1.0
            return np.divide(-y, r, out=r)
        # Compiled, since numpy computes exponentials in float64 number by number.
        from replifed.kernels.losses import logistic_derivatives

        shape = (1,) * (z.ndim - 1 - y.ndim) + y.shape
        leading = len(shape)
        while leading and shape[leading - 1] == 1:
            leading -= 1
        if shape[:leading] != z.shape[:leading]:
            y = np.broadcast_to(y[..., None], z.shape)
        r = np.empty(z.shape, z.dtype)
        logistic_derivatives(np.ascontiguousarray(z).reshape(y.size, -1), y.ravel(), r.reshape(y.size, -1))
        return r

    def second_derivative(self, z: NDArray, y: NDArray) -> NDArray:
        # The smaller of the two probabilities, which rounding cannot turn into 1.
        with np.errstate(over="ignore"):
            p = 1.0 / (1.0 + np.exp(np.abs(z)))
        return (p * (1.0 - p))[..., None]


@dataclass(frozen=True)
class Softmax:
    """log sum_c exp(z_c) - z_y for classes y in {0, ..., C-1}."""

    n_outputs: int
    name = "softmax"
    # The Hessian diag(p) - p p' has eigenvalues of at most 1/2 (Boehning 1992).
    curvature = 0.5

    def value(self, z: NDArray, y: NDArray) -> NDArray:
        from replifed.kernels.losses import softmax_values

        m, C = z.shape[-2:]
        f = np.empty(z.shape[:-1], z.dtype)
        y = np.broadcast_to(y, f.shape).reshape(-1, m)
        softmax_values(z.reshape(-1, m, C), y, f.reshape(-1, m))
        return f

    def derivative(self, z: NDArray, y: NDArray) -> NDArray:
        from replifed.kernels.losses import softmax_derivatives

        *leading, m, C = z.shape
        if z.swapaxes(-1, -2).flags.c_contiguous:  # class by class, as the result is then
            p = np.empty((*leading, C, m), z.dtype).swapaxes(-1, -2)
        else:
            z, p = np.ascontiguousarray(z), np.empty(z.shape, z.dtype)
        y = np.broadcast_to(y, z.shape[:-1]).reshape(-1, m)
        softmax_derivatives(z.reshape(-1, m, C), y, p.reshape(-1, m, C))
        return p

    def second_derivative(self, z: NDArray, y: NDArray) -> NDArray:
        p = np.exp(z - z.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return p[..., None] * np.eye(self.n_outputs, dtype=p.dtype) - p[..., None] * p[..., None, :]


def loss_named(name: str, n_outputs: int = 1) -> Loss:
    """Return the loss called `name`; `n_outputs` is the number of classes of a softmax."""
    if name == "softmax":
        return Softmax(n_outputs)
    losses: dict[str, Loss] = {"least_squares": LeastSquares(), "logistic": Logistic()}
    if name not in losses:
        raise ReplifedError(unknown_name("loss", name, [*losses, "softmax"]))
    return losses[name]
