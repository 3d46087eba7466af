"""Gradient descent of every client on its own objective, with its data in the cache from step to step.

The objectives are f_i(w) + <a_i, w> + b |w|^2 / 2 with linear models of one output.

In both functions:

X : array, shape (S, N, m, d)
y, weights : arrays, shape (S, N, m)
    Targets, and each sample's weight.
loss : int
    LEAST_SQUARES or LOGISTIC.
steps : int
step : array, shape (R, N)
ridge : array, shape (R,)
    b.
linear : array, shape (R, N, d)
    a.
models : array, shape (R, N, d)
    Where to start, and then where the steps have led. S divides R; the first R / S rows share the first
    data set, and so on.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import combine, derivatives, predict


@compiled
def descend(X, y, weights, loss, steps, step, ridge, linear, models):
    """Row by row."""
    S, N, m, d = X.shape
    R = len(models)
    r, g, everyone = np.empty(m, X.dtype), np.empty(d, X.dtype), np.arange(m)
    for row in range(R):
        s = row * S // R
        for i in range(N):
            w, a, gamma, b = models[row, i], linear[row, i], step[row, i], ridge[row]
            for _ in range(steps):
                predict(X[s, i], everyone, w, r)
                derivatives(r, y[s, i], loss)
                for j in range(m):
                    r[j] *= weights[s, i, j]
                combine(X[s, i], everyone, r, g)
                for k in range(d):
                    w[k] -= gamma * (g[k] + b * w[k] + a[k])


@compiled
def descend_together(X, y, weights, loss, steps, step, ridge, linear, models):
    """All rows that share a data set at once, as the lanes of a vector."""
    S, N, m, d = X.shape
    R = len(models) // S
    targets, r, g = np.empty(R, y.dtype), np.empty((m, R), X.dtype), np.empty((d, R), X.dtype)
    w, a, features = np.empty((d, R), X.dtype), np.empty((d, R), X.dtype), np.empty((d, m), X.dtype)
    for s in range(S):
        first = s * R
        for i in range(N):
            for k in range(d):
                for row in range(R):
                    w[k, row], a[k, row] = models[first + row, i, k], linear[first + row, i, k]
                for j in range(m):
                    features[k, j] = X[s, i, j, k]
            for _ in range(steps):
                _products(X[s, i], w, r)
                for j in range(m):
                    for row in range(R):
                        targets[row] = y[s, i, j]
                    derivatives(r[j], targets, loss)
                    for row in range(R):
                        r[j, row] *= weights[s, i, j]
                _products(features, r, g)
                for k in range(d):
                    for row in range(R):
                        gamma, b = step[first + row, i], ridge[first + row]
                        w[k, row] -= gamma * (g[k, row] + b * w[k, row] + a[k, row])
            for k in range(d):
                for row in range(R):
                    models[first + row, i, k] = w[k, row]


@compiled
def _products(A, B, C):
    """C = A B, two rows of A with four of B at a time, so that sums seldom leave the registers."""
    m, d = A.shape
    twos, fours = m // 2 * 2, d // 4 * 4
    for j in range(m):
        for c in range(C.shape[1]):
            C[j, c] = 0
    for j in range(0, twos, 2):
        for k in range(0, fours, 4):
            p, q, r, s = A[j, k], A[j, k + 1], A[j, k + 2], A[j, k + 3]
            t, u, v, w = A[j + 1, k], A[j + 1, k + 1], A[j + 1, k + 2], A[j + 1, k + 3]
            for c in range(C.shape[1]):
                e, f, g, h = B[k, c], B[k + 1, c], B[k + 2, c], B[k + 3, c]
                C[j, c] += p * e + q * f + r * g + s * h
                C[j + 1, c] += t * e + u * f + v * g + w * h
        for k in range(fours, d):
            for c in range(C.shape[1]):
                C[j, c] += A[j, k] * B[k, c]
                C[j + 1, c] += A[j + 1, k] * B[k, c]
    for j in range(twos, m):
        for k in range(d):
            for c in range(C.shape[1]):
                C[j, c] += A[j, k] * B[k, c]
