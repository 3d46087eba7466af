"""Hessians of clients with sparse data, by the entries that can be other than zero.

Where the entries are, and which samples make them up, is laid out by `problems.hessian_pattern`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_as_written
from replifed.kernels.selection import places_of_largest
from replifed.kernels.stretches import longest

# All but the sign: as whole numbers, doubles without it are in the order of their magnitudes.
_MAGNITUDE = (1 << 63) - 1


@compiled_as_written
def _sums(u, ridge, samples, products, targets, runs, diagonal, values):
    """Fill `values` with the entries of one client's Hessian.

    Parameters
    ----------
    u : array, shape (m + 1,)
        Its samples' curvatures, and a zero for the lanes that are not in use.
    ridge : float
    samples : int array, shape (q, 4)
        The samples that both columns of an entry occur in: the first ones of four entries, the second ones,
        and so on, then those of the next four entries.
    products : array, shape (q or 0, 4)
        The products of the two columns there; none where all are one.
    targets : int array, shape (b, 4)
        Where the entries belong; for lanes that are not in use, behind the last one.
    runs : int array, shape (r, 2)
        So many samples an entry, in so many groups of four entries.
    diagonal : int array, shape (n,)
        Where the entries of the diagonal are.
    values : array, shape (e + 1,)
    """
    values[:] = 0.0
    # Unsigned, so that no place is taken for one counted from the end.
    at, block, plain = np.uintp(0), np.uintp(0), len(products) == 0
    for run in range(len(runs)):
        length, blocks = runs[run]
        for _ in range(blocks):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            if plain:
                for _ in range(length):
                    a += u[samples[at, 0]]
                    b += u[samples[at, 1]]
                    c += u[samples[at, 2]]
                    d += u[samples[at, 3]]
                    at += np.uintp(1)
            else:
                for _ in range(length):
                    a += products[at, 0] * u[samples[at, 0]]
                    b += products[at, 1] * u[samples[at, 1]]
                    c += products[at, 2] * u[samples[at, 2]]
                    d += products[at, 3] * u[samples[at, 3]]
                    at += np.uintp(1)
            values[targets[block, 0]] = a
            values[targets[block, 1]] = b
            values[targets[block, 2]] = c
            values[targets[block, 3]] = d
            block += np.uintp(1)
    for k in diagonal:
        values[k] += ridge


@compiled_as_written
def hessian_values(h, ridge, first, bounds, parts, samples, products, targets, runs, diagonals, values):
    """Fill `values` (R, E) with sum_s h_s x_s x_s' over each client's samples, plus the ridge.

    Parameters
    ----------
    h : array, shape (R, n)
        Curvatures of all samples.
    ridge : float
    first, bounds : int arrays, shape (N + 1,)
        Where each client's samples and its entries begin, and how many there are.
    parts : int array, shape (N + 1, 3)
        Where each client's part of `samples`, of `targets` and of `runs` begins, and their lengths.
    samples, products, targets, runs
        As in `_sums`, client after client.
    diagonals : int array, shape (N, n)
    """
    u, found = _room(first), np.empty(longest(bounds) + 1)
    for row in range(len(h)):
        for i in range(len(bounds) - 1):
            own = found[: bounds[i + 1] - bounds[i] + 1]
            _of_client(i, h[row], ridge, first, parts, samples, products, targets, runs, diagonals, u, own)
            values[row, bounds[i] : bounds[i + 1]] = own[:-1]


@compiled
def learn_largest(
    h, ridge, first, bounds, parts, samples, products, targets, runs, diagonals,
    places, H, tau, rate, weights, learned, change, distances,
):  # fmt: skip
    """One round of FedNL with top-k: H_i + alpha C(hess f_i - H_i) of all clients.

    All passes over a client's entries follow each other while they are in the cache.

    Parameters
    ----------
    h, ridge, ..., diagonals
        As for `hessian_values`.
    places : int array, shape (E, 2)
        Row and column of each entry.
    H : array, shape (R, E)
    tau : int
        k of top-k, of the entries of the lower triangle. Of equal ones the first are taken.
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
    most = longest(bounds)
    u, room, chosen = _room(first), np.empty(most + 1), np.empty(most + 1, np.int64)
    numbers, few, halves = np.empty_like(chosen), np.empty_like(chosen), np.empty(most + 1, np.int16)
    change[:] = 0.0
    for row in range(len(h)):
        for i in range(len(bounds) - 1):
            begin, end = bounds[i], bounds[i + 1]
            n = end - begin
            difference = room[: n + 1]
            _of_client(
                i, h[row], ridge, first, parts, samples, products, targets, runs, diagonals, u, difference
            )
            known, after = H[row, begin:end], learned[row, begin:end]
            twice, once = 0.0, 0.0
            for k in range(n):
                difference[k] -= known[k]
                twice += difference[k] * difference[k]
                after[k] = known[k]
            for k in diagonals[i]:
                once += difference[k] * difference[k]
            distances[row, i] = np.sqrt(2.0 * twice - once)
            if rate[row, i] == 0.0:
                continue
            count = places_of_largest(
                difference[:n].view(np.int64), _MAGNITUDE, tau, chosen, numbers, halves, few
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
def _of_client(i, h, ridge, first, parts, samples, products, targets, runs, diagonals, u, values):
    """`_sums` of client i."""
    begin, end = first[i], first[i + 1]
    m = end - begin
    u[:m], u[m] = h[begin:end], 0.0
    (q, b, r), (q_end, b_end, r_end) = parts[i], parts[i + 1]
    _sums(
        u, ridge, samples[q:q_end], products[q:q_end], targets[b:b_end], runs[r:r_end], diagonals[i], values
    )
