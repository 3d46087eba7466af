"""Gradients of sparse models, all clients side by side, each on its own columns; and Hessians."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import count_drawn, derivatives


@compiled
def minibatch_gradients(data, indices, indptr, y, bounds, samples, loss, models, g):
    """Fill `g` (R, W) with the gradients at `models` on the minibatches, the mean over the samples drawn.

    Features of all samples are in CSR form, with targets `y` (n,); `bounds` (N + 1,) are where each client's
    columns begin and end. `samples` (B, N, b) are those drawn; B divides R; the first R / B runs share the
    first minibatches, and so on.
    """
    R, (B, N, b) = len(models), samples.shape
    r, targets = np.empty(b, data.dtype), np.empty(b, y.dtype)
    distinct, times = np.empty(b, np.intp), np.zeros(len(y), np.intp)
    for i in range(N):
        here = slice(bounds[i], bounds[i + 1])
        for run in range(R):
            drawn, u, gradient = samples[run * B // R, i], models[run, here], g[run, here]
            n = count_drawn(drawn, times, distinct)
            for j in range(n):
                entries = slice(indptr[distinct[j]], indptr[distinct[j] + 1])
                a, columns, total = data[entries], indices[entries], data.dtype.type(0)
                for k in range(len(a)):
                    # Unsigned: a signed index would be checked for being counted from the end.
                    total += a[k] * u[np.uintp(columns[k] - bounds[i])]
                r[j], targets[j] = total, y[distinct[j]]
            derivatives(r[:n], targets[:n], loss)
            gradient[:] = 0
            for j in range(n):
                entries = slice(indptr[distinct[j]], indptr[distinct[j] + 1])
                a, columns = data[entries], indices[entries]
                weight = data.dtype.type(times[distinct[j]] * r[j] / b)
                for k in range(len(a)):
                    gradient[np.uintp(columns[k] - bounds[i])] += weight * a[k]
                times[distinct[j]] = 0


@compiled
def add_squares(data, indices, indptr, first, h, H):
    """Add sum_s h_s x_s x_s' over each client's samples s to `H` (R, N, n, n), zeros before.

    Features of all samples are in CSR form, columns in increasing order, with weights `h` (R, m); `first`
    (N + 1,) is where each client's samples begin and end.
    """
    for run in range(len(h)):
        for i in range(len(first) - 1):
            hessian = H[run, i]
            for s in range(first[i], first[i + 1]):
                entries = slice(indptr[s], indptr[s + 1])
                a, columns = data[entries], indices[entries]
                for j in range(len(a)):
                    # Unsigned: a signed index would be checked for being counted from the end.
                    weighted, line = h[run, s] * a[j], hessian[np.uintp(columns[j])]
                    for k in range(j + 1):
                        line[np.uintp(columns[k])] += weighted * a[k]
            for j in range(len(hessian)):
                for k in range(j):
                    hessian[k, j] = hessian[j, k]
