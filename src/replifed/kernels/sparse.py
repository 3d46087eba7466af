"""Gradients of sparse models: clients' own, side by side on columns of their own, and the server's."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.draws import count_drawn
from replifed.kernels.linear import derivatives
from replifed.kernels.sample_sums import add_up, room_for, take


@compiled
def minibatch_gradients(data, indices, indptr, y, bounds, samples, loss, models, g):
    """Fill `g` with the gradients on the minibatches, the mean over the samples drawn.

    Parameters
    ----------
    data, indices, indptr : arrays
        Features of all samples in CSR form.
    y : array, shape (n,)
    bounds : int array, shape (N + 1,)
        Where each client's columns begin and end in `models`.
    samples : int array, shape (B, N, b)
        Samples drawn.
    loss : int
        As in `kernels.linear`.
    models, g : arrays, shape (R, W)
        B divides R; the first R / B rows share the first minibatches, and so on.
    """
    R, (B, N, b) = len(models), samples.shape
    r, targets = np.empty(b, data.dtype), np.empty(b, y.dtype)
    distinct, times = np.empty(b, np.intp), np.zeros(len(y), np.intp)
    for i in range(N):
        here = slice(bounds[i], bounds[i + 1])
        for row in range(R):
            drawn, u, own = samples[row * B // R, i], models[row, here], g[row, here]
            n = count_drawn(drawn, times, distinct)
            for j in range(n):
                entries = slice(indptr[distinct[j]], indptr[distinct[j] + 1])
                a, columns, total = data[entries], indices[entries], data.dtype.type(0)
                for k in range(len(a)):
                    # Unsigned, so that no place is taken for one counted from the end.
                    total += a[k] * u[np.uintp(columns[k] - bounds[i])]
                r[j], targets[j] = total, y[distinct[j]]
            derivatives(r[:n], targets[:n], loss)
            own[:] = 0
            for j in range(n):
                entries = slice(indptr[distinct[j]], indptr[distinct[j] + 1])
                a, columns = data[entries], indices[entries]
                weight = data.dtype.type(times[distinct[j]] * r[j] / b)
                for k in range(len(a)):
                    own[np.uintp(columns[k] - bounds[i])] += weight * a[k]
                times[distinct[j]] = 0


@compiled
def full_gradients(z, y, loss, scales, layout, names, g):
    """Add to `g` (R, d) the gradients of all clients' losses, of data that are zeros and ones.

    Parameters
    ----------
    z : array, shape (R, n)
        Predictions.
    y : array, shape (n,)
    loss : int
        As in `kernels.linear`.
    scales : array, shape (N,)
        What each sample of a client counts.
    layout : kernels.sample_sums.Layout
        Which samples have each column that a client touches.
    names : int array, shape (E,)
        These columns.
    """
    (tables, sums), bounds = room_for(layout), layout.bounds
    for row in range(len(z)):
        for i in range(len(bounds) - 1):
            derivatives(take(i, z[row], layout, tables), y[layout.first[i] : layout.first[i + 1]], loss)
            add_up(i, scales[i], layout, tables, sums)
            for k in range(bounds[i + 1] - bounds[i]):
                g[row, np.uintp(names[bounds[i] + k])] += sums[k]


@compiled
def gram_matrices(data, indices, indptr, first, room, gram):
    """Fill `gram` (N, at least m_i, at least m_i) with each client's products of samples.

    Parameters
    ----------
    data, indices, indptr : arrays
        Features of all samples in CSR form.
    first : int array, shape (N + 1,)
        Where each client's samples begin and end.
    room : array, shape (d,)
        Zeros.
    """
    for i in range(len(first) - 1):
        for j in range(first[i], first[i + 1]):
            entries = slice(indptr[j], indptr[j + 1])
            a, columns = data[entries], indices[entries]
            for k in range(len(a)):
                room[np.uintp(columns[k])] += a[k]  # an entry may stand in several parts
            for other in range(first[i], j + 1):
                entries = slice(indptr[other], indptr[other + 1])
                b, places, total = data[entries], indices[entries], data.dtype.type(0)
                for k in range(len(b)):
                    total += b[k] * room[np.uintp(places[k])]
                gram[i, j - first[i], other - first[i]] = gram[i, other - first[i], j - first[i]] = total
            for k in range(len(a)):
                room[np.uintp(columns[k])] = 0
