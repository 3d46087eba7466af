"""Gradients of linear models with one output, every client at a model of its own; products and draws."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.losses import falling

# Indices of the losses in `problems.losses.KERNELS`.
LEAST_SQUARES, LOGISTIC, SOFTMAX = 0, 1, 2
# So many samples stay in the cache between the two products with them.
_BLOCK = 16
# Bytes of samples that leave space for models in the innermost cache.
_INNERMOST = 1 << 14


@compiled
def minibatch_gradients(X, place, y, shifts, sets, scale, batch, loss, models, g):
    """Fill `g` with the gradients on the minibatches, `scale` (S, N) times the sum over the samples drawn.

    Features X are (P, m, d), of which client i of set s has those with the number place[s, i]. Of targets `y`
    (L, N, m) and `shifts` (L or 0, N, d), which are added to all samples of a client, `sets` (R,) names each
    run's. `batch` is (B, N, b), `loss` LEAST_SQUARES or LOGISTIC, `models` and `g` are (R, N, d). S and B
    divide R; the first R / S runs share the first data set, and so on.
    """
    (S, N), R, B = place.shape, len(models), len(batch)
    group = R // max(S, B)  # runs that share their data and their minibatches
    scratch = minibatch_scratch(X, y, R, batch.shape[-1])
    for i in range(N):
        for first in range(0, R, group):
            s, last = first * S // R, first + group
            drawn = batch[first * B // R, i]
            data = X[place[s, i]], y, shifts, sets, scale[s, i]
            on_minibatch(data, drawn, loss, i, first, last, models, g, i, scratch)


@compiled_within
def minibatch_scratch(X, y, runs, b):
    """Memory for `on_minibatch`."""
    counted = np.zeros(X.shape[1], np.intp), np.empty(b, np.intp), np.empty(b, np.float64)
    return np.empty((runs, b), X.dtype), np.empty(b, y.dtype), np.arange(runs), counted


@compiled_within
def on_minibatch(data, drawn, loss, i, first, last, models, g, h, scratch):
    """Fill g[run, h] with client i's gradient for runs from `first` to `last`, which share the samples."""
    (X, y, shifts, sets, scale), (r, targets, runs, (times, distinct, share)) = data, scratch
    n = weigh_drawn(drawn, scale, times, distinct, share)
    chosen = distinct[:n]
    _predict_runs(X, chosen, models, runs[first:last], i, r)
    for run in range(first, last):
        labels = y[sets[run], i]
        for j in range(n):
            targets[j] = labels[chosen[j]]
        offset = _offset(shifts, sets[run], i, models[run, i])
        for j in range(n):
            r[run, j] += offset
        derivatives(r[run, :n], targets, loss)
        for j in range(n):
            r[run, j] *= share[j]
        _begin_with_shift(shifts, sets[run], i, r[run, :n], g[run, h])
    _accumulate_rows(X, chosen, r, first, last, h, g)


@compiled
def gradients(X, place, y, shifts, sets, weights, loss, models, g):
    """Fill `g` with the gradients on all samples, weighted (S, N, m); else as `minibatch_gradients`.

    Each sample comes from memory once.
    """
    (S, N), m = place.shape, X.shape[1]
    R = len(models) // S
    r, everyone, all_runs = np.empty((len(models), _BLOCK), X.dtype), np.arange(m), np.arange(len(models))
    offset, total = np.empty(len(models), X.dtype), np.empty(len(models), X.dtype)
    for s in range(S):
        runs = all_runs[s * R : (s + 1) * R]
        for i in range(N):
            for run in runs:
                offset[run], total[run] = _offset(shifts, sets[run], i, models[run, i]), 0
                g[run, i, :] = 0
            for begin in range(0, m, _BLOCK):
                drawn = everyone[begin : begin + _BLOCK]
                n = len(drawn)
                _predict_runs(X[place[s, i]], drawn, models, runs, i, r)
                for run in runs:
                    for j in range(n):
                        r[run, j] += offset[run]
                    derivatives(r[run, :n], y[sets[run], i, begin : begin + n], loss)
                    for j in range(n):
                        r[run, j] *= weights[s, i, drawn[j]]
                        total[run] += r[run, j]
                _accumulate_rows(X[place[s, i]], drawn, r, s * R, (s + 1) * R, i, g)
            if len(shifts) > 0:
                for run in runs:
                    shift, gradient = shifts[sets[run], i], g[run, i]
                    for k in range(len(gradient)):
                        gradient[k] += total[run] * shift[k]


@compiled_within
def copy(source, target):
    """target = source; as an assignment it would take two seconds to compile, for what it says of shapes."""
    for j in range(len(source)):
        target[j] = source[j]


@compiled_within
def dot(a, b):
    """Sum of a_j b_j for arrays of one length."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled_within
def count_drawn(drawn, times, distinct):
    """Fill `distinct` with the samples `drawn` (b,), each once and in the order of their first draws.

    Returns how many they are. `times` (m,) is zero for these samples, and then how often each was drawn.
    """
    n = 0
    for j in drawn:
        if times[j] == 0:
            distinct[n] = j
            n += 1
        times[j] += 1
    return n


@compiled_within
def weigh_drawn(drawn, scale, times, distinct, share):
    """As `count_drawn`, with `times` zeros again at the end and `share` (b,) what each sample weighs.

    That is `scale` as often as the sample was drawn.
    """
    n = count_drawn(drawn, times, distinct)
    for j in range(n):
        share[j], times[distinct[j]] = times[distinct[j]] * scale, 0
    return n


@compiled_within
def _offset(shifts, number, i, u):
    """What the shift of all samples adds to their predictions."""
    total = shifts.dtype.type(0)
    if len(shifts) > 0:
        shift = shifts[number, i]
        for k in range(len(u)):
            total += shift[k] * u[k]
    return total


@compiled_within
def _begin_with_shift(shifts, number, i, r, g):
    """g = the sum of `r` times the shift of all samples."""
    if len(shifts) == 0:
        g[:] = 0
        return
    shift, total = shifts[number, i], shifts.dtype.type(0)
    for j in range(len(r)):
        total += r[j]
    for k in range(len(g)):
        g[k] = total * shift[k]


@compiled_within
def predict(A, chosen, u, z):
    """z = A[chosen] u, four samples at a time, so that `u` is read once for them."""
    zero = A.dtype.type(0)
    fours = len(chosen) // 4 * 4
    for j in range(0, fours, 4):
        a, b, c, d = A[chosen[j]], A[chosen[j + 1]], A[chosen[j + 2]], A[chosen[j + 3]]
        p, q, r, s = zero, zero, zero, zero
        for k in range(len(u)):
            p += a[k] * u[k]
            q += b[k] * u[k]
            r += c[k] * u[k]
            s += d[k] * u[k]
        z[j], z[j + 1], z[j + 2], z[j + 3] = p, q, r, s
    for j in range(fours, len(chosen)):
        a, p = A[chosen[j]], zero
        for k in range(len(u)):
            p += a[k] * u[k]
        z[j] = p


@compiled_within
def _predict_runs(A, chosen, models, runs, i, z):
    """z[run] = A[chosen] models[run, i] for some runs.

    Two runs at a time share what is read of four samples, which stay in the innermost cache for all runs.
    """
    if len(runs) == 1:
        predict(A, chosen, models[runs[0], i], z[runs[0]])
        return
    zero, d = A.dtype.type(0), A.shape[1]
    fours, twos = len(chosen) // 4 * 4, len(runs) // 2 * 2
    for j in range(0, fours, 4):
        samples = chosen[j : j + 4]
        a, b, c, e = A[samples[0]], A[samples[1]], A[samples[2]], A[samples[3]]
        for both in range(0, twos, 2):
            run, other = runs[both], runs[both + 1]
            u, v = models[run, i], models[other, i]
            f, g, h, o = zero, zero, zero, zero
            p, q, r, s = zero, zero, zero, zero
            for k in range(d):
                f += a[k] * u[k]
                g += b[k] * u[k]
                h += c[k] * u[k]
                o += e[k] * u[k]
                p += a[k] * v[k]
                q += b[k] * v[k]
                r += c[k] * v[k]
                s += e[k] * v[k]
            z[run, j], z[run, j + 1], z[run, j + 2], z[run, j + 3] = f, g, h, o
            z[other, j], z[other, j + 1], z[other, j + 2], z[other, j + 3] = p, q, r, s
        for run in runs[twos:]:
            predict(A, samples, models[run, i], z[run, j : j + 4])
    for run in runs:
        predict(A, chosen[fours:], models[run, i], z[run, fours:])


@compiled_within
def _accumulate_rows(A, chosen, r, first, end, i, g):
    """g[run, i] += A[chosen]' r[run] for the runs from `first` to `end`, as `accumulate` does it.

    Eight samples at a time serve all runs, so many columns of them that they stay in the innermost cache.
    """
    if end - first == 1:
        accumulate(A, chosen, r[first], g[first, i])
        return
    d, eights = A.shape[1], len(chosen) // 8 * 8
    width = _INNERMOST // (8 * A.itemsize)
    for j in range(0, eights, 8):
        for begin in range(0, d, width):
            k = slice(begin, min(begin + width, d))
            a, b, c, e = A[chosen[j], k], A[chosen[j + 1], k], A[chosen[j + 2], k], A[chosen[j + 3], k]
            f, h, o, p = A[chosen[j + 4], k], A[chosen[j + 5], k], A[chosen[j + 6], k], A[chosen[j + 7], k]
            for run in range(first, end):
                _add_eight(a, b, c, e, f, h, o, p, r[run, j : j + 8], g[run, i, k])
    for run in range(first, end):
        accumulate(A, chosen[eights:], r[run, eights:], g[run, i])


@compiled_within
def combine(A, chosen, r, g):
    """g = A[chosen]' r."""
    for k in range(len(g)):
        g[k] = 0
    accumulate(A, chosen, r, g)


@compiled_within
def accumulate(A, chosen, r, g):
    """g += A[chosen]' r, eight samples at a time, so that `g` is read and written once for them."""
    eights, fours = len(chosen) // 8 * 8, len(chosen) // 4 * 4
    for j in range(0, eights, 8):
        a, b, c, d = A[chosen[j]], A[chosen[j + 1]], A[chosen[j + 2]], A[chosen[j + 3]]
        e, f, h, i = A[chosen[j + 4]], A[chosen[j + 5]], A[chosen[j + 6]], A[chosen[j + 7]]
        p, q, s, t = r[j], r[j + 1], r[j + 2], r[j + 3]
        u, v, w, x = r[j + 4], r[j + 5], r[j + 6], r[j + 7]
        # Not by `_add_eight`, whose call takes as long as the sums of short rows.
        for k in range(len(g)):
            g[k] += (p * a[k] + q * b[k] + s * c[k] + t * d[k]) + (u * e[k] + v * f[k] + w * h[k] + x * i[k])
    for j in range(eights, fours, 4):
        a, b, c, d = A[chosen[j]], A[chosen[j + 1]], A[chosen[j + 2]], A[chosen[j + 3]]
        p, q, s, t = r[j], r[j + 1], r[j + 2], r[j + 3]
        for k in range(len(g)):
            g[k] += p * a[k] + q * b[k] + s * c[k] + t * d[k]
    for j in range(fours, len(chosen)):
        a, p = A[chosen[j]], r[j]
        for k in range(len(g)):
            g[k] += p * a[k]


@compiled_within
def _add_eight(a, b, c, d, e, f, h, i, r, g):
    """g += r_1 a + ... + r_8 i."""
    p, q, s, t = r[0], r[1], r[2], r[3]
    u, v, w, x = r[4], r[5], r[6], r[7]
    for k in range(len(g)):
        g[k] += (p * a[k] + q * b[k] + s * c[k] + t * d[k]) + (u * e[k] + v * f[k] + w * h[k] + x * i[k])


@compiled_within
def derivatives(z, y, loss):
    """Replace predictions `z` (b,) by the derivatives of the loss in them."""
    if loss == LEAST_SQUARES:
        for j in range(len(z)):
            z[j] -= y[j]
    else:
        for j in range(len(z)):
            label = z.dtype.type(y[j])
            z[j] = falling(label * z[j], -label)


@compiled_within
def weighted_derivatives(z, target, weight, loss):
    """Replace predictions `z` (b,) of one sample by `weight` times the derivatives of the loss in them."""
    label = z.dtype.type(target)
    if loss == LEAST_SQUARES:
        for j in range(len(z)):
            z[j] = (z[j] - label) * weight
    else:
        for j in range(len(z)):
            z[j] = falling(label * z[j], -label * weight)
