"""Two coupled sequences on sparse logistic regression, many settings of them at once.

A step maps (w, v) to (a w + b v - gamma g, c w + d v - eta g) coordinate by coordinate, where the loss's
gradient g is taken at m = from_w w + (1 - from_w) v, and a to d hold all that regularisation and coupling do.
A sample moves its own coordinates only; on all others a step is the same 2 x 2 matrix, so that they are
brought up to date by a power of it when a sample next touches them.

All settings see the same samples; they are the L lanes of vectors, the last axis of arrays: models (D, 2,
L) have both sequences, `powers` (K + 1, 4, L) are a to d of no step, one, ..., K steps, and `from_w`, `eta`
and `gamma` are (L,). Features of the samples are in CSR form, labels `y` are -1 and 1. Eight lanes at a time
go through all rounds, so that what they need stays in the innermost cache; L is a multiple of eight.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.lanes import LANES, load, spread, store
from replifed.kernels.losses import falling, softplus


@compiled
def local_rounds(data, indices, indptr, y, samples, powers, from_w, eta, gamma, server):
    """Take rounds of K local steps of each client and an average, in place of `server`.

    `samples` (T, M) has a sample of every client and step; K divides T.
    """
    D, _, L = server.shape
    for first in range(0, L, LANES):
        constants, models = np.empty((3, LANES)), np.empty((D, 2 * LANES))
        matrices = np.empty((len(powers), 4 * LANES))
        for lane in range(LANES):
            constants[0, lane] = from_w[first + lane]
            constants[1, lane], constants[2, lane] = gamma[first + lane], eta[first + lane]
            for k in range(len(powers)):
                for entry in range(4):
                    matrices[k, entry * LANES + lane] = powers[k, entry, first + lane]
            for j in range(D):
                models[j, lane], models[j, LANES + lane] = (
                    server[j, 0, first + lane],
                    server[j, 1, first + lane],
                )
        _rounds_of_lanes(data, indices, indptr, y, samples, matrices, constants, models)
        for lane in range(LANES):
            for j in range(D):
                server[j, 0, first + lane], server[j, 1, first + lane] = (
                    models[j, lane],
                    models[j, LANES + lane],
                )


@compiled_within
def _rounds_of_lanes(data, indices, indptr, y, samples, powers, constants, server):
    """`local_rounds` with models (D, 2 * 8), powers (K + 1, 4 * 8), and from_w, gamma and eta (3, 8)."""
    (T, M), K, D = samples.shape, len(powers) - 1, len(server)
    client, sums, r = np.empty_like(server), np.empty_like(server), np.empty((1, LANES))
    # Steps that a client's coordinate has seen, -1 while it is the server's; those that are not; of how many
    # clients.
    seen, touched, clients = np.full(D, -1), np.empty(D, np.intp), np.empty(D, np.intp)
    for begin in range(0, T, K):
        sums[:] = 0
        clients[:] = 0
        for m in range(M):
            count = 0
            for step in range(K):
                i = samples[begin + step, m]
                r[:] = 0
                for k in range(indptr[i], indptr[i + 1]):
                    j = indices[k]
                    if seen[j] < 0:
                        touched[count] = j
                        count += 1
                        seen[j] = 0
                        _copy(server, client, j)
                    _advance(client, j, powers, step - seen[j], constants, data[k], r)
                _derivatives_of_lanes(r, y[i])
                for k in range(indptr[i], indptr[i + 1]):
                    _step_of_lanes(client, indices[k], powers, data[k], r, constants)
                    seen[indices[k]] = step + 1
            for k in range(count):
                j = touched[k]
                _add_advanced(client, sums, j, powers, K - seen[j])
                clients[j] += 1
                seen[j] = -1
        for j in range(D):
            _average(server, sums, j, powers, K, clients[j], M)


@compiled
def minibatch_rounds(data, indices, indptr, y, samples, K, powers, from_w, eta, gamma, server):
    """As `local_rounds`, but each round is one step with the mean gradient of all its samples."""
    (T, M), (D, _, L) = samples.shape, server.shape
    middle, g, r = np.empty((D, L)), np.empty(D * L), np.empty(L)
    for begin in range(0, T, K):
        g[:] = 0
        for j in range(D):
            for lane in range(L):
                w, v = server[j, 0, lane], server[j, 1, lane]
                middle[j, lane] = from_w[lane] * w + (1.0 - from_w[lane]) * v
        for step in range(begin, begin + K):
            for m in range(M):
                i = samples[step, m]
                _predict(data, indices, indptr[i], indptr[i + 1], middle, r)
                _derivatives(r, y[i])
                for k in range(indptr[i], indptr[i + 1]):
                    first, x = indices[k] * L, data[k]
                    for lane in range(L):
                        g[first + lane] += x * r[lane]
        for j in range(D):
            _step(server, j, powers, 1.0 / (K * M), g, j * L, eta, gamma)


@compiled
def logistic_means(data, indices, indptr, y, models, means):
    """Fill `means` (L,) with the mean loss of all samples at `models` (D, L)."""
    z = np.empty(len(means))
    means[:] = 0
    for i in range(len(y)):
        _predict(data, indices, indptr[i], indptr[i + 1], models, z)
        for lane in range(len(z)):
            means[lane] += softplus(-y[i] * z[lane])
    means /= len(y)


@compiled_within
def _predict(data, indices, first, end, models, z):
    """z = <x, u> for a sample's features and each lane's model."""
    z[:] = 0
    for k in range(first, end):
        j, x = indices[k], data[k]
        for lane in range(len(z)):
            z[lane] += x * models[j, lane]


@compiled_within
def _derivatives(z, y):
    """The loss's derivatives at predictions of one sample, in their place."""
    for lane in range(len(z)):
        z[lane] = falling(y * z[lane], -y)


# Rows are named by their index: a view of each would be counted as a reference.


@compiled_within
def _step(models, j, powers, x, r, first, eta, gamma):
    """A step of coordinate j, whose gradient is `x` times `r`, from `first` on."""
    for lane in range(len(eta)):
        w, v, g = models[j, 0, lane], models[j, 1, lane], x * r[first + lane]
        models[j, 0, lane] = powers[1, 0, lane] * w + powers[1, 1, lane] * v - gamma[lane] * g
        models[j, 1, lane] = powers[1, 2, lane] * w + powers[1, 3, lane] * v - eta[lane] * g


# The rest is of eight lanes.


@compiled_within
def _copy(old, new, j):
    """Hand a client coordinate j."""
    store(new, j, 0, load(old, j, 0))
    store(new, j, 1, load(old, j, 1))


@compiled_within
def _moved(models, j, powers, steps):
    """Both sequences of coordinate j, `steps` later."""
    w, v = load(models, j, 0), load(models, j, 1)
    moved_w = load(powers, steps, 0) * w + load(powers, steps, 1) * v
    return moved_w, load(powers, steps, 2) * w + load(powers, steps, 3) * v


@compiled_within
def _advance(models, j, powers, steps, constants, x, z):
    """Bring coordinate j up to date, and add `x` times where its gradient is taken to `z`."""
    w, v = _moved(models, j, powers, steps)
    store(models, j, 0, w)
    store(models, j, 1, v)
    middle = v + load(constants, 0, 0) * (w - v)
    store(z, 0, 0, load(z, 0, 0) + spread(x) * middle)


@compiled_within
def _derivatives_of_lanes(z, y):
    """The loss's derivatives at predictions (1, 8) of one sample, in their place."""
    for lane in range(z.shape[1]):
        z[0, lane] = falling(y * z[0, lane], -y)


@compiled_within
def _step_of_lanes(models, j, powers, x, r, constants):
    """A step of coordinate j, whose gradient is `x` times `r`."""
    (w, v), g = _moved(models, j, powers, 1), spread(x) * load(r, 0, 0)
    store(models, j, 0, w - load(constants, 1, 0) * g)
    store(models, j, 1, v - load(constants, 2, 0) * g)


@compiled_within
def _add_advanced(models, sums, j, powers, steps):
    """Add coordinate j, brought up to date, to its sum."""
    w, v = _moved(models, j, powers, steps)
    store(sums, j, 0, load(sums, j, 0) + w)
    store(sums, j, 1, load(sums, j, 1) + v)


@compiled_within
def _average(server, sums, j, powers, K, clients, M):
    """The mean over M clients of coordinate j, which all but `clients` have only brought up to date."""
    w, v = _moved(server, j, powers, K)
    others, share = spread((M - clients) * 1.0), spread(1.0 / M)
    store(server, j, 0, (load(sums, j, 0) + others * w) * share)
    store(server, j, 1, (load(sums, j, 1) + others * v) * share)
