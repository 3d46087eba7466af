"""Gradients of softmax regression on minibatches, every client at a model of its own."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.draws import weigh_drawn
from replifed.kernels.losses import softmax_derivatives
from replifed.kernels.tiles import padded, products, transposed_products


@compiled
def minibatch_gradients(X, y, scale, batch, models, g):
    """Fill `g` with the gradients on the minibatches, `scale` times the sum over the samples drawn.

    A sample drawn twice counts twice and is read once.

    Parameters
    ----------
    X : array, shape (S, N, m, d)
    y : int array, shape (S, N, m)
        Classes.
    scale : array, shape (S, N)
    batch : int array, shape (B, N, b)
    models, g : arrays, shape (R, N, d, C)
        S and B divide R; the first R / S runs share the first data set, and so on.
    """
    S, N = X.shape[:2]
    R, C, B, b = len(models), models.shape[-1], len(batch), batch.shape[-1]
    scratch = minibatch_scratch(X, y, C, b)
    for i in range(N):
        for run in range(R):  # runs that share their minibatches find them in the cache
            s = run * S // R
            on_minibatch(
                X[s, i], y[s, i], scale[s, i], batch[run * B // R, i], models[run, i], g[run, i], scratch
            )


@compiled
def minibatch_scratch(X, y, outputs, size):
    """Scratch that `on_minibatch` works in, for minibatches of that size."""
    m, d = X.shape[2:]
    # Columns beyond the classes stay at zero.
    columns = padded(outputs, X.itemsize)
    return (
        np.zeros((d, columns), X.dtype),
        np.empty((size, columns), X.dtype),
        np.empty((d, columns), X.dtype),
        np.empty((1, size), y.dtype),
        np.zeros(m, np.intp),
        np.empty(size, np.intp),
        np.empty(size, np.float64),
    )


@compiled
def on_minibatch(X, y, scale, drawn, model, gradient, scratch):
    """Fill `gradient` (d, C) with that of one client, with samples X (m, d), at its `model` (d, C)."""
    u, z, product, classes, times, distinct, share = scratch
    (d, C), columns = model.shape, u.shape[1]
    n = weigh_drawn(drawn, scale, times, distinct, share)
    chosen = distinct[:n]
    for j in range(n):
        classes[0, j] = y[chosen[j]]
    for k in range(d):
        for c in range(C):
            u[k, c] = model[k, c]
    products(X, chosen, u, z[:n])
    p = z[:n].reshape(1, n, columns)[:, :, :C]
    softmax_derivatives(p, classes[:, :n], p)
    for j in range(n):
        for c in range(C):
            z[j, c] *= share[j]
    transposed_products(X, chosen, z[:n], product)
    for k in range(d):
        for c in range(C):
            gradient[k, c] = product[k, c]
