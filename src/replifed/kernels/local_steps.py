"""Local gradient steps of every client, with its data and models in the cache from step to step."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, softmax
from replifed.kernels.linear import minibatch_room, on_all_samples, on_minibatch, sample_room
from replifed.kernels.selection import keep_of_stretch


@compiled
def mean_after_minibatches(
    X, columns, y, shifts, sets, scale, loss, batches, counts, step, tau, l2, most, x, p, u, g, mean
):
    """Add to `mean` what the server averages when all clients have taken their steps u <- H_tau(u - gamma g).

    Parameters
    ----------
    X, columns, y, shifts, sets, scale, loss
        As in `kernels.linear.minibatch_gradients`.
    batches : int array, shape (K, B, N, b)
        Of each local step; where B = R, those of rows that do not take it are not read.
    counts : int array, shape (K,)
        How many rows, from the first on, take each local step; never more than the one before, and all R
        where S > 1.
    step : array, shape (R,)
        gamma.
    tau : int array, shape (R,), or shape (0,) for no thresholds
    l2 : float
        Weight of |u|^2 / 2.
    most : int
        As in `kernels.selection.keep_largest`.
    x : array, shape (R, d)
        Where all clients begin.
    p : array, shape (S, N)
        Weights of the clients.
    u, g : pairs of arrays, shape (R, 1, d)
        Room: floating-point numbers, and the same memory as whole numbers.
    mean : array, shape (R, d)
        sum_i p_i u_i is added to it.
    """
    S, N = X.shape[:2]
    K, B, _, b = batches.shape
    R = len(x)
    together, alone = R // max(S, B), _only(u[0])
    data = X, columns, y, shifts, sets, scale
    room, choosing = minibatch_room(X, y, R, b), _selection_room(g[1])
    for i in range(N):
        for first in range(0, R, together):
            s, end = first * S // R, first + together
            _begin(x, first, end, u[0])
            for k in range(K):
                drawn, last = batches[k, first * B // R, i], min(end, counts[k])
                if first < last:
                    on_minibatch(data, loss, s, i, drawn, first, last, u[0], g[0], alone, room)
                    _step(step, tau, l2, most, first, last, u, g, choosing)
            _add(p[s, i], first, end, u[0], mean)


@compiled
def mean_after_full_steps(X, y, shifts, sets, weights, loss, counts, step, tau, l2, most, x, p, u, g, mean):
    """As `mean_after_minibatches` with all samples, of `weights` (S, N, m), in each step."""
    S, N = X.shape[:2]
    together, alone = len(x) // S, _only(u[0])
    data = X, y, shifts, sets, weights
    room, choosing = sample_room(X, len(x)), _selection_room(g[1])
    for i in range(N):
        for s in range(S):
            first, end = s * together, (s + 1) * together
            _begin(x, first, end, u[0])
            for count in counts:
                last = min(end, count)
                on_all_samples(data, loss, s, i, first, last, u[0], g[0], alone, room)
                _step(step, tau, l2, most, first, last, u, g, choosing)
            _add(p[s, i], first, end, u[0], mean)


@compiled
def mean_after_softmax_minibatches(X, y, scale, batches, counts, step, tau, l2, most, x, p, u, g, mean):
    """As `mean_after_minibatches` for softmax regression; a model (d, C) is a row of D = d C numbers."""
    S, N, _, d = X.shape
    K, B, _, b = batches.shape
    R, C = len(x), x.shape[1] // d
    room, choosing = softmax.minibatch_room(X, y, C, b), _selection_room(g[1])
    for i in range(N):
        for row in range(R):
            s = row * S // R
            _begin(x, row, row + 1, u[0])
            for k in range(K):
                if row < counts[k]:
                    model, gradient = u[0][row, 0].reshape(d, C), g[0][row, 0].reshape(d, C)
                    drawn = batches[k, row * B // R, i]
                    softmax.on_minibatch(X[s, i], y[s, i], scale[s, i], drawn, model, gradient, room)
                    _step(step, tau, l2, most, row, row + 1, u, g, choosing)
            _add(p[s, i], row, row + 1, u[0], mean)


@compiled
def _selection_room(bits):
    """Room in which to threshold a model (d,)."""
    d = bits.shape[2]
    return np.arange(d), np.empty(d + 1, bits.dtype), np.empty(d, np.int16), np.empty(d, bits.dtype)


@compiled
def _only(models):
    """The place of the only client in room (R, 1, d); for a constant, gradients would be compiled again."""
    return models.shape[1] - 1


@compiled
def _begin(x, first, end, u):
    """Hand a client the server's models."""
    for row in range(first, end):
        _copy(x[row], u[row, 0])


@compiled
def _copy(x, u):
    """u = x; numpy's way of writing it takes seconds to compile."""
    for k in range(len(x)):
        u[k] = x[k]


@compiled
def _step(step, tau, l2, most, first, last, u, g, choosing):
    """u <- H_tau(u - gamma g) for the rows from `first` to `last`."""
    names, numbers, halves, few = choosing
    for row in range(first, last):
        old, moved, gamma = u[0][row, 0], g[0][row, 0], step[row]
        for k in range(len(old)):
            moved[k] = old[k] - gamma * (moved[k] + l2 * old[k])
        if len(tau) > 0 and tau[row] < len(old):
            keep_of_stretch(g[1][row, 0], most, names, tau[row], numbers, halves, few, u[1][row, 0])
        else:
            _copy(moved, old)


@compiled
def _add(p, first, end, u, mean):
    """mean += p u."""
    for row in range(first, end):
        total, own = mean[row], u[row, 0]
        for k in range(len(total)):
            total[k] += p * own[k]
