"""Hessians of clients with sparse data, by the entries that can be other than zero.

Where the entries are is laid out by `problems.hessian_pattern`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_as_written
from replifed.kernels.gathered import sum_gathered
from replifed.kernels.sample_sums import add_up, made_of, room_for, take
from replifed.kernels.selection import places_of_largest
from replifed.kernels.vectors import AVX512, DOUBLES, as_whole, everywhere, lane_sum, read, write, write_marks

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
            own = take(i, h[row], layout, tables)
            add_up(i, 1.0 / len(own), layout, tables, found)
            for k in range(bounds[i + 1] - bounds[i]):
                values[row, bounds[i] + k] = found[k]
            for k in range(n):
                values[row, bounds[i] + k] += ridge


@compiled
def learn_largest(
    h, ridge, n, layout, names, counts, places, values, tau, rate, weights,
    counts_after, places_after, values_after, mean, distances,
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
    mean : array, shape (R, n, n)
        sum_i p_i H_i, which becomes that of the new H_i.
    distances : array, shape (R, N)
        Filled with |hess f_i - H_i|_F.
    """
    bounds = layout.bounds
    tables, difference = room_for(layout)
    most = len(difference)
    marks, chosen = np.empty(most // 8 + 2, np.uint8), np.empty(most + 16, np.int32)
    numbers, few, halves = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int16)
    # The client's H_i, and where each of its entries is listed, counted from 1.
    H, listed = np.zeros(most), np.zeros(most, places.dtype)
    ridges = np.zeros(n + DOUBLES)
    ridges[:n] = ridge
    for row in range(len(h)):
        bound = np.int64(_MAGNITUDE)
        for i in range(len(bounds) - 1):
            begin, end, known = bounds[i], bounds[i + 1], counts[row, i]
            place, value = places_after[row, i], values_after[row, i]
            place[:known], value[:known] = places[row, i, :known], values[row, i, :known]
            place[known:], value[known:] = 0, 0.0
            for j in range(known):
                k = np.uintp(place[j])
                listed[k] = j + 1
                H[k] = value[j]
            twice, once = _subtract(i, h[row], ridges, layout, tables, H, bound, difference, marks), 0.0
            for k in range(n):
                once += difference[k] * difference[k]
            distances[row, i] = np.sqrt(2.0 * twice - once)
            count, entries = 0, difference[: end - begin]
            if rate[row, i] != 0.0:
                count, bound = places_of_largest(
                    entries.view(np.int64), _MAGNITUDE, names[begin:end], tau, bound, marks,
                    chosen, numbers, halves, few,
                )  # fmt: skip
            now, named = known, names[begin:end]
            for each in chosen[:count]:
                k = np.uintp(each)
                step = rate[row, i] * entries[k]
                # Without a branch: listed before, or the next one of the list.
                new = listed[k] == 0
                j = np.uintp(now if new else np.int64(listed[k]) - 1)
                now += new
                place[j] = k
                value[j] += step
                (r, c), share = _split(named[k]), weights[i] * step
                mean[row, r, c] += share
                if r != c:
                    mean[row, c, r] += share
            counts_after[row, i] = now
            for j in range(known):
                k = np.uintp(place[j])
                listed[k], H[k] = 0, 0.0


@compiled_as_written
def _subtract(i, h, ridges, layout, tables, H, bound, difference, marks):
    """Fill `difference` with hess f_i - H_i, and return the sum of its squares.

    Parameters
    ----------
    i, layout, tables, difference
        As for `add_up`.
    h : array, shape (m,)
    ridges : array, shape (n + DOUBLES,)
        What is added to the first entries; zeros behind the diagonal's.
    H : array, shape as `difference`
        The entries of H_i; zeros behind them.
    bound : int
        A double's bits.
    marks : byte array
        With `AVX512` filled with a bit for each entry, set where it exceeds the bound in magnitude.
    """
    own = take(i, h, layout, tables)
    table, terms, products, lengths = made_of(i, layout, tables)
    scale, low, magnitude = everywhere(1.0 / len(own)), everywhere(bound), everywhere(_MAGNITUDE)
    squares, at, n = everywhere(0.0), 0, len(ridges) - DOUBLES
    for group in range(len(lengths)):
        length, k = np.int64(lengths[group]), DOUBLES * group
        entries = sum_gathered(table, terms, products, at, length) * scale
        if k < n:
            entries = entries + read(ridges, k)
        entries = entries - read(H, k)
        write(entries, difference, k)
        squares = squares + entries * entries
        if AVX512:
            write_marks((as_whole(entries) & magnitude) > low, marks, k)
        at += DOUBLES * length
    return lane_sum(squares)


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
