"""Gradient descent of every client on its own objective, with its data in the cache from step to step.

The objectives are f_i(w) + <a_i, w> + b |w|^2 / 2 with linear models of one output. In both functions X is
(S, N, m, d), `y` and the samples' `weights` are (S, N, m), `loss` is LEAST_SQUARES or LOGISTIC, and `ridge`
b and `linear` a are (R,) and (R, N, d). `sizes` (2, R, N) are of the steps, and of Nesterov's momentum. The
steps start from `models` w (R, N, d) and move them, and `behind` v, a copy: v+ = w - gamma grad, and
w+ = v+ + beta (v+ - v). S divides R; the first R / S runs share the first data set, and so on.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import LEAST_SQUARES, combine, derivatives, predict
from replifed.kernels.losses import falling
from replifed.kernels.tiles import padded, products


@compiled
def descend(X, y, weights, loss, steps, sizes, ridge, linear, models, behind):
    """Run by run."""
    S, N, m, d = X.shape
    everyone, z, gradient = np.arange(m), np.empty(m, X.dtype), np.empty(d, X.dtype)
    for run in range(len(models)):
        s = run * S // len(models)
        for i in range(N):
            w, v, a = models[run, i], behind[run, i], linear[run, i]
            gamma, beta = sizes[0, run, i], sizes[1, run, i]
            for _ in range(steps):
                predict(X[s, i], everyone, w, z)
                derivatives(z, y[s, i], loss)
                for j in range(m):
                    z[j] *= weights[s, i, j]
                combine(X[s, i], everyone, z, gradient)
                _step(w, v, gradient, a, ridge[run], gamma, beta)


@compiled
def descend_grouped(X, y, weights, loss, steps, sizes, ridge, linear, models, behind):
    """All runs that share a data set at once, as the rows of products; samples or features fill the tiles."""
    S, N, m, d = X.shape
    R, width = len(models) // S, padded(1, X.itemsize)
    # A client's samples by row and by column, with zeros where they would not fill a tile.
    rows, columns = np.zeros((m, max(d, width)), X.dtype), np.zeros((d, max(m, width)), X.dtype)
    r, g = np.empty((R, columns.shape[1]), X.dtype), np.empty((R, rows.shape[1]), X.dtype)
    label, share = np.zeros(r.shape[1], X.dtype), np.zeros(r.shape[1], X.dtype)
    everyone, every_feature, every_run = np.arange(m), np.arange(d), np.arange(R)
    for s in range(S):
        first, last = s * R, (s + 1) * R
        for i in range(N):
            for j in range(m):
                label[j], share[j] = y[s, i, j], weights[s, i, j]
                for k in range(d):
                    rows[j, k] = columns[k, j] = X[s, i, j, k]
            for _ in range(steps):
                products(models[first:last, i], every_run, every_feature, columns, r)
                for run in range(R):
                    z = r[run]
                    if loss == LEAST_SQUARES:
                        for j in range(len(z)):
                            z[j] = (z[j] - label[j]) * share[j]
                    else:
                        for j in range(len(z)):
                            z[j] = falling(label[j] * z[j], -label[j] * share[j])
                products(r, every_run, everyone, rows, g)
                for run in range(R):
                    w, v, a = models[first + run, i], behind[first + run, i], linear[first + run, i]
                    gamma, beta = sizes[0, first + run, i], sizes[1, first + run, i]
                    _step(w, v, g[run, :d], a, ridge[first + run], gamma, beta)


@compiled_within
def _step(w, v, g, a, b, gamma, beta):
    if beta == 0:
        for k in range(len(w)):
            w[k] -= gamma * (g[k] + b * w[k] + a[k])
    else:
        for k in range(len(w)):
            before, v[k] = v[k], w[k] - gamma * (g[k] + b * w[k] + a[k])
            w[k] = v[k] + beta * (v[k] - before)
