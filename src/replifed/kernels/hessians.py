"""Hessians of clients with sparse data, by the entries that can be other than zero.

Where the entries are, and which samples make them up, is laid out by `problems.hessian_pattern`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_as_written
from replifed.kernels.selection import places_of_largest
from replifed.kernels.stretches import longest
from replifed.kernels.vectors import DOUBLES, sum_gathered

# All but the sign: as whole numbers, doubles without it are in the order of their magnitudes.
_MAGNITUDE = (1 << 63) - 1


@compiled_as_written
def _sums(u, ridge, samples, products, lengths, diagonal, values):
    """Fill `values` with the entries of one client's Hessian.

    Parameters
    ----------
    u : array, shape (m + 1,)
        Its samples' curvatures, and a zero for what is not in use.
    ridge : float
    samples : int array, shape (q * DOUBLES,)
        The samples that both columns of an entry occur in, of as many entries as a vector has doubles: the
        first sample of each of them, the second one of each, and so on, then those of the next entries.
    products : array, shape (q * DOUBLES or 0,)
        The products of the two columns there; none where all are one.
    lengths : int array, shape (b,)
        So many samples an entry, for each vector of entries.
    diagonal : int array, shape (n,)
        Where the entries of the diagonal are.
    values : array, shape (b * DOUBLES,)
    """
    at = 0
    for group in range(len(lengths)):
        length, first = np.int64(lengths[group]), DOUBLES * group
        if len(products) == 0:
            sum_gathered(u, samples, at, length, values, first)
        else:
            for lane in range(DOUBLES):
                total = 0.0
                for k in range(at + lane, at + lane + DOUBLES * length, DOUBLES):
                    total += products[k] * u[samples[k]]
                values[first + lane] = total
        at += DOUBLES * length
    for k in diagonal:
        values[k] += ridge


@compiled_as_written
def hessian_values(h, ridge, first, bounds, parts, samples, products, lengths, diagonals, values):
    """Fill `values` (R, E) with sum_s h_s x_s x_s' over each client's samples, plus the ridge.

    Parameters
    ----------
    h : array, shape (R, n)
        Curvatures of all samples.
    ridge : float
    first, bounds : int arrays, shape (N + 1,)
        Where each client's samples and its entries begin, and how many there are.
    parts : int array, shape (N + 1, 2)
        Where each client's part of `samples` and of `lengths` begins, and how long these are.
    samples, products, lengths
        As in `_sums`, client after client.
    diagonals : int array, shape (N, n)
    """
    u, found = _room(first), np.empty(longest(bounds) + DOUBLES)
    for row in range(len(h)):
        for i in range(len(bounds) - 1):
            _of_client(i, h[row], ridge, first, parts, samples, products, lengths, diagonals, u, found)
            for k in range(bounds[i + 1] - bounds[i]):
                values[row, bounds[i] + k] = found[k]


@compiled
def learn_largest(
    h, ridge, first, bounds, parts, samples, products, lengths, diagonals,
    places, names, H, tau, rate, weights, learned, change, distances,
):  # fmt: skip
    """One round of FedNL with top-k: H_i + alpha C(hess f_i - H_i) of all clients.

    All passes over a client's entries follow each other while they are in the cache.

    Parameters
    ----------
    h, ridge, ..., diagonals
        As for `hessian_values`.
    places : int array, shape (E, 2)
        Row and column of each entry.
    names : int array, shape (E,)
        Its place in the packed triangle.
    H : array, shape (R, E)
    tau : int
        k of top-k, of the entries of the lower triangle. Of equal ones the first of the packed triangle are
        taken.
    rate : array, shape (R, N)
        alpha, or zero for devices that are not heard.
    weights : array, shape (N,)
        p_i.
    learned : array, shape (R, E)
        Filled with the new H_i.
    change : array, shape (R, n, n)
        Filled with the change of sum_i p_i H_i.
    distances : array, shape (R, N)
        Filled with |hess f_i - H_i|_F.
    """
    most = longest(bounds) + DOUBLES
    u, room, chosen = _room(first), np.empty(most), np.empty(most, np.int64)
    numbers, few, halves = np.empty_like(chosen), np.empty_like(chosen), np.empty(most, np.int16)
    change[:] = 0.0
    for row in range(len(h)):
        for i in range(len(bounds) - 1):
            begin, end = bounds[i], bounds[i + 1]
            _of_client(i, h[row], ridge, first, parts, samples, products, lengths, diagonals, u, room)
            difference, known, after = room[: end - begin], H[row, begin:end], learned[row, begin:end]
            twice, once = 0.0, 0.0
            for k in range(len(difference)):
                difference[k] -= known[k]
                twice += difference[k] * difference[k]
                after[k] = known[k]
            for k in diagonals[i]:
                once += difference[k] * difference[k]
            distances[row, i] = np.sqrt(2.0 * twice - once)
            if rate[row, i] == 0.0:
                continue
            count = places_of_largest(
                difference.view(np.int64), _MAGNITUDE, names[begin:end], tau, chosen, numbers, halves, few
            )
            for k in chosen[:count]:
                step = rate[row, i] * difference[k]
                after[k] += step
                r, c = places[begin + k]
                change[row, r, c] += weights[i] * step
        # Lower triangles so far.
        for r in range(change.shape[1]):
            for c in range(r):
                change[row, c, r] = change[row, r, c]


@compiled_as_written
def fill_symmetric(values, bounds, places, matrices):
    """Fill `matrices` (R, N, n, n), zeros before, with the entries `values` (R, E) of lower triangles."""
    for row in range(len(values)):
        for i in range(len(bounds) - 1):
            H = matrices[row, i]
            for k in range(bounds[i], bounds[i + 1]):
                r, c = places[k]
                H[r, c] = H[c, r] = values[row, k]


@compiled_as_written
def _room(first):
    """For the curvatures of any client's samples, and a zero."""
    return np.zeros(longest(first) + 1)


@compiled_as_written
def _of_client(i, h, ridge, first, parts, samples, products, lengths, diagonals, u, values):
    """`_sums` of client i."""
    begin, end = first[i], first[i + 1]
    m = end - begin
    u[:m], u[m] = h[begin:end], 0.0
    (q, b), (q_end, b_end) = parts[i], parts[i + 1]
    _sums(u, ridge, samples[q:q_end], products[q:q_end], lengths[b:b_end], diagonals[i], values)
