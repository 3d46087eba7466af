"""Losses and their derivatives in many predictions at once."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled_as_written
from replifed.kernels.exponential import exponential
from replifed.kernels.logistic import falling, softplus


@compiled_as_written
def logistic_values(t, f):
    """f = log(1 + exp(t)) for `t` and `f` (n,)."""
    for i in range(len(t)):
        f[i] = softplus(t[i])


@compiled_as_written
def logistic_derivatives(z, y, r):
    """r = -y / (1 + exp(y z)) for `z` and `r` (n, c) and labels `y` (n,)."""
    if z.shape[1] == 1:
        # As many as fit into a vector, which compilers do not find in loops of one.
        each, derivative = z.reshape(-1), r.reshape(-1)
        for i in range(len(y)):
            label = z.dtype.type(y[i])
            derivative[i] = falling(label * each[i], -label)
        return
    for i in range(len(y)):
        label = z.dtype.type(y[i])
        for j in range(z.shape[1]):
            r[i, j] = falling(label * z[i, j], -label)


@compiled_as_written
def logistic_curvatures(z, h):
    """h = exp(z) / (1 + exp(z))^2 for `z` and `h` (n,)."""
    one = z.dtype.type(1)
    for i in range(len(z)):
        # Of the two probabilities the smaller one, which rounding cannot make one.
        p = falling(abs(z[i]), one)
        h[i] = p * (one - p)


@compiled_as_written
def softmax_derivatives(z, y, p):
    """p = softmax(z) less one at the class, for `z` and `p` (n, m, C) and classes `y` (n, m)."""
    n, m, C = z.shape
    e, top, total = np.empty((C, m), z.dtype), np.empty(m, z.dtype), np.empty(m, z.dtype)
    zero, one = z.dtype.type(0), z.dtype.type(1)
    for i in range(n):
        # Class by class, so that the samples of a client are the lanes of a vector.
        for c in range(C):
            for j in range(m):
                e[c, j] = z[i, j, c]
        for j in range(m):
            top[j], total[j] = e[0, j], zero
        for c in range(1, C):
            for j in range(m):
                top[j] = max(top[j], e[c, j])
        for c in range(C):
            for j in range(m):
                e[c, j] = exponential(e[c, j] - top[j])
                total[j] += e[c, j]
        for j in range(m):
            total[j] = one / total[j]
        for c in range(C):
            for j in range(m):
                p[i, j, c] = e[c, j] * total[j]
        for j in range(m):
            p[i, j, y[i, j]] -= one


@compiled_as_written
def softmax_values(z, y, f):
    """f = log sum_c exp(z_c) - z_y for `z` (n, m, C), classes `y` (n, m), and `f` (n, m)."""
    n, m, C = z.shape
    top, total = np.empty(m, z.dtype), np.empty(m, z.dtype)
    for i in range(n):
        for j in range(m):
            top[j], total[j] = z[i, j, 0], z.dtype.type(0)
        for c in range(1, C):
            for j in range(m):
                top[j] = max(top[j], z[i, j, c])
        for c in range(C):
            for j in range(m):
                total[j] += exponential(z[i, j, c] - top[j])
        for j in range(m):
            f[i, j] = top[j] + np.log(total[j]) - z[i, j, y[i, j]]
