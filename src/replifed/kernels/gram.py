"""Gradient steps of linear models in the span of their samples."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import SOFTMAX, predict, weigh_drawn, weighted_derivatives
from replifed.kernels.losses import softmax_derivatives
from replifed.kernels.tiles import padded, products

# With fewer columns a product with a tile's width of them takes longer than one by one.
_FEW = 4


def gradient_steps(gram, place, known, y, *others):
    """Take `_gradient_steps`, compiled once for targets that are numbers and for those that are classes."""
    _gradient_steps(gram, place, known, y.astype(known.dtype, copy=False), *others)


@compiled
def _gradient_steps(gram, place, known, y, weights, scale, K, batches, loss, step, ridge, pull, models):
    """Fill `models` with where K steps u <- u - eta (grad l(u; b) + ridge u + pull (u - x)) from x lead.

    A model is u = c x + X' a; every client begins at c = 1 and a = 0. After the first step, which needs no
    Gram matrix, runs that share their data and their minibatches are columns of one product.

    Parameters
    ----------
    gram : array, shape (P, m, m), of which client i of set s has that with the number place[s, i]
    known : array, shape (R, N, m, C)
        Predictions X x.
    y, weights : arrays, shape (S, N, m)
        Targets, and what each sample weighs in a step with all of them.
    scale : array, shape (S, N)
        What a sample drawn weighs.
    batches : int array, shape (K, B, N, b), or (0, 1, N, 0) for steps with all samples
    loss : index of the loss in `problems.losses.COMPILED`
    step, pull : arrays, shape (R,)
        eta and the weight of |u - x|^2 / 2.
    ridge : weight of |u|^2 / 2
    models : array, shape (R, N, m + 1, C)
        a, and then c.
    """
    S, B, (R, N, m, C) = len(place), batches.shape[1], known.shape
    group = R // max(S, B)  # runs that share their data and their minibatches
    used = group * C
    columns = padded(used, known.itemsize)
    # Columns beyond those in use have steps of length zero.
    a, start = np.empty((m, columns), known.dtype), np.zeros((m, columns), known.dtype)
    z, vector = np.empty((m, columns), known.dtype), np.empty((2, m), known.dtype)
    c, eta = np.empty(columns, known.dtype), np.zeros(columns, known.dtype)
    mu = np.zeros(columns, known.dtype)
    labels, share = np.empty((1, m), y.dtype), np.empty(m, known.dtype)
    distinct, times, every_column = np.empty(m, np.intp), np.zeros(m, np.intp), np.arange(m)
    for i in range(N):
        for first in range(0, R, group):
            s = first * S // R
            _fill(a, 0)
            for q in range(used):
                run, k = first + q // C, q % C
                c[q], eta[q], mu[q] = 1, step[run], pull[run]
                for j in range(m):
                    start[j, q] = known[run, i, j, k]
            for t in range(K):
                if len(batches) > 0:
                    n = weigh_drawn(batches[t, first * B // R, i], scale[s, i], times, distinct, share)
                else:
                    n = m
                    for j in range(m):
                        distinct[j], share[j] = j, weights[s, i, j]
                chosen = distinct[:n]
                for j in range(n):
                    labels[0, j] = y[s, i, chosen[j]]
                if t == 0:
                    _fill(z, 0)
                elif used < _FEW:
                    _products_one_by_one(gram[place[s, i]], chosen, a, used, vector, z)
                else:
                    products(gram[place[s, i]], chosen, every_column, a, z[:n])
                for j in range(n):
                    _add(c, start[chosen[j]], z[j])
                _derivatives(z[:n], labels[:, :n], loss, C, group)
                _shrink(eta, ridge, mu, c, a)
                for j in range(n):
                    _step(eta, share[j], z[j], a[chosen[j]])
            for q in range(used):
                run, k = first + q // C, q % C
                models[run, i, m, k] = c[q]
                for j in range(m):
                    models[run, i, j, k] = a[j, q]


@compiled_within
def _products_one_by_one(gram, chosen, a, used, vector, z):
    """The first columns of gram[chosen] a."""
    column, product = vector[0], vector[1]
    for q in range(used):
        for j in range(len(a)):
            column[j] = a[j, q]
        predict(gram, chosen, column, product)
        for j in range(len(chosen)):
            z[j, q] = product[j]


@compiled_within
def _add(c, known, z):
    """z += c X x for one sample."""
    for q in range(len(z)):
        z[q] += c[q] * known[q]


@compiled_within
def _derivatives(z, labels, loss, C, group):
    """Replace predictions (n, columns) by the derivatives of the loss in them."""
    if loss == SOFTMAX:
        for q in range(group):
            p = z[np.newaxis, :, q * C : (q + 1) * C]
            softmax_derivatives(p, labels, p)
    else:
        for j in range(len(z)):
            weighted_derivatives(z[j], labels[0, j], 1, loss)


@compiled_within
def _shrink(eta, ridge, pull, c, a):
    """The part of a step that `ridge` and `pull` make."""
    largest = ridge
    for q in range(len(pull)):
        largest = max(largest, pull[q])
    if largest == 0:
        return
    for j in range(len(a)):
        for q in range(len(c)):
            a[j, q] -= eta[q] * (ridge + pull[q]) * a[j, q]
    for q in range(len(c)):
        c[q] -= eta[q] * (ridge * c[q] + pull[q] * (c[q] - 1))


@compiled_within
def _step(eta, share, r, a):
    """Move along one sample."""
    for q in range(len(a)):
        a[q] -= share * eta[q] * r[q]


@compiled_within
def _fill(array, value):
    """Numpy's way of writing it takes seconds to compile."""
    for j in range(array.shape[0]):
        for k in range(array.shape[1]):
            array[j, k] = value
