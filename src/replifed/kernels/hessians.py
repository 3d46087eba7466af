"""Hessians of clients with sparse data, by the entries that can be other than zero.

Where the entries are is laid out by `problems.hessian_pattern`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_as_written
from replifed.kernels.sample_sums import add_up, room_for
from replifed.kernels.selection import places_of_largest

# All but the sign: as whole numbers, doubles without it are in the order of their magnitudes.
_MAGNITUDE = (1 << 63) - 1
# Of an entry's name, which with at most 2^16 columns has 32.
COLUMN_BITS = 16


@compiled_as_written
def hessian_values(h, ridge, n, layout, values):
    """Fill `values` (R, E) with mean_s h_s x_s x_s' over each client's samples, plus the ridge.

    Parameters
    ----------
    h : array, shape (R, m)
        Curvatures of all samples.
    ridge : float
    n : int
        Entries of a diagonal; a client's first ones.
    layout : kernels.sample_sums.Layout
    """
    bounds = layout.bounds
    tables, found = room_for(layout)
    for row in range(len(h)):
        for i in range(len(bounds) - 1):
            _of_client(i, h[row], ridge, n, layout, tables, found)
            for k in range(bounds[i + 1] - bounds[i]):
                values[row, bounds[i] + k] = found[k]


@compiled_as_written
def _of_client(i, h, ridge, n, layout, tables, values):
    """Fill `values` with the Hessian of client i."""
    begin, end = layout.first[i], layout.first[i + 1]
    tables[0][: end - begin] = h[begin:end]
    add_up(i, 1.0 / (end - begin), layout, tables, values)
    for k in range(n):
        values[k] += ridge


@compiled
def learn_largest(
    h, ridge, n, layout, names, counts, places, values, mean, tau, rate, weights,
    counts_after, places_after, values_after, mean_after, distances,
):  # fmt: skip
    """One round of FedNL with top-k: H_i + alpha C(hess f_i - H_i) of all clients.

    All passes over a client's entries follow each other while they are in the cache.

    Parameters
    ----------
    h, ridge, n, layout
        As for `hessian_values`.
    names : int array, shape (E,)
        Row and column of each entry: the row's number with that of the column behind it, in `COLUMN_BITS`.
    counts : int array, shape (R, N)
        How many entries of H_i are listed; the others are zero.
    places, values : arrays, shape (R, N, C)
        Which of the client's entries, and what they are.
    mean : array, shape (R, n, n)
        sum_i p_i H_i.
    tau : int
        k of top-k, of the entries of the lower triangle. Of equal ones the first of the packed triangle are
        taken.
    rate : array, shape (R, N)
        alpha, or zero for devices that are not heard.
    weights : array, shape (N,)
        p_i.
    counts_after, places_after, values_after : arrays, shapes (R, N) and (R, N, C')
        Filled with the new H_i; with zeros where nothing is listed. C' is the most that are listed so far and
        `tau`, or the most entries that a client has if that is less.
    mean_after : array, shape (R, n, n)
        Filled with the new sum_i p_i H_i.
    distances : array, shape (R, N)
        Filled with |hess f_i - H_i|_F.
    """
    bounds = layout.bounds
    tables, room = room_for(layout)
    most = len(room)
    chosen = np.empty(most, np.int64)
    numbers, few, halves = np.empty_like(chosen), np.empty_like(chosen), np.empty(most, np.int16)
    # Where each of a client's entries is listed, counted from 1.
    listed = np.zeros(most, places.dtype)
    mean_after[:] = mean
    for row in range(len(h)):
        for i in range(len(bounds) - 1):
            begin, end, known = bounds[i], bounds[i + 1], counts[row, i]
            _of_client(i, h[row], ridge, n, layout, tables, room)
            difference, place, value = room[: end - begin], places_after[row, i], values_after[row, i]
            place[:known], value[:known] = places[row, i, :known], values[row, i, :known]
            place[known:], value[known:] = 0, 0.0
            for j in range(known):
                k = np.uintp(place[j])
                listed[k] = j + 1
                difference[k] -= value[j]
            twice, once = 0.0, 0.0
            for k in range(len(difference)):
                twice += difference[k] * difference[k]
            for k in range(n):
                once += difference[k] * difference[k]
            distances[row, i] = np.sqrt(2.0 * twice - once)
            count = 0
            if rate[row, i] != 0.0:
                count = places_of_largest(
                    difference.view(np.int64), _MAGNITUDE, names[begin:end], tau, chosen, numbers, halves, few
                )
            now = known
            for k in chosen[:count]:
                step = rate[row, i] * difference[k]
                # Without a branch: listed before, or the next one of the list.
                new = listed[k] == 0
                j = now if new else np.int64(listed[k]) - 1
                now += new
                place[j] = k
                value[j] += step
                (r, c), share = _split(names[begin + k]), weights[i] * step
                mean_after[row, r, c] += share
                if r != c:
                    mean_after[row, c, r] += share
            counts_after[row, i] = now
            for j in range(known):
                listed[place[j]] = 0


@compiled_as_written
def fill_symmetric(values, bounds, names, matrices):
    """Fill `matrices` (R, N, n, n), zeros before, with the entries `values` (R, E) of lower triangles.

    `names` as for `learn_largest`; each client's begin at its place of `bounds` (N + 1,).
    """
    for row in range(len(values)):
        for i in range(len(bounds) - 1):
            H = matrices[row, i]
            for k in range(bounds[i], bounds[i + 1]):
                r, c = _split(names[k])
                H[r, c] = H[c, r] = values[row, k]


@compiled_as_written
def _split(name):
    """Row and column."""
    name = np.uint64(name)
    return name >> np.uint64(COLUMN_BITS), name & np.uint64((1 << COLUMN_BITS) - 1)
