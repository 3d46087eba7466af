"""Two coupled sequences on sparse logistic regression, many settings of them at once.

A step maps (w, v) to (a w + b v - gamma g, c w + d v - eta g) coordinate by coordinate, where the loss's
gradient g is taken at m = from_w w + (1 - from_w) v, and a to d hold all that regularisation and coupling do.
A sample moves its own coordinates only; on all others a step is the same 2 x 2 matrix, so that they are
brought up to date by a power of it when a sample next touches them.

All settings see the same samples; they are the L *lanes* of vectors, the last axis of arrays: models (D, 2,
L) have both sequences, `powers` (K + 1, 4, L) are a to d of no step, one, ..., K steps, and `from_w`, `eta`
and `gamma` are (L,). Features of the samples are in CSR form, labels `y` are -1 and 1.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, inlined
from replifed.kernels.losses import falling, softplus


@compiled
def local_rounds(data, indices, indptr, y, samples, powers, from_w, eta, gamma, server):
    """Take rounds of K local steps of each client and an average, in place of `server`.

    `samples` (T, M) has a sample of every client and step; K divides T.
    """
    (T, M), K, D = samples.shape, len(powers) - 1, len(server)
    client, sums = np.empty_like(server), np.empty_like(server)
    # Steps that a client's coordinate has seen, -1 while it is the server's; those that are not; of how many
    # clients.
    seen, touched, clients = np.full(D, -1), np.empty(D, np.intp), np.empty(D, np.intp)
    r = np.empty(len(eta))
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
                        _advance(server, client, j, powers, step, from_w, data[k], r)
                    else:
                        _advance(client, client, j, powers, step - seen[j], from_w, data[k], r)
                _derivatives(r, y[i])
                for k in range(indptr[i], indptr[i + 1]):
                    _step(client, indices[k], powers, data[k], r, 0, eta, gamma)
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


@inlined
def _predict(data, indices, first, end, models, z):
    """z = <x, u> for a sample's features and each lane's model."""
    z[:] = 0
    for k in range(first, end):
        j, x = indices[k], data[k]
        for lane in range(len(z)):
            z[lane] += x * models[j, lane]


@inlined
def _derivatives(z, y):
    """The loss's derivatives at predictions of one sample, in their place."""
    for lane in range(len(z)):
        z[lane] = falling(y * z[lane], -y)


# Rows are named by their index: a view of each would be counted as a reference.


@inlined
def _advance(old, new, j, powers, steps, from_w, x, z):
    """Bring coordinate j up to date, and add `x` times where its gradient is taken to `z`."""
    for lane in range(len(z)):
        w, v = old[j, 0, lane], old[j, 1, lane]
        moved_w = powers[steps, 0, lane] * w + powers[steps, 1, lane] * v
        moved_v = powers[steps, 2, lane] * w + powers[steps, 3, lane] * v
        new[j, 0, lane], new[j, 1, lane] = moved_w, moved_v
        z[lane] += x * (from_w[lane] * moved_w + (1.0 - from_w[lane]) * moved_v)


@inlined
def _step(models, j, powers, x, r, first, eta, gamma):
    """A step of coordinate j, whose gradient is `x` times `r`, from `first` on."""
    for lane in range(len(eta)):
        w, v, g = models[j, 0, lane], models[j, 1, lane], x * r[first + lane]
        models[j, 0, lane] = powers[1, 0, lane] * w + powers[1, 1, lane] * v - gamma[lane] * g
        models[j, 1, lane] = powers[1, 2, lane] * w + powers[1, 3, lane] * v - eta[lane] * g


@inlined
def _add_advanced(models, sums, j, powers, steps):
    """Add coordinate j, brought up to date, to its sum."""
    for lane in range(models.shape[2]):
        w, v = models[j, 0, lane], models[j, 1, lane]
        sums[j, 0, lane] += powers[steps, 0, lane] * w + powers[steps, 1, lane] * v
        sums[j, 1, lane] += powers[steps, 2, lane] * w + powers[steps, 3, lane] * v


@inlined
def _average(server, sums, j, powers, K, clients, M):
    """The mean over M clients of coordinate j, which all but `clients` have only brought up to date."""
    for lane in range(server.shape[2]):
        w, v = server[j, 0, lane], server[j, 1, lane]
        moved_w = powers[K, 0, lane] * w + powers[K, 1, lane] * v
        moved_v = powers[K, 2, lane] * w + powers[K, 3, lane] * v
        server[j, 0, lane] = (sums[j, 0, lane] + (M - clients) * moved_w) / M
        server[j, 1, lane] = (sums[j, 1, lane] + (M - clients) * moved_v) / M
