"""Steps of the clients' own models on minibatches, client by client.

A client's models stay in the cache from step to step. Models w are (R, N, D), minibatches (K, B, N, b), and
step sizes `eta` (R, N). `levels` are (tau, classes, most): tau (R,), the number of columns C of a model
(d, C) that each keep tau / C entries, 1 for no columns, and the largest integer, as in
`kernels.selection.keep_largest`. `models` and scratch of shape (R, 1, D) come with views of their memory as
integers. All else is as in `minibatch_gradients` of `linear` and of `softmax`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_as_numpy, compiled_within, linear, softmax
from replifed.kernels.selection import keep_in_segment


def linear_steps(
    X, place, y, shifts, sets, loss, scale, batches, eta, ridge, linear_term, levels, models, moved
):
    """Steps w <- H_tau(w - eta (grad l(w; b) + ridge w + a)) of losses with one output.

    Runs with the same minibatches are taken as a group. `linear_term` a is (R, N, D), or (0, 0, D) for none,
    `ridge` (R,), and tau (0,) for no thresholds.
    """
    move = ridge, linear_term, models, moved, choosing_by(levels, models[1])
    _linear_steps(X, place, y, shifts, sets, loss, scale, batches, eta, move)


@compiled
def _linear_steps(X, place, y, shifts, sets, loss, scale, batches, eta, move):
    (S, N), (K, B, _, b), R = place.shape, batches.shape, len(eta)
    group, only, (w, _), (g, _) = R // max(S, B), np.intp(0), move[2], move[3]
    scratch = linear.minibatch_scratch(X, y, R, b)
    for i in range(N):
        for first in range(0, R, group):
            s, last = first * S // R, first + group
            data = X[place[s, i]], y, shifts, sets, scale[s, i]
            for k in range(K):
                drawn = batches[k, first * B // R, i]
                linear.on_minibatch(data, drawn, loss, i, first, last, w, g, only, scratch)
                for run in range(first, last):
                    _move(run, i, eta[run, i], move)


def softmax_steps(X, place, y, scale, batches, eta, ridge, linear_term, levels, models, moved):
    """`linear_steps` of softmax regression; a model (d, C) is D = d C numbers."""
    by_class = softmax.by_class(models[0], X), softmax.by_class(moved[0], X)
    scratch = softmax.minibatch_scratch(X, y, models[0], batches)
    move = ridge, linear_term, models, moved, choosing_by(levels, models[1])
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


def softmax_pursuit(
    X, place, y, scale, batches, inner, eta, ridge, reuse, radius, levels, models, moved, restricted
):
    """Iterations of stochastic gradient matching pursuit: `FedGradMP.pursue` of softmax regression.

    `batches` select supports; `inner`, (K J, B, N, b), are those of the J further gradients of each
    sub-problem. `reuse` says whether it begins with the gradient that selected the support. `radius` may be
    infinite; `moved` and `restricted` are scratch.
    """
    by_class = softmax.by_class(models[0], X), softmax.by_class(moved[0], X)
    scratch = softmax.minibatch_scratch(X, y, models[0], batches)
    tau, *others = levels
    of_supports, of_models = (choosing_by((level, *others), models[1]) for level in (2 * tau, tau))
    pursuit = ridge, reuse, radius, models, moved, restricted, of_supports, of_models
    _softmax_pursuit(X, place, y, scale, batches, inner, by_class, scratch, eta, pursuit)


@compiled
def _softmax_pursuit(X, place, y, scale, batches, inner, by_class, scratch, eta, pursuit):
    (S, N), (K, B, _, _), R, only, (w, g) = place.shape, batches.shape, len(eta), np.intp(0), by_class
    J = len(inner) // K
    for i in range(N):
        first = only
        while first < R:
            s, last, row = first * S // R, softmax.end_of_group(first, R, max(S, B)), first * B // R
            data = X[place[s, i]], y[s, i], scale[s, i]
            for k in range(K):
                for j in range(J + 1):
                    drawn = batches[k, row, i] if j == 0 else inner[k * J + j - 1, row, i]
                    softmax.on_minibatch(*data, drawn, i, first, last, w, g, only, scratch)
                    for run in range(first, last):
                        _pursue(run, i, eta[run, i], j == 0, j == J, pursuit)
            first = last


def choosing_by(levels, integers):
    """What `_keep` takes of models (R, N, D): each run's level in a column, `most`, and scratch."""
    tau, classes, most = levels
    R, d = len(integers), integers.shape[-1] // classes
    columns = np.empty((classes, d if classes > 1 else 0), integers.dtype)
    # The names are of 32 bits as `operators.hard_threshold` has them, so that no other is compiled.
    scratch = np.empty(d, integers.dtype), np.empty(d + 1, np.int32)
    return (
        tau // classes,
        most,
        np.arange(d, dtype=np.int32),
        columns,
        scratch,
        np.zeros((R, classes), np.int64),
    )


@compiled_within
def _keep(entries, run, choosing, filled):
    """`filled` (D,) = H_tau of `entries`, both integers, column by column; they may be the same."""
    level, most, names, columns, scratch, guess = choosing
    C, d = len(columns), len(names)
    if level[run] >= d:
        for k in range(len(entries)):
            filled[k] = entries[k]
        return
    if C > 1:
        for k in range(d):
            for c in range(C):
                columns[c, k] = entries[k * C + c]
    for c in range(C):
        column, kept = (columns[c], columns[c]) if C > 1 else (entries, filled)
        # From step to step a threshold moves little.
        guess[run, c] = keep_in_segment(column, most, names, level[run], guess[run, c], scratch, kept)
    if C > 1:
        for k in range(d):
            for c in range(C):
                filled[k * C + c] = columns[c, k]


@compiled_within
def _move(run, i, step, move):
    """One step of a client's model; the memory `moved` holds the gradient."""
    ridge, linear_term, models, moved, choosing = move
    w, g, weight = models[0][run, i], moved[0][run, 0], ridge[run]
    if len(linear_term) > 0:
        a = linear_term[run, i]
        for k in range(len(w)):
            g[k] += a[k]
    for k in range(len(w)):
        g[k] = w[k] - step * (g[k] + weight * w[k])
    if len(choosing[0]) > 0:
        _keep(moved[1][run, 0], run, choosing, models[1][run, i])
    else:
        for k in range(len(w)):
            w[k] = g[k]


@compiled_within
def _pursue(run, i, step, first, last, pursuit):
    """What a gradient, which the memory `moved` holds, makes of a client's model in an iteration.

    The `first` of the iteration selects the support, after the `last` the model is pruned. `restricted`
    holds the step on the support, and zeros elsewhere.
    """
    ridge, reuse, radius, models, moved, restricted, of_supports, of_models = pursuit
    w, r, steps = models[0][run, i], moved[0][run, 0], restricted[0][run, 0]
    if ridge > 0:
        _add(r, ridge, w)
    if first:
        _keep(moved[1][run, 0], run, of_supports, restricted[1][run, 0])
        for k in range(len(w)):
            steps[k] = step if steps[k] != 0 or w[k] != 0 else 0
    if reuse or not first:
        _subtract(w, steps, r)
    if last:
        _keep(models[1][run, i], run, of_models, models[1][run, i])
        if np.isfinite(radius):
            _to_ball(w, radius)


@compiled_as_numpy
def _add(r, weight, w):
    for k in range(len(r)):
        r[k] += weight * w[k]


@compiled_as_numpy
def _subtract(w, steps, r):
    for k in range(len(w)):
        w[k] -= steps[k] * r[k]


@compiled_within
def _to_ball(w, radius):
    """Scale a model that is longer than `radius` back to it."""
    squared = w.dtype.type(0)
    for k in range(len(w)):
        squared += w[k] * w[k]
    length = np.sqrt(squared)
    if not length <= radius:  # NaN too: then all of it is
        for k in range(len(w)):
            w[k] *= radius / length
