"""`kernels.descent` with eight runs at a time in the lanes of vectors: for few samples and features.

All that a client's steps need then stays in the innermost cache, and short loops have no remainders. All
numbers are doubles. A client's `data` (m, 8 d) have a vector for each sample and feature, and its `labels`
(2, m, 8) are labels and weights.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.lanes import LANES, load, spread, store
from replifed.kernels.linear import LEAST_SQUARES
from replifed.kernels.losses import falling


def lanes_for(runs: int) -> int:
    """Number of lanes that some runs take: whole vectors."""
    return -(-runs // LANES) * LANES


@compiled
def descend_in_lanes(X, y, weights, loss, steps, sizes, ridge, linear, models):
    """Runs with data of their own or with the same; arguments are those of `descent.descend`."""
    (S, N, m, d), R = X.shape, len(models)
    data, labels, sets = np.empty((m, d * LANES)), np.empty((2, m, LANES)), np.empty(LANES, np.intp)
    scratch = np.empty((4, d, LANES)), np.empty((m, LANES)), np.empty((3, LANES))
    for first in range(0, R, LANES):
        last = min(first + LANES, R)
        for lane in range(LANES):  # those without a run repeat the last one
            sets[lane] = min(first + lane, last - 1) * S // R
        for i in range(N):
            _load_client(X, y, weights, sets, i, data, labels)
            _descend(data, labels, loss, steps, i, first, last, sizes, ridge, linear, models, scratch)


@compiled_within
def _load_client(X, y, weights, sets, i, data, labels):
    """Put what client i holds in each of the `sets` side by side."""
    _, _, m, d = X.shape
    for lane in range(LANES):
        for j in range(m):
            labels[0, j, lane], labels[1, j, lane] = y[sets[lane], i, j], weights[sets[lane], i, j]
    if sets[0] == sets[LANES - 1]:  # they rise from lane to lane
        rows = X[sets[0], i]
        for j in range(m):
            for k in range(d):
                store(data, j, k, spread(rows[j, k]))
        return
    for lane in range(LANES):
        rows = X[sets[lane], i]
        for j in range(m):
            for k in range(d):
                data[j, k * LANES + lane] = rows[j, k]


@compiled_within
def _descend(x, labels, loss, steps, i, first, last, sizes, ridge, linear, models, scratch):
    """Client i of the runs from `first` to `last`."""
    (w, v, a, g), z, constants = scratch
    d, moving = len(w), False
    for lane in range(LANES):
        run = min(first + lane, last - 1)
        constants[0, lane], constants[1, lane] = sizes[0, run, i], sizes[1, run, i]
        constants[2, lane] = ridge[run]
        moving |= sizes[1, run, i] != 0
        for k in range(d):
            w[k, lane] = v[k, lane] = models[run, i, k]
            a[k, lane] = linear[run, i, k]
    label, share, r = labels[0].reshape(-1), labels[1].reshape(-1), z.reshape(-1)
    for _ in range(steps):
        _predict(x, w, z)
        if loss == LEAST_SQUARES:
            for j in range(len(r)):
                r[j] = (r[j] - label[j]) * share[j]
        else:
            for j in range(len(r)):
                r[j] = falling(label[j] * r[j], -label[j] * share[j])
        _combine(x, z, g)
        gamma, beta, b = load(constants, 0, 0), load(constants, 1, 0), load(constants, 2, 0)
        for k in range(d):
            at = load(w, k, 0)
            ahead = at - gamma * (load(g, k, 0) + b * at + load(a, k, 0))
            if moving:
                store(w, k, 0, ahead + beta * (ahead - load(v, k, 0)))
                store(v, k, 0, ahead)
            else:
                store(w, k, 0, ahead)
    for run in range(first, last):
        for k in range(d):
            models[run, i, k] = w[k, run - first]


@compiled_within
def _predict(x, w, z):
    """z_j = sum_k x_jk w_k in each lane, four samples at a time."""
    fours = len(z) // 4 * 4
    for j in range(0, fours, 4):
        u = load(w, 0, 0)
        p, q, r, s = load(x, j, 0) * u, load(x, j + 1, 0) * u, load(x, j + 2, 0) * u, load(x, j + 3, 0) * u
        for k in range(1, len(w)):
            u = load(w, k, 0)
            p += load(x, j, k) * u
            q += load(x, j + 1, k) * u
            r += load(x, j + 2, k) * u
            s += load(x, j + 3, k) * u
        store(z, j, 0, p)
        store(z, j + 1, 0, q)
        store(z, j + 2, 0, r)
        store(z, j + 3, 0, s)
    for j in range(fours, len(z)):
        p = load(x, j, 0) * load(w, 0, 0)
        for k in range(1, len(w)):
            p += load(x, j, k) * load(w, k, 0)
        store(z, j, 0, p)


@compiled_within
def _combine(x, z, g):
    """g_k = sum_j x_jk z_j in each lane, four features at a time."""
    fours = len(g) // 4 * 4
    for k in range(0, fours, 4):
        u = load(z, 0, 0)
        p, q, r, s = load(x, 0, k) * u, load(x, 0, k + 1) * u, load(x, 0, k + 2) * u, load(x, 0, k + 3) * u
        for j in range(1, len(z)):
            u = load(z, j, 0)
            p += load(x, j, k) * u
            q += load(x, j, k + 1) * u
            r += load(x, j, k + 2) * u
            s += load(x, j, k + 3) * u
        store(g, k, 0, p)
        store(g, k + 1, 0, q)
        store(g, k + 2, 0, r)
        store(g, k + 3, 0, s)
    for k in range(fours, len(g)):
        p = load(x, 0, k) * load(z, 0, 0)
        for j in range(1, len(z)):
            p += load(x, j, k) * load(z, j, 0)
        store(g, k, 0, p)
