"""What a layer of an input-convex network does to each number; see `problems.transport`.

Products of matrices are BLAS's. What stands between two of them, numpy would take in a pass through memory
for each operation; here it is one pass, rounded as numpy rounds it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from replifed.kernels import compiled_as_numpy


def quadratic(p: NDArray, linear: NDArray, b: NDArray) -> NDArray:
    """p^2 + linear + b for p and linear (..., B, h) and b (..., h)."""
    out = np.empty(linear.shape, linear.dtype)
    _quadratic(_points(p), _points(linear), _rows(b, linear), _points(out))
    return out


def celu(a: NDArray, s: NDArray) -> NDArray:
    """max(a, 0) + s - 1, where s is the slope celu'(a)."""
    return _each(_celu, a, s)


def twice(a: NDArray, b: NDArray, c: NDArray | None = None, d: NDArray | None = None) -> NDArray:
    """2 a b, or 2 a b + 2 c d."""
    return _each(_twice, a, b) if c is None or d is None else _each(_twice_both, a, b, c, d)


def bent(back: NDArray, a: NDArray, s: NDArray, a_d: NDArray) -> NDArray:
    """back celu''(a) a_d, where celu''(a) is the slope s for a < 0, and 0 elsewhere."""
    return _each(_bent, back if back.shape == a.shape else np.broadcast_to(back, a.shape).copy(), a, s, a_d)


def weighted(w: NDArray, s: NDArray, c: NDArray | None = None) -> NDArray:
    """c_b w s_b for w (..., h), s (..., B, h) and c (..., B), 1 by default."""
    out = np.empty(s.shape, s.dtype)
    _weighted(_rows(w, s), _points(s), _of_points(c, s), _points(out))
    return out


def summed(a: NDArray, c: NDArray | None = None) -> NDArray:
    """Sum of c_b a_b over the points of a (..., B, h), from the first one on, for c as in `weighted`."""
    *lead, _, h = a.shape
    total = np.zeros((prod(lead), h), a.dtype)
    _summed(_points(a), _of_points(c, a), total)
    return total.reshape(*lead, h)


def _each(formula: Callable[..., None], *arrays: NDArray) -> NDArray:
    """Number by number of arrays of one shape."""
    out = np.empty(arrays[0].shape, arrays[0].dtype)
    if any(array.shape != out.shape for array in arrays):  # a compiled loop would read beyond the shorter one
        raise ValueError(f"arrays of shapes {', '.join(str(array.shape) for array in arrays)}: must be one")
    formula(*(array.ravel() for array in arrays), out.ravel())
    return out


def _points(a: NDArray) -> NDArray:
    """(..., B, h) in three axes."""
    *lead, B, h = a.shape
    return a.reshape(prod(lead), B, h)


def _rows(w: NDArray, a: NDArray) -> NDArray:
    """w (..., h) in two axes, for each network of a (..., B, h).

    A copy: for a view of another layout, or one that is read-only, all would be compiled once more.
    """
    *lead, _, h = a.shape
    return np.array(np.broadcast_to(w, (*lead, h)).reshape(prod(lead), h), order="C")


def _of_points(c: NDArray | None, a: NDArray) -> NDArray:
    """One number for each point of a (..., B, h), in two axes; a copy as in `_rows`."""
    *lead, B, _ = a.shape
    points = np.broadcast_to(a.dtype.type(1) if c is None else c, (*lead, B))
    return np.array(points.reshape(prod(lead), B), order="C")


@compiled_as_numpy
def _quadratic(p, linear, b, out):
    n, B, h = p.shape
    for i in range(n):
        for j in range(B):
            for k in range(h):
                out[i, j, k] = (p[i, j, k] * p[i, j, k] + linear[i, j, k]) + b[i, k]


@compiled_as_numpy
def _celu(a, s, u):
    for k in range(len(a)):
        # NaN stays.
        u[k] = ((a.dtype.type(0) if a[k] < 0 else a[k]) + s[k]) - a.dtype.type(1)


@compiled_as_numpy
def _twice(a, b, out):
    for k in range(len(a)):
        out[k] = (a[k] + a[k]) * b[k]


@compiled_as_numpy
def _twice_both(a, b, c, d, out):
    for k in range(len(a)):
        out[k] = (a[k] + a[k]) * b[k] + (c[k] + c[k]) * d[k]


@compiled_as_numpy
def _bent(back, a, s, a_d, out):
    for k in range(len(a)):
        out[k] = (back[k] * (s[k] if a[k] < 0 else a.dtype.type(0))) * a_d[k]


@compiled_as_numpy
def _weighted(w, s, c, out):
    n, B, h = s.shape
    for i in range(n):
        for j in range(B):
            for k in range(h):
                out[i, j, k] = (c[i, j] * w[i, k]) * s[i, j, k]


@compiled_as_numpy
def _summed(a, c, total):
    n, B, h = a.shape
    for i in range(n):
        for j in range(B):
            for k in range(h):
                total[i, k] += c[i, j] * a[i, j, k]
