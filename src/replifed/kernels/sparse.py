"""Gradients and thresholds of sparse models, each client's side by side on columns of its own."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import derivatives


@compiled
def minibatch_gradients(data, indices, indptr, y, bounds, samples, loss, models, g):
    """Fill `g` with the gradients on the minibatches, the mean over the samples drawn.

    Parameters
    ----------
    data, indices, indptr : arrays
        Features of all samples in CSR form.
    y : array, shape (n,)
    bounds : int array, shape (N + 1,)
        Where each client's columns begin and end.
    samples : int array, shape (B, N, b)
        Samples drawn.
    loss : int
        As in `kernels.linear`.
    models, g : arrays, shape (R, W)
        B divides R; the first R / B rows share the first minibatches, and so on.
    """
    R, (B, N, b) = len(models), samples.shape
    r, targets = np.empty(b, data.dtype), np.empty(b, y.dtype)
    for i in range(N):
        first, end = bounds[i], bounds[i + 1]
        for row in range(R):
            drawn, u, own = samples[row * B // R, i], models[row, first:end], g[row, first:end]
            for j in range(b):
                entries = slice(indptr[drawn[j]], indptr[drawn[j] + 1])
                a, columns, total = data[entries], indices[entries], data.dtype.type(0)
                for k in range(len(a)):
                    # Unsigned, so that no place is taken for one counted from the end.
                    total += a[k] * u[np.uintp(columns[k] - first)]
                r[j], targets[j] = total, y[drawn[j]]
            derivatives(r, targets, loss)
            own[:] = 0
            for j in range(b):
                entries = slice(indptr[drawn[j]], indptr[drawn[j] + 1])
                a, columns, weight = data[entries], indices[entries], r[j] / b
                for k in range(len(a)):
                    own[np.uintp(columns[k] - first)] += weight * a[k]


@compiled
def hard_threshold(u, columns, bounds, tau):
    """Set all but each client's `tau` entries of largest magnitude to zero; ties go to the lowest column.

    Parameters
    ----------
    u : array, shape (R, W)
        Models, changed in place. Of those that hold a NaN at least one is kept.
    columns : int array, shape (R, W)
        The column that each entry stands for.
    bounds : int array, shape (N + 1,)
    tau : int array, shape (R,)
    """
    most = tau.max()
    size, place, kept = np.empty(most, u.dtype), np.empty(most, np.intp), np.empty(most, u.dtype)
    for row in range(len(u)):
        for i in range(len(bounds) - 1):
            model, named = u[row, bounds[i] : bounds[i + 1]], columns[row, bounds[i] : bounds[i + 1]]
            held, k = 0, 0
            while k < len(model) and held < tau[row]:
                if model[k] != 0:
                    size[held], place[held] = _size(model[k]), k
                    held += 1
                k += 1
            # The largest so far are a heap with the least of them at its root.
            for root in range(held // 2 - 1, -1, -1):
                _sink(root, size, place, named, held)
            while k < len(model):
                # First what settles nearly all: a branch that is seldom taken costs next to nothing.
                if not abs(model[k]) < size[0]:
                    new = _size(model[k])
                    if new > size[0] or named[k] < named[place[0]]:
                        size[0], place[0] = new, k
                        _sink(0, size, place, named, held)
                k += 1
            for j in range(held):
                kept[j] = model[place[j]]
            model[:] = 0
            for j in range(held):
                model[place[j]] = kept[j]


@compiled
def _size(entry):
    """Its magnitude; NaN is as large as can be."""
    return np.inf if np.isnan(entry) else abs(entry)


@compiled
def _sink(root, size, place, named, held):
    """Let an entry sink in the heap until those below it are larger, or as large with a lower column."""
    while 2 * root + 1 < held:
        least = root
        for child in range(2 * root + 1, min(2 * root + 3, held)):
            if size[child] < size[least] or (
                size[child] == size[least] and named[place[child]] > named[place[least]]
            ):
                least = child
        if least == root:
            return
        size[root], size[least] = size[least], size[root]
        place[root], place[least] = place[least], place[root]
        root = least
