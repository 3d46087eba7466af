"""Models in the span of the samples: predictions and gradients on minibatches, and whole local steps."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.draws import weigh_drawn
from replifed.kernels.linear import predict
from replifed.kernels.losses import softmax_derivatives
from replifed.kernels.tiles import padded, products


@compiled
def minibatch_predictions(gram, batch, models, predictions, z):
    """z = c X x + X X' a for the samples drawn.

    Parameters
    ----------
    gram : array, shape (S, N, m, m)
    batch : int array, shape (B, N, b)
    models : array, shape (R, N, C, m + 1)
        a, and then c.
    predictions : array, shape (R, N, C, m)
        X x.
    z : array, shape (R, N, C, b)
        S and B divide R; the first R / S rows share the first data set, and so on.
    """
    S, B, (R, N, C, m) = len(gram), len(batch), predictions.shape
    for i in range(N):
        for row in range(R):  # rows that share their minibatches find them in the cache
            drawn = batch[row * B // R, i]
            for k in range(C):
                model, known, own = models[row, i, k], predictions[row, i, k], z[row, i, k]
                predict(gram[row * S // R, i], drawn, model[:m], own)
                for j in range(len(drawn)):
                    own[j] += model[m] * known[drawn[j]]


@compiled
def add_drawn(batch, r, g):
    """Add `r` (R, N, C, b) to `g` (R, N, C, at least m) at the samples drawn, as often as each was."""
    R, N, C, b = r.shape
    B = len(batch)
    for row in range(R):
        for i in range(N):
            for k in range(C):
                for j in range(b):
                    g[row, i, k, np.uintp(batch[row * B // R, i, j])] += r[row, i, k, j]


@compiled
def softmax_steps(gram, known, y, weights, scale, batches, counts, step, l2, models):
    """Take the clients, one after the other, through gradient steps of softmax regression.

    Parameters
    ----------
    gram : array, shape (S, N, m, m)
    known : array, shape (R, N, C, m)
        Predictions X x of the server's models, where all clients begin.
    y : int array, shape (S, N, m)
    weights : array, shape (S, N, m)
        Of each sample in a step with all of them.
    scale : array, shape (S, N)
        Weight of a sample drawn.
    batches : int array, shape (K, B, N, b), or with K = 0 for steps with all samples
    counts : int array, shape (K,)
        How many rows, from the first on, take each step; never more than the one before.
    step : array, shape (R,)
    l2 : float
    models : array, shape (R, N, C, m + 1)
        Filled with a, and then c, of c x + X' a.
    """
    S, B, (R, N, C, m) = len(gram), batches.shape[1], known.shape
    # Rows that share their data and their minibatches are columns of one product.
    together = R // max(S, B)
    columns = padded(together * C, gram.itemsize)
    shape = m, columns
    a, begin, z = np.empty(shape, gram.dtype), np.zeros(shape, gram.dtype), np.empty(shape, gram.dtype)
    c, share = np.empty(together, gram.dtype), np.empty(m, gram.dtype)
    labels, distinct, times = np.empty((1, m), y.dtype), np.empty(m, np.intp), np.zeros(m, np.intp)
    for i in range(N):
        for first in range(0, R, together):
            s, of = first * S // R, first * B // R
            _fill(a, 0)
            for q in range(together):
                c[q] = 1
                for k in range(C):
                    for j in range(m):
                        begin[j, q * C + k] = known[first + q, i, k, j]
            for t in range(len(counts)):
                active = min(together, counts[t] - first)
                if active <= 0:
                    break
                if len(batches) > 0:
                    n = weigh_drawn(batches[t, of, i], scale[s, i], times, distinct, share)
                else:
                    n = m
                    for j in range(m):
                        distinct[j], share[j] = j, weights[s, i, j]
                chosen = distinct[:n]
                for j in range(n):
                    labels[0, j] = y[s, i, chosen[j]]
                if t > 0:
                    products(gram[s, i], chosen, a, z[:n])
                else:
                    _fill(z, 0)
                for q in range(active):
                    own, gamma = slice(q * C, (q + 1) * C), step[first + q]
                    c[q] = _step(
                        begin[:, own], chosen, labels[:, :n], share, gamma, l2, c[q], z[:n, own], a[:, own]
                    )
            for q in range(together):
                for k in range(C):
                    for j in range(m):
                        models[first + q, i, k, j] = a[j, q * C + k]
                    models[first + q, i, k, m] = c[q]


@compiled
def _step(known, chosen, labels, share, gamma, l2, c, z, a):
    """Move one row's a (m, C) along the samples `chosen`, where `z` (n, C) is X X' a; return c."""
    n, C = z.shape
    for j in range(n):
        for k in range(C):
            z[j, k] += c * known[chosen[j], k]
    softmax_derivatives(z[np.newaxis], labels, z[np.newaxis])
    if l2 > 0:
        for j in range(len(a)):
            for k in range(C):
                a[j, k] -= gamma * l2 * a[j, k]
        c -= gamma * l2 * c
    for j in range(n):
        weight = gamma * share[j]
        for k in range(C):
            a[chosen[j], k] -= weight * z[j, k]
    return c


@compiled
def _fill(array, value):
    """Numpy's way of writing it takes seconds to compile."""
    for j in range(array.shape[0]):
        for k in range(array.shape[1]):
            array[j, k] = value
