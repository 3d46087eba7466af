"""Steps w <- H_tau(w - eta (grad l(w; b) + ridge w + a)) on minibatches, client by client.

A client's models stay in the cache from step to step. In both functions, models w and their linear terms a
are (R, N, D), `batches` (K, B, N, b), `eta` (R, N), and `ridge` (R,). `tau` is (R,), or (0,) for no
thresholds, and `linear` may be (0, 0, D) for none. `models` and `moved`, scratch of shape (R, 1, D), come
with views of their memory as integers, and with the largest integer, `most`, as in
`kernels.selection.keep_largest`. All else is as in `minibatch_gradients` of `linear` and of `softmax`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within, linear, softmax
from replifed.kernels.selection import keep_in_segment


def linear_steps(
    X, place, y, shifts, sets, loss, scale, batches, eta, ridge, linear_term, tau, most, models, moved
):
    """Steps of losses with one output, of runs with the same minibatches together."""
    move = ridge, linear_term, tau, most, models, moved, _choosing(moved[1], tau)
    _linear_steps(X, place, y, shifts, sets, loss, scale, batches, eta, move)


@compiled
def _linear_steps(X, place, y, shifts, sets, loss, scale, batches, eta, move):
    (S, N), (K, B, _, b), R = place.shape, batches.shape, len(eta)
    together, only, (w, _), (g, _) = R // max(S, B), np.intp(0), move[-3], move[-2]
    scratch = linear.minibatch_scratch(X, y, R, b)
    for i in range(N):
        for first in range(0, R, together):
            s, last = first * S // R, first + together
            data = X[place[s, i]], y, shifts, sets, scale[s, i]
            for k in range(K):
                drawn = batches[k, first * B // R, i]
                linear.on_minibatch(data, drawn, loss, i, first, last, w, g, only, scratch)
                for run in range(first, last):
                    _move(run, i, eta[run, i], move)


def softmax_steps(X, place, y, scale, batches, eta, ridge, linear_term, tau, most, models, moved):
    """Steps of softmax regression; a model (d, C) is D = d C numbers."""
    by_class = softmax.by_class(models[0], X), softmax.by_class(moved[0], X)
    move = ridge, linear_term, tau, most, models, moved, _choosing(moved[1], tau)
    scratch = softmax.minibatch_scratch(X, y, models[0], batches)
    _softmax_steps(X, place, y, scale, batches, by_class, scratch, eta, move)


@compiled
def _softmax_steps(X, place, y, scale, batches, by_class, scratch, eta, move):
    (S, N), (K, B, _, _), R, only, (w, g) = place.shape, batches.shape, len(eta), np.intp(0), by_class
    for i in range(N):
        first = only
        while first < R:
            s, last = first * S // R, softmax.end_of_group(first, R, max(S, B))
            data = X[place[s, i]], y[s, i], scale[s, i]
            for k in range(K):
                drawn = batches[k, first * B // R, i]
                softmax.on_minibatch(*data, drawn, i, first, last, w, g, only, scratch)
                for run in range(first, last):
                    _move(run, i, eta[run, i], move)
            first = last


def _choosing(integers, tau):
    """Names of coordinates, by which ties are broken, scratch to threshold a model, and runs' thresholds."""
    D = integers.shape[-1]
    # The names are of 32 bits as `operators.hard_threshold` has them, so that no other is compiled.
    scratch = np.empty(D, integers.dtype), np.empty(D + 1, np.int32)
    return np.arange(D, dtype=np.int32), scratch, np.zeros_like(tau)


@compiled_within
def _move(run, i, step, move):
    """One step of a client's model; the memory `moved` holds the gradient."""
    ridge, linear_term, tau, most, models, moved, choosing = move
    w, g, weight = models[0][run, i], moved[0][run, 0], ridge[run]
    if len(linear_term) > 0:
        a = linear_term[run, i]
        for k in range(len(w)):
            g[k] += a[k]
    for k in range(len(w)):
        g[k] = w[k] - step * (g[k] + weight * w[k])
    if len(tau) > 0 and tau[run] < len(w):
        names, scratch, guess = choosing
        # From step to step the threshold moves little.
        guess[run] = keep_in_segment(
            moved[1][run, 0], most, names, tau[run], guess[run], scratch, models[1][run, i]
        )
    else:
        for k in range(len(w)):
            w[k] = g[k]
