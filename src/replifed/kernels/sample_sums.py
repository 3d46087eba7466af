"""Sums over the samples of each client, as many of them at once as the processor adds.

Which samples make up a sum is laid out by `problems.sample_sums`.
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled_as_written
from replifed.kernels.stretches import longest
from replifed.kernels.vectors import DOUBLES, sum_gathered


@compiled_as_written
def room_for(layout):
    """Tables of what sums are made of: a number for each of a client's samples, and sums of some of them."""
    return np.empty(longest(layout.first) + 1), np.empty((longest(layout.parts[:, 0]), 16))


@compiled_as_written
def add_up(i, scale, layout, tables, sums):
    """Fill `sums` with those of client i.

    Parameters
    ----------
    i : int
    scale : float
        What the sums are multiplied by.
    layout : problems.sample_sums.Layout
    tables : tuple of arrays
        See `room_for`; the first one begins with the numbers of the client's samples.
    sums : array, shape (at least as many as the client has, and DOUBLES more)
    """
    own, subsets = tables
    own[layout.first[i + 1] - layout.first[i]] = 0.0
    (f, q, b), (f_end, q_end, b_end) = layout.parts[i], layout.parts[i + 1]
    table, products = own, layout.products[q:q_end]
    if len(layout.fours):
        _add_subsets(own, layout.fours[f:f_end], subsets)
        table = subsets.reshape(-1)
    _add_terms(table, layout.terms[q:q_end], products, layout.lengths[b:b_end], scale, sums)


@compiled_as_written
def fill_named(values, layout, names, found):
    """Fill `found` (R, M), each place with the sum of `values` (R, m) that it names (E,)."""
    tables, sums, bounds = room_for(layout), np.empty(longest(layout.bounds) + DOUBLES), layout.bounds
    for row in range(len(values)):
        for i in range(len(bounds) - 1):
            begin, end = layout.first[i], layout.first[i + 1]
            tables[0][: end - begin] = values[row, begin:end]
            add_up(i, 1.0, layout, tables, sums)
            for k in range(bounds[i + 1] - bounds[i]):
                found[row, np.uintp(names[bounds[i] + k])] = sums[k]


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
