"""Gradients of softmax regression on minibatches, every client at a model of its own."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import weigh_drawn
from replifed.kernels.losses import softmax_derivatives
from replifed.kernels.tiles import padded, products, transposed_products


@compiled
def minibatch_gradients(X, place, y, scale, batch, models, g):
    """Fill `g` with the gradients on the minibatches, `scale` times the sum over the samples drawn.

    A sample drawn twice counts twice and is read once. X is (P, m, d), of which client i of set s has those
    with the number place[s, i]; the classes `y` are (S, N, m), `scale` (S, N), `batch` (B, N, b), and both
    `models` and `g` (R, N, d, C). S and B divide R; the first R / S runs share the first data set, and so on.
    """
    (S, N), R, B = place.shape, len(models), len(batch)
    scratch = minibatch_scratch(X, y, models.shape[-1], batch.shape[-1])
    for i in range(N):
        for run in range(R):  # runs that share their minibatches find them in the cache
            s, drawn = run * S // R, batch[run * B // R, i]
            on_minibatch(X[place[s, i]], y[s, i], scale[s, i], drawn, models[run, i], g[run, i], scratch)


@compiled
def minibatch_scratch(X, y, C, b):
    """Memory for `on_minibatch`."""
    _, m, d = X.shape
    # Columns beyond the classes stay at zero.
    columns = padded(C, X.itemsize)
    u, z = np.zeros((d, columns), X.dtype), np.empty((b, columns), X.dtype)
    counted = np.zeros(m, np.intp), np.empty(b, np.intp), np.empty(b, np.float64)
    return u, z, np.empty((d, columns), X.dtype), np.empty((1, b), y.dtype), counted


@compiled
def on_minibatch(X, y, scale, drawn, model, g, scratch):
    """Fill `g` (d, C) with the gradient of one client at `model` on the samples `drawn`."""
    u, z, product, classes, (times, distinct, share) = scratch
    C = model.shape[1]
    n = weigh_drawn(drawn, scale, times, distinct, share)
    chosen = distinct[:n]
    for j in range(n):
        classes[0, j] = y[chosen[j]]
    _copy(model, u, C)
    products(X, chosen, u, z[:n])
    p = z[:n].reshape(1, n, z.shape[1])[:, :, :C]
    softmax_derivatives(p, classes[:, :n], p)
    for j in range(n):
        for c in range(C):
            z[j, c] *= share[j]
    transposed_products(X, chosen, z[:n], product)
    _copy(product, g, C)


@compiled
def _copy(old, new, columns):
    """Copy the first columns; numpy's way of writing it takes seconds to compile."""
    for j in range(len(old)):
        for c in range(columns):
            new[j, c] = old[j, c]
