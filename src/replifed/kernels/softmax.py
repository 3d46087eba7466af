"""Gradients of softmax regression on minibatches, every client at a model of its own."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import weigh_drawn
from replifed.kernels.losses import softmax_derivatives
from replifed.kernels.tiles import padded, products, transposed_products


@compiled
def minibatch_gradients(X, y, scale, batch, models, g):
    """Fill `g` with the gradients on the minibatches, `scale` times the sum over the samples drawn.

    A sample drawn twice counts twice and is read once. X is (S, N, m, d), the classes `y` are (S, N, m),
    `scale` (S, N), `batch` (B, N, b), and `models` and `g` (R, N, d, C). S and B divide R; the first R / S
    runs share the first data set, and so on.
    """
    S, N, m, d = X.shape
    R, C, B, b = len(models), models.shape[-1], len(batch), batch.shape[-1]
    # Columns beyond the classes stay at zero.
    columns = padded(C, X.itemsize)
    u, z = np.zeros((d, columns), X.dtype), np.empty((b, columns), X.dtype)
    product, classes = np.empty((d, columns), X.dtype), np.empty((1, b), y.dtype)
    times, distinct, share = np.zeros(m, np.intp), np.empty(b, np.intp), np.empty(b, np.float64)
    for i in range(N):
        for run in range(R):  # runs that share their minibatches find them in the cache
            s = run * S // R
            n = weigh_drawn(batch[run * B // R, i], scale[s, i], times, distinct, share)
            chosen = distinct[:n]
            for j in range(n):
                classes[0, j] = y[s, i, chosen[j]]
            u[:, :C] = models[run, i]
            products(X[s, i], chosen, u, z[:n])
            p = z[:n].reshape(1, n, columns)[:, :, :C]
            softmax_derivatives(p, classes[:, :n], p)
            for j in range(n):
                for c in range(C):
                    z[j, c] *= share[j]
            transposed_products(X[s, i], chosen, z[:n], product)
            g[run, i] = product[:, :C]
