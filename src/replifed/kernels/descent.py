"""Gradient descent of every client on its own objective, with its data in the cache from step to step.

The objectives are f_i(w) + <a_i, w> + b |w|^2 / 2 with linear models of one output. In both functions X is
(S, N, m, d), `y` and the samples' `weights` are (S, N, m), `loss` is LEAST_SQUARES or LOGISTIC, and `step`,
`ridge` b and `linear` a are (R, N), (R,) and (R, N, d). The steps start from `models` (R, N, d) and move
them. S divides R; the first R / S runs share the first data set, and so on.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import combine, derivatives, predict, weighted_derivatives
from replifed.kernels.tiles import padded, products, transposed_products


@compiled
def descend(X, y, weights, loss, steps, step, ridge, linear, models):
    """Run by run."""
    S, N, m, d = X.shape
    everyone, z, gradient = np.arange(m), np.empty(m, X.dtype), np.empty(d, X.dtype)
    for run in range(len(models)):
        s = run * S // len(models)
        for i in range(N):
            w, a, gamma, b = models[run, i], linear[run, i], step[run, i], ridge[run]
            for _ in range(steps):
                predict(X[s, i], everyone, w, z)
                derivatives(z, y[s, i], loss)
                for j in range(m):
                    z[j] *= weights[s, i, j]
                combine(X[s, i], everyone, z, gradient)
                for k in range(d):
                    w[k] -= gamma * (gradient[k] + b * w[k] + a[k])


@compiled
def descend_together(X, y, weights, loss, steps, step, ridge, linear, models):
    """All runs that share a data set at once, as the columns of a product."""
    S, N, m, d = X.shape
    R = len(models) // S
    # Columns beyond the runs stay at zero and are not read back.
    columns = padded(R, X.itemsize)
    r, g = np.empty((m, columns), X.dtype), np.empty((d, columns), X.dtype)
    w, a = np.zeros((d, columns), X.dtype), np.zeros((d, columns), X.dtype)
    gamma, b = np.zeros(columns, X.dtype), np.zeros(columns, X.dtype)
    everyone, every_feature = np.arange(m), np.arange(d)
    for s in range(S):
        first = s * R
        for i in range(N):
            for run in range(R):
                gamma[run], b[run] = step[first + run, i], ridge[first + run]
                model, slope = models[first + run, i], linear[first + run, i]
                for k in range(d):
                    w[k, run], a[k, run] = model[k], slope[k]
            for _ in range(steps):
                products(X[s, i], everyone, every_feature, w, r)
                for j in range(m):
                    weighted_derivatives(r[j], y[s, i, j], weights[s, i, j], loss)
                transposed_products(X[s, i], everyone, every_feature, r, g)
                for k in range(d):
                    for run in range(columns):
                        w[k, run] -= gamma[run] * (g[k, run] + b[run] * w[k, run] + a[k, run])
            for run in range(R):
                model = models[first + run, i]
                for k in range(d):
                    model[k] = w[k, run]
