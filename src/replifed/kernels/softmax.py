"""Gradients of softmax regression on minibatches, every client at a model of its own."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import weigh_drawn
from replifed.kernels.losses import softmax_derivatives
from replifed.kernels.tiles import TILE_BYTES, copy_columns, products, transposed_products
from replifed.memory import aligned_empty

# Runs whose classes stand side by side: of ten classes those of three fill two tiles but for two columns.
# More runs would leave the cache.
_AT_ONCE = 3


def minibatch_gradients(X, place, y, scale, batch, models, g):
    """Fill `g` with the gradients on the minibatches, `scale` times the sum over the samples drawn.

    A sample drawn twice counts twice and is read once. X is (P, m, d), of which client i of set s has those
    with the number place[s, i]; the classes `y` are (S, N, m), `scale` (S, N), `batch` (B, N, b), and both
    `models` and `g` (R, N, D), where D = d C. S and B divide R; the first R / S runs share the first data
    set, and so on.
    """
    scratch = minibatch_scratch(X, y, models, batch)
    _gradients(X, place, y, scale, batch, by_class(models, X), by_class(g, X), scratch)


def by_class(models, X):
    """View (R, N, d, C) of `models` (R, N, D)."""
    return models.reshape(*models.shape[:2], X.shape[-1], -1, copy=False)


def minibatch_scratch(X, y, models, batch):
    """Memory for `on_minibatch`, taken here and not in compiled code, which would take long to compile."""
    (_, m, d), b = X.shape, batch.shape[-1]
    width = TILE_BYTES // X.itemsize
    tiles = -(-_AT_ONCE * (models.shape[-1] // d) // width)
    # Columns beyond the classes stay at zero.
    (u, product), z = aligned_empty((2, tiles, d, width), X.dtype), aligned_empty((b, tiles * width), X.dtype)
    u[:] = 0
    counted = np.zeros(m, np.intp), np.empty(b, np.intp), np.empty(b)
    used = np.empty(d, X.dtype), np.empty(d, np.intp), np.arange(d)
    return u, z, product, np.empty((1, b), y.dtype), counted, used


@compiled
def _gradients(X, place, y, scale, batch, models, g, scratch):
    (S, N), R, B = place.shape, len(models), len(batch)
    for i in range(N):
        first = np.intp(0)  # not a constant, for which all would be compiled once more
        while first < R:
            s, drawn, last = first * S // R, batch[first * B // R, i], end_of_group(first, R, max(S, B))
            on_minibatch(X[place[s, i]], y[s, i], scale[s, i], drawn, i, first, last, models, g, i, scratch)
            first = last


@compiled_within
def end_of_group(first, R, groups):
    """Where the runs end that share data and minibatches with run `first` and are computed beside it."""
    group = R // groups
    return min(first + _AT_ONCE, (first // group + 1) * group)


@compiled_within
def on_minibatch(X, y, scale, drawn, i, first, last, models, g, h, scratch):
    """Fill g[run, h] with client i's gradient for runs from `first` to `last`, which share the samples.

    Features that are zero in all samples drawn are left out of the products: they add nothing.
    """
    u, z, product, classes, (times, distinct, share), (total, names, rows) = scratch
    C, width = models.shape[-1], u.shape[-1]
    n = weigh_drawn(drawn, scale, times, distinct, share)
    chosen = distinct[:n]
    used = names[: _find_used(X, chosen, total, names)]
    rows = rows[: len(used)]
    for j in range(n):
        classes[0, j] = y[chosen[j]]
    for run in range(first, last):
        _to_tiles(models[run, i], used, rows, (run - first) * C, u)
    tiles = -(-(last - first) * C // width)
    for tile in range(tiles):
        products(X, chosen, used, u[tile, : len(used), :width], z[:n, tile * width : (tile + 1) * width])
    for run in range(first, last):
        r = z[:n, (run - first) * C : (run - first + 1) * C]
        p = r[np.newaxis]
        softmax_derivatives(p, classes[:, :n], p)
        for j in range(n):
            for c in range(C):
                r[j, c] *= share[j]
    for tile in range(tiles):
        transposed_products(
            X, chosen, used, z[:n, tile * width : (tile + 1) * width], product[tile, : len(used), :width]
        )
    for run in range(first, last):
        _from_tiles(product, rows, (run - first) * C, used, g[run, h])


@compiled_within
def _find_used(X, chosen, total, names):
    """Fill `names` with the features that some of the samples `chosen` have; returns how many they are."""
    total[:] = 0
    fours = len(chosen) // 4 * 4
    for j in range(0, fours, 4):
        a, b, c, d = X[chosen[j]], X[chosen[j + 1]], X[chosen[j + 2]], X[chosen[j + 3]]
        for k in range(len(total)):
            total[k] += abs(a[k]) + abs(b[k]) + abs(c[k]) + abs(d[k])
    for j in chosen[fours:]:
        a = X[j]
        for k in range(len(total)):
            total[k] += abs(a[k])
    n = 0
    for k in range(len(total)):
        # Without a branch: the next one overwrites what is not used.
        names[n] = k
        n += total[k] != 0
    return n


@compiled_within
def _to_tiles(model, used, rows, q, u):
    """Copy the rows `used` of a model (d, C) to the first, `rows`, of the tiles `u`, columns from `q` on."""
    C, width, c = model.shape[1], u.shape[-1], np.intp(0)  # not a constant, as in `_gradients`
    while c < C:
        tile, lane = (q + c) // width, (q + c) % width
        n = min(C - c, width - lane)
        copy_columns(model, used, c, u[tile], rows, lane, n)
        c += n


@compiled_within
def _from_tiles(product, rows, q, used, g):
    """Copy columns from `q` on of tiles back to the rows `used` of a gradient (d, C), zero elsewhere."""
    C, width, c = g.shape[1], product.shape[-1], np.intp(0)
    if len(used) < len(g):
        g[:] = 0
    while c < C:
        tile, lane = (q + c) // width, (q + c) % width
        n = min(C - c, width - lane)
        copy_columns(product[tile], rows, lane, g, used, c, n)
        c += n
