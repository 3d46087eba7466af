"""Steps w <- H_tau(w - eta (grad l(w; b) + ridge w + a)) on minibatches, client by client.

A client's models stay in the cache from step to step. In both functions, models w and their linear terms a
are (R, N, D), `batches` (K, B, N, b), `eta` (R, N), and `ridge` (R,). `tau` is (R,), or (0,) for no
thresholds, and `linear` may be (0, 0, D) for none. `models` and `moved`, scratch of shape (R, 1, D), come
with views of their memory as integers, and with the largest integer, `most`, as in
`kernels.selection.keep_largest`. All else is as in `minibatch_gradients` of `linear` and of `softmax`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, linear, softmax
from replifed.kernels.selection import keep_in_segment


@compiled
def linear_steps(
    X, place, y, shifts, sets, loss, scale, batches, eta, ridge, linear_term, tau, most, models, moved
):
    """Steps of losses with one output, of runs with the same minibatches together."""
    (S, N), (K, B, _, b), R = place.shape, batches.shape, len(eta)
    together, only = R // max(S, B), np.intp(0)
    scratch, choosing = linear.minibatch_scratch(X, y, R, b), _choosing(moved[1])
    for i in range(N):
        for first in range(0, R, together):
            s, last = first * S // R, first + together
            data = X[place[s, i]], y, shifts, sets, scale[s, i]
            for k in range(K):
                drawn = batches[k, first * B // R, i]
                linear.on_minibatch(data, drawn, loss, i, first, last, models[0], moved[0], only, scratch)
                for run in range(first, last):
                    _move(run, i, eta, ridge, linear_term, tau, most, models, moved, choosing)


@compiled
def softmax_steps(X, place, y, scale, batches, eta, ridge, linear_term, tau, most, models, moved):
    """Steps of softmax regression; a model (d, C) is D = d C numbers."""
    (S, N), (K, B, _, b), R, only = place.shape, batches.shape, len(eta), np.intp(0)
    C = models[0].shape[-1] // X.shape[-1]
    scratch, choosing = softmax.minibatch_scratch(X, y, C, b), _choosing(moved[1])
    for i in range(N):
        first = 0
        while first < R:
            s, last = first * S // R, softmax.end_of_group(first, R, max(S, B))
            for k in range(K):
                drawn = batches[k, first * B // R, i]
                softmax.on_minibatch(
                    X[place[s, i]],
                    y[s, i],
                    scale[s, i],
                    drawn,
                    i,
                    first,
                    last,
                    models[0],
                    moved[0],
                    only,
                    scratch,
                )
                for run in range(first, last):
                    _move(run, i, eta, ridge, linear_term, tau, most, models, moved, choosing)
            first = last


@compiled
def _choosing(integers):
    """Names of coordinates, by which ties are broken, and scratch to threshold a model."""
    D = integers.shape[-1]
    names = np.empty(D, np.int32)  # as `operators.hard_threshold` has them, so that no other is compiled
    for k in range(D):
        names[k] = k
    return names, (np.empty(D, integers.dtype), np.empty(D + 1, np.int32))


@compiled
def _move(run, i, eta, ridge, linear_term, tau, most, models, moved, choosing):
    """One step of a client's model; `moved` holds the gradient."""
    w, g, step, weight = models[0][run, i], moved[0][run, 0], eta[run, i], ridge[run]
    if len(linear_term) > 0:
        a = linear_term[run, i]
        for k in range(len(w)):
            g[k] += a[k]
    for k in range(len(w)):
        g[k] = w[k] - step * (g[k] + weight * w[k])
    if len(tau) > 0 and tau[run] < len(w):
        names, scratch = choosing
        keep_in_segment(moved[1][run, 0], most, names, tau[run], scratch, models[1][run, i])
    else:
        for k in range(len(w)):
            w[k] = g[k]
