"""Losses and their derivatives by compiled loops, for predictions in any layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def logistic_value(z: NDArray, y: NDArray) -> NDArray:
    """See `problems.losses.Logistic`."""
    from replifed.kernels.losses import logistic_values

    t = np.multiply(-y, z[..., 0], order="C")
    f = np.empty_like(t)
    logistic_values(t.reshape(-1), f.reshape(-1))
    return f


def logistic_derivative(z: NDArray, y: NDArray) -> NDArray:
    """See `problems.losses.Logistic`: numpy computes exponentials in float64 number by number."""
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


def logistic_curvature(z: NDArray) -> NDArray:
    """See `problems.losses.Logistic`."""
    from replifed.kernels.losses import logistic_curvatures

    z = np.ascontiguousarray(z)
    h = np.empty_like(z)
    logistic_curvatures(z.reshape(-1), h.reshape(-1))
    return h


def softmax_derivative(z: NDArray, y: NDArray) -> NDArray:
    """See `problems.losses.Softmax`; the result lies in memory as `z` does, class by class or not."""
    from replifed.kernels.losses import softmax_derivatives

    *leading, m, C = z.shape
    if z.swapaxes(-1, -2).flags.c_contiguous:
        p = np.empty((*leading, C, m), z.dtype).swapaxes(-1, -2)
    else:
        z, p = np.ascontiguousarray(z), np.empty(z.shape, z.dtype)
    y = np.broadcast_to(y, z.shape[:-1]).reshape(-1, m)
    softmax_derivatives(z.reshape(-1, m, C), y, p.reshape(-1, m, C))
    return p


def softmax_value(z: NDArray, y: NDArray) -> NDArray:
    """See `problems.losses.Softmax`."""
    from replifed.kernels.losses import softmax_values

    m, C = z.shape[-2:]
    f = np.empty(z.shape[:-1], z.dtype)
    y = np.broadcast_to(y, f.shape).reshape(-1, m)
    softmax_values(z.reshape(-1, m, C), y, f.reshape(-1, m))
    return f
