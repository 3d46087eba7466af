"""Sums over the samples of each client, as many of them at once as the processor adds.

Which samples make up a sum is laid out by `problems.sample_sums`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled_as_written
from replifed.kernels.stretches import longest
from replifed.kernels.vectors import DOUBLES, sum_gathered


@compiled_as_written
def sums_of_client(i, values, scale, layout, tables, sums):
    """Fill `sums` with those of client i.

    Parameters
    ----------
    i : int
    values : array, shape (m,)
        One number for each sample of all clients.
    scale : float
        What the sums are multiplied by.
    layout : problems.sample_sums.Layout
    tables : tuple of arrays
        See `room_for`.
    sums : array, shape (at least as many as the client has, and DOUBLES more)
    """
    own, subsets = tables
    begin, end = layout.first[i], layout.first[i + 1]
    m = end - begin
    own[:m], own[m] = values[begin:end], 0.0
    (f, q, b), (f_end, q_end, b_end) = layout.parts[i], layout.parts[i + 1]
    table, products = own, layout.products[q:q_end]
    if len(layout.fours):
        _add_subsets(own, layout.fours[f:f_end], subsets)
        table = subsets.reshape(-1)
    _add_terms(table, layout.terms[q:q_end], products, layout.lengths[b:b_end], scale, sums)


@compiled_as_written
def room_for(layout):
    """Tables of what sums are made of: a client's values and a zero, and sums of some of them."""
    return np.empty(longest(layout.first) + 1), np.empty((longest(layout.parts[:, 0]), 16))


@compiled_as_written
def add_to_columns(values, layout, names, g):
    """Add to `g` (R, n) the sums of all clients for `values` (R, m), each to the column that is its name."""
    tables, sums = room_for(layout), np.empty(longest(layout.bounds) + DOUBLES)
    for row in range(len(values)):
        for i in range(len(layout.bounds) - 1):
            sums_of_client(i, values[row], 1.0, layout, tables, sums)
            begin = layout.bounds[i]
            for k in range(layout.bounds[i + 1] - begin):
                g[row, np.uintp(names[begin + k])] += sums[k]


@compiled_as_written
def _add_subsets(u, fours, subsets):
    """Fill `subsets` (f, 16) with the sums over all subsets of f times four samples.

    Of the four samples `fours[q]`, those whose bits are set in b are in the sum [q, b].
    """
    for q in range(len(fours)):
        s, t, v, w = u[fours[q, 0]], u[fours[q, 1]], u[fours[q, 2]], u[fours[q, 3]]
        st, vw, of = s + t, v + w, subsets[q]
        of[0], of[1], of[2], of[3] = 0.0, s, t, st
        of[4], of[5], of[6], of[7] = v, s + v, t + v, st + v
        of[8], of[9], of[10], of[11] = w, s + w, t + w, st + w
        of[12], of[13], of[14], of[15] = vw, s + vw, t + vw, st + vw


@compiled_as_written
def _add_terms(table, terms, products, lengths, scale, sums):
    """Fill `sums` with `scale` times what is added up of `table`."""
    at = 0
    for group in range(len(lengths)):
        length, first = np.int64(lengths[group]), DOUBLES * group
        if len(products) == 0:
            sum_gathered(table, terms, at, length, scale, sums, first)
        else:
            for lane in range(DOUBLES):
                total = 0.0
                for k in range(at + lane, at + lane + DOUBLES * length, DOUBLES):
                    total += products[k] * table[terms[k]]
                sums[first + lane] = scale * total
        at += DOUBLES * length
