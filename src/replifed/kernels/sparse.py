"""Gradients and thresholds of sparse models, each client's side by side on columns of its own."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import derivatives
from replifed.kernels.selection import above, cut_above


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
                a, columns, weight = data[entries], indices[entries], data.dtype.type(r[j] / b)
                for k in range(len(a)):
                    own[np.uintp(columns[k] - first)] += weight * a[k]


@compiled
def hard_threshold(bits, most, columns, bounds, tau):
    """Set all but each client's `tau` entries of largest magnitude to zero; ties go to the lowest column.

    Parameters
    ----------
    bits : int array, shape (R, W)
        Models, changed in place; they and `most` are as in `kernels.selection.keep_largest`.
    columns : int array, shape (R, W)
        The column that each entry stands for.
    bounds : int array, shape (N + 1,)
    tau : int array, shape (R,)
    """
    room = np.empty(np.diff(bounds).max(), bits.dtype)
    for row in range(len(bits)):
        for i in range(len(bounds) - 1):
            model, named = bits[row, bounds[i] : bounds[i + 1]], columns[row, bounds[i] : bounds[i + 1]]
            numbers = room[: len(model)]
            for k in range(len(model)):
                numbers[k] = model[k] & most
            cut, crowded = cut_above(numbers, tau[row])
            last = -1  # of the columns that are kept of those at the cut
            if crowded:
                tied = np.sort(named[numbers == cut])
                last = tied[tau[row] - above(numbers, cut) - 1]
            for k in range(len(model)):
                if not (numbers[k] > cut or (numbers[k] == cut and named[k] <= last)):
                    model[k] = 0
