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
            gradient[:] = 0
            _on_minibatch(data, indices, indptr, y, bounds[i], drawn, loss, u, gradient, scratch)


@compiled
def minibatch_steps(data, indices, indptr, y, bounds, samples, loss, eta, models):
    """Steps w <- w - eta grad l(w; b) of `models` on minibatches `samples` (K, B, N, b); `eta` is (R,).

    A client's model stays in the cache from step to step. All else is as in `minibatch_gradients`.
    """
    R, (K, B, N, b) = len(models), samples.shape
    scratch, gradient = _scratch(data, y, b), np.empty(models.shape[1], models.dtype)
    for i in range(N):
        for run in range(R):
            w, g = models[run, bounds[i] : bounds[i + 1]], gradient[: bounds[i + 1] - bounds[i]]
            for k in range(K):
                g[:] = 0
                drawn = samples[k, run * B // R, i]
                _on_minibatch(data, indices, indptr, y, bounds[i], drawn, loss, w, g, scratch)
                for j in range(len(w)):
                    w[j] -= eta[run] * g[j]


@compiled
def thresholded_steps(
    data, indices, indptr, y, bounds, own, samples, loss, eta, ridge, tau, most, held, moved
):
    """Steps w <- H_tau(w - eta (grad l(w; b) + ridge w)) on minibatches `samples` (K, B, N, b).

    A model has few non-zeros, and a minibatch touches few columns: a step goes over these alone. Columns of
    features in which clients' samples have non-zeros are `own` (W,), in increasing order for each client.
    `eta` and `tau` are (R,). `held` are columns and values of non-zeros, (R, N, most of tau), and zeros after
    these: at first of the server's model, at the end of the clients' ones. `moved` is scratch for as many
    numbers as one more than tau and the non-zeros of any client's data, and its memory as integers, for which
    `most` is that of `kernels.selection.keep_largest`. All else is as in `minibatch_gradients`.
    """
    (columns, values), (numbers, integers) = held, moved
    R, (K, B, N, b), size = len(eta), samples.shape, len(numbers)
    scratch = _scratch(data, y, b)
    # One client's model and gradient, zero but where a step is; the columns that move, and where they lie.
    w, g = np.zeros(size, data.dtype), np.zeros(size, data.dtype)
    names, places = np.empty(size, own.dtype), np.empty(size, np.intp)
    choosing = np.empty(size, integers.dtype), np.empty(size + 1, own.dtype)
    touched, small = np.empty(size, np.uintp), (np.empty(size, data.dtype), np.empty(size, np.uintp))
    for i in range(N):
        first, mine = bounds[i], own[bounds[i] : bounds[i + 1]]
        for run in range(R):
            n, place, threshold, step = 0, 0, np.int64(0), eta[run]
            for j in range(values.shape[2]):
                if values[run, i, j] != 0:
                    names[n], numbers[n] = columns[run, i, j], values[run, i, j]
                    place = _find(mine, names[n], place)
                    places[n] = place if place < len(mine) and mine[place] == names[n] else -1
                    n += 1
            least = _put(numbers[:n], places, w)
            for k in range(K):
                drawn = samples[k, run * B // R, i]
                changed = _accumulate(data, indices, indptr, y, first, drawn, loss, w, g, scratch, touched)
                # Numbers that are far smaller than all before are set apart: few of the others are left.
                enough, old = least / 2 if n == tau[run] else data.dtype.type(0), n
                reached = 0
                for j in range(n):
                    # The samples do not touch what lies outside the client's columns, but it competes.
                    slope = data.dtype.type(0)
                    if places[j] >= 0:
                        at = np.uintp(places[j])
                        slope, g[at], w[at] = g[at], 0, 0
                    numbers[j] -= step * (slope + ridge * numbers[j])
                    reached += abs(numbers[j]) >= enough
                few = 0
                for j in range(changed):
                    # Without a branch: the next one overwrites what does not belong there.
                    at = touched[j]
                    slope, g[at] = g[at], 0
                    number = -step * slope
                    numbers[n], places[n], small[0][few], small[1][few] = number, at, number, at
                    large = (slope != 0) & ((abs(number) >= enough) | (number != number))
                    n, few = n + large, few + 1 - large
                if reached + n - old < tau[run]:
                    for j in range(few):
                        if small[0][j] != 0:
                            numbers[n], places[n] = small[0][j], small[1][j]
                            n += 1
                for j in range(old, n):
                    names[j] = mine[places[j]]
                bits = integers[:n]
                threshold = np.int64(
                    keep_in_segment(bits, most, names[:n], tau[run], threshold, choosing, bits)
                )
                n = _pack(numbers[:n], names, places)
                least = _put(numbers[:n], places, w)
            for j in range(n):
                if places[j] >= 0:
                    w[places[j]] = 0
            for j in range(values.shape[2]):
                columns[run, i, j] = names[j] if j < n else 0
                values[run, i, j] = numbers[j] if j < n else 0


@compiled_within
def _find(names, name, low):
    """The first place from `low` on in increasing `names` that does not lie below `name`."""
    step = 1
    while low + step < len(names) and names[low + step] < name:
        step *= 2
    high = min(low + step + 1, len(names))
    while low < high:
        middle = (low + high) // 2
        if names[middle] < name:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_within
def _put(values, places, w):
    """Write values to their places in `w`, as far as they have one; returns the least magnitude."""
    least = values.dtype.type(np.inf)
    for j in range(len(values)):
        size = abs(values[j])
        least = size if size < least else least
        if places[j] >= 0:
            w[places[j]] = values[j]
    return least


@compiled_within
def _pack(values, names, places):
    """Move what is not zero to the front; returns how many."""
    n = 0
    for j in range(len(values)):
        if values[j] != 0:
            values[n], names[n], places[n] = values[j], names[j], places[j]
            n += 1
    return n


@compiled_within
def _scratch(data, y, b):
    """Memory for `_on_minibatch`."""
    return np.empty(b, data.dtype), np.empty(b, y.dtype), np.empty(b, np.intp), np.zeros(len(y), np.intp)


@compiled_within
def _weighted(data, indices, indptr, drawn, scratch, j):
    """Non-zeros of the distinct sample `j`, their columns, and its weight, for one use."""
    r, _, distinct, times = scratch
    sample = distinct[j]
    entries, weight = slice(indptr[sample], indptr[sample + 1]), times[sample] * r[j] / len(drawn)
    times[sample] = 0
    return data[entries], indices[entries], data.dtype.type(weight)


@compiled_within
def _on_minibatch(data, indices, indptr, y, first, drawn, loss, u, gradient, scratch):
    """Add to `gradient` that of one client, whose columns begin at `first`, on the samples `drawn`."""
    for j in range(_derivatives(data, indices, indptr, y, first, drawn, loss, u, scratch)):
        a, columns, weight = _weighted(data, indices, indptr, drawn, scratch, j)
        for k in range(len(a)):
            gradient[np.uintp(columns[k] - first)] += weight * a[k]


@compiled_within
def _accumulate(data, indices, indptr, y, first, drawn, loss, u, gradient, scratch, touched):
    """As `_on_minibatch`; returns how many columns `touched` then has: those changed from zero."""
    n = 0
    for j in range(_derivatives(data, indices, indptr, y, first, drawn, loss, u, scratch)):
        a, columns, weight = _weighted(data, indices, indptr, drawn, scratch, j)
        for k in range(len(a)):
            place = np.uintp(columns[k] - first)
            before = gradient[place]
            gradient[place] = before + weight * a[k]
            # Without a branch: the next one overwrites a column that was there before.
            touched[n] = place
            n += before == 0
    return n


@compiled_within
def _derivatives(data, indices, indptr, y, first, drawn, loss, u, scratch):
    """Find the derivatives of the loss, at `u`, in the predictions of those `drawn`; returns how many differ.

    `scratch` then has the derivatives and the samples, each once, and how often each sample was drawn.
    """
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
    return n


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
