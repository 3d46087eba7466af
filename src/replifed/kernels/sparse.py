"""Gradients of sparse models, all clients side by side, each on its own columns; and Hessians."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import count_drawn, derivatives
from replifed.kernels.selection import keep_in_segment
from replifed.kernels.symmetric import mirror


@compiled
def minibatch_gradients(data, indices, indptr, y, bounds, samples, loss, models, g):
    """Fill `g` (R, W) with the gradients at `models` on the minibatches, the mean over the samples drawn.

    Features of all samples are in CSR form, with targets `y` (n,); `bounds` (N + 1,) are where each client's
    columns begin and end. `samples` (B, N, b) are those drawn; B divides R; the first R / B runs share the
    first minibatches, and so on.
    """
    R, (B, N, b) = len(models), samples.shape
    scratch = _scratch(data, y, b)
    for i in range(N):
        here = slice(bounds[i], bounds[i + 1])
        for run in range(R):
            drawn, u, gradient = samples[run * B // R, i], models[run, here], g[run, here]
            _on_minibatch(data, indices, indptr, y, bounds[i], drawn, loss, u, gradient, scratch)


@compiled
def minibatch_steps(
    data, indices, indptr, y, bounds, samples, loss, eta, ridge, tau, most, keys, models, integers, moved
):
    """Steps w <- H_tau(w - eta (grad l(w; b) + ridge w)) of `models` on minibatches `samples` (K, B, N, b).

    A client's model stays in the cache from step to step. `eta` and `tau` are (R,), with no `tau` for no
    thresholds, `keys` (R, W) or (0, 0) and `most` are those of `kernels.selection.keep_largest`, `integers`
    is the memory of `models`, and `moved` scratch for one client: numbers, and the same memory as integers.
    """
    R, (K, B, N, b) = len(models), samples.shape
    scratch = _scratch(data, y, b)
    choosing = np.empty(len(moved[0]), integers.dtype), np.empty(len(moved[0]) + 1, keys.dtype)
    for i in range(N):
        here = slice(bounds[i], bounds[i + 1])
        for run in range(R):
            w, bits, g = models[run, here], integers[run, here], moved[0][: bounds[i + 1] - bounds[i]]
            threshold = np.int64(0)
            for k in range(K):
                drawn = samples[k, run * B // R, i]
                _on_minibatch(data, indices, indptr, y, bounds[i], drawn, loss, w, g, scratch)
                for j in range(len(w)):
                    g[j] = w[j] - eta[run] * (g[j] + ridge * w[j])
                if len(tau) > 0:
                    threshold = np.int64(
                        keep_in_segment(
                            moved[1][: len(w)], most, keys[run, here], tau[run], threshold, choosing, bits
                        )
                    )
                else:
                    w[:] = g


@compiled
def _scratch(data, y, b):
    """Memory for `_on_minibatch`."""
    return np.empty(b, data.dtype), np.empty(b, y.dtype), np.empty(b, np.intp), np.zeros(len(y), np.intp)


@compiled_within
def _on_minibatch(data, indices, indptr, y, first, drawn, loss, u, gradient, scratch):
    """Fill `gradient` with that of one client, whose columns begin at `first`, on the samples `drawn`."""
    r, targets, distinct, times = scratch
    n = count_drawn(drawn, times, distinct)
    for j in range(n):
        entries = slice(indptr[distinct[j]], indptr[distinct[j] + 1])
        a, columns, total = data[entries], indices[entries], data.dtype.type(0)
        for k in range(len(a)):
            # Unsigned: a signed index would be checked for being counted from the end.
            total += a[k] * u[np.uintp(columns[k] - first)]
        r[j], targets[j] = total, y[distinct[j]]
    derivatives(r[:n], targets[:n], loss)
    gradient[:] = 0
    for j in range(n):
        entries = slice(indptr[distinct[j]], indptr[distinct[j] + 1])
        a, columns = data[entries], indices[entries]
        weight = data.dtype.type(times[distinct[j]] * r[j] / len(drawn))
        for k in range(len(a)):
            gradient[np.uintp(columns[k] - first)] += weight * a[k]
        times[distinct[j]] = 0


@compiled
def squares(data, indices, indptr, first, h, H):
    """Fill `H` (R, N, n, n) with sum_s h_s x_s x_s' over each client's samples s.

    Features of all samples are in CSR form, columns in increasing order, with weights `h` (R, m); `first`
    (N + 1,) is where each client's samples begin and end.
    """
    for run in range(len(h)):
        for i in range(len(first) - 1):
            hessian = H[run, i]
            for j in range(len(hessian)):
                hessian[j, : j + 1] = 0.0
            for s in range(first[i], first[i + 1]):
                entries = slice(indptr[s], indptr[s + 1])
                a, columns = data[entries], indices[entries]
                for j in range(len(a)):
                    # Unsigned: a signed index would be checked for being counted from the end.
                    weighted, line = h[run, s] * a[j], hessian[np.uintp(columns[j])]
                    for k in range(j + 1):
                        line[np.uintp(columns[k])] += weighted * a[k]
            mirror(hessian)
