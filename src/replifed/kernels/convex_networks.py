"""What a layer of an input-convex network does to each number; see `problems.transport`.

Products of matrices are BLAS's. What stands between two of them, numpy would take in a pass through memory
for each operation; here it is one pass, rounded as numpy rounds it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replifed.kernels import compiled_as_numpy


def quadratic(p: NDArray, linear: NDArray, b: NDArray) -> NDArray:
    """p^2 + linear + b for p and linear (..., B, h) and b (..., h); in the memory of `linear`."""
    *lead, B, h = linear.shape
    each = np.broadcast_to(b, (*lead, h)).reshape(-1, h)
    _quadratic(p.reshape(-1, B, h), linear.reshape(-1, B, h), each)
    return linear


def celu(a: NDArray, s: NDArray) -> NDArray:
    """max(a, 0) + s - 1, where s is the slope celu'(a)."""
    u = np.empty_like(a)
    _celu(a.ravel(), s.ravel(), u.ravel())
    return u


def twice(a: NDArray, b: NDArray, c: NDArray | None = None, d: NDArray | None = None) -> NDArray:
    """2 a b, or 2 a b + 2 c d."""
    out = np.empty_like(b)
    if c is None or d is None:
        _twice(a.ravel(), b.ravel(), out.ravel())
    else:
        _twice_both(a.ravel(), b.ravel(), c.ravel(), d.ravel(), out.ravel())
    return out


def bent(back: NDArray, a: NDArray, s: NDArray, a_d: NDArray) -> NDArray:
    """back celu''(a) a_d, where celu''(a) is the slope s for a < 0, and 0 elsewhere."""
    out = np.empty_like(a)
    _bent(back.ravel(), a.ravel(), s.ravel(), a_d.ravel(), out.ravel())
    return out


def weighted(w: NDArray, s: NDArray, c: NDArray | None = None) -> NDArray:
    """c_b w s_b for w (..., h), s (..., B, h) and c (..., B), 1 by default."""
    *lead, B, h = s.shape
    each, out = np.broadcast_to(w, (*lead, h)).reshape(-1, h), np.empty_like(s)
    _weighted(each, s.reshape(-1, B, h), _of_points(c, s), out.reshape(-1, B, h))
    return out


def summed(a: NDArray, c: NDArray | None = None) -> NDArray:
    """Sum of c_b a_b over the points of a (..., B, h), from the first one on, for c as in `weighted`."""
    *lead, B, h = a.shape
    total = np.zeros((*lead, h), a.dtype)
    _summed(a.reshape(-1, B, h), _of_points(c, a), total.reshape(-1, h))
    return total


def _of_points(c: NDArray | None, a: NDArray) -> NDArray:
    """One number for each point of a (..., B, h), in two axes."""
    *lead, B, _ = a.shape
    return np.broadcast_to(a.dtype.type(1) if c is None else c, (*lead, B)).reshape(-1, B)


@compiled_as_numpy
def _quadratic(p, linear, b):
    n, B, h = p.shape
    for i in range(n):
        for j in range(B):
            for k in range(h):
                linear[i, j, k] = (p[i, j, k] * p[i, j, k] + linear[i, j, k]) + b[i, k]


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
