"""Sums over the samples of each client, as many of them at once as the processor adds.

Which samples make up a sum is laid out by `problems.sample_sums`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from replifed.kernels import compiled_as_written
from replifed.kernels.gathered import sum_gathered
from replifed.kernels.stretches import longest
from replifed.kernels.vectors import DOUBLES, LINE_BYTES, everywhere, in_lanes, read, write

TOGETHER = 5
"""Of so many samples all subsets are added up. Of more, sums would have fewer terms yet, but the subsets' own
sums would hardly leave room for anything else in the innermost cache."""


class Layout(NamedTuple):
    """Where sums are, and what makes them up; see `problems.sample_sums`.

    Attributes
    ----------
    first : int array, shape (N + 1,)
        Where each client's samples begin, and their number.
    bounds : int array, shape (N + 1,)
        Where each client's sums begin, and their number E.
    parts : int array, shape (N + 1, 3)
        Where each client's part of `bundles`, `terms` and `lengths` begins, and how long these are.
    bundles : int array, shape (f, TOGETHER)
        Numbers of a client's samples of which all subsets are added up; as many as it has stands for none.
        Without any, samples themselves are added.
    terms : int array, shape (q * lanes,)
        What is added up: with `bundles` 2^TOGETHER times a bundle's number, counted from the client's first,
        plus that of the subset; else the sample's number. The first terms of as many sums as the processor
        adds at once, the second ones of each, and so on, then those of the next sums.
    products : array, shape (q * lanes or 0,)
        What the terms are multiplied by; none where that is one.
    lengths : int array, shape (b,)
        So many terms a sum, for each `lanes` sums.
    """

    first: np.ndarray
    bounds: np.ndarray
    parts: np.ndarray
    bundles: np.ndarray
    terms: np.ndarray
    products: np.ndarray
    lengths: np.ndarray


@compiled_as_written
def room_for(layout):
    """Room for what `add_up` needs for any client.

    Returns
    -------
    tables : tuple of arrays
        What sums are made of: a number for each of the client's samples, and sums of some of them.
    sums : array, shape (as many as a client has, and DOUBLES more)
    """
    subsets = longest(layout.parts[:, 0]) << TOGETHER
    tables = np.empty(longest(layout.first) + 1), _aligned(subsets)
    return tables, _aligned(longest(layout.bounds) + DOUBLES)


@compiled_as_written
def _aligned(n):
    """Room for `n` doubles that begins where a line of the cache does, so that vectors never lie on two."""
    doubles = LINE_BYTES // 8
    room = np.empty(n + doubles)
    return room[-(room.ctypes.data // 8) % doubles :][:n]


@compiled_as_written
def take(i, values, layout, tables):
    """Begin the first of `tables` with the numbers of client i's samples, of `values` (m,); return these."""
    begin, end = layout.first[i], layout.first[i + 1]
    own = tables[0][: end - begin]
    own[:] = values[begin:end]
    return own


@compiled_as_written
def made_of(i, layout, tables):
    """What the sums of client i are made of, for `sum_gathered`.

    Parameters
    ----------
    i : int
    layout : Layout
    tables : tuple of arrays
        See `room_for`, after `take`.

    Returns
    -------
    table, terms, products, lengths : arrays
    """
    own, subsets = tables
    own[layout.first[i + 1] - layout.first[i]] = 0.0
    (f, q, b), (f_end, q_end, b_end) = layout.parts[i], layout.parts[i + 1]
    table = own
    if len(layout.bundles):
        _add_subsets(own, layout.bundles[f:f_end], subsets)
        table = subsets
    return table, layout.terms[q:q_end], layout.products[q:q_end], layout.lengths[b:b_end]


@compiled_as_written
def add_up(i, scale, layout, tables, sums):
    """Fill `sums`, as `room_for` gives them, with those of client i times `scale`; the others as above."""
    table, terms, products, lengths = made_of(i, layout, tables)
    scales, at = everywhere(scale), 0
    for group in range(len(lengths)):
        length = np.int64(lengths[group])
        write(sum_gathered(table, terms, products, at, length) * scales, sums, DOUBLES * group)
        at += DOUBLES * length


@compiled_as_written
def fill_named(values, layout, names, found):
    """Put the sums of all clients where their names say.

    Parameters
    ----------
    values : array, shape (R, m)
        One number a sample.
    layout : Layout
    names : int array, shape (E,)
        The place of each sum; no two alike.
    found : array, shape (R, at least E)
        Filled there alone.
    """
    (tables, sums), bounds = room_for(layout), layout.bounds
    for row in range(len(values)):
        for i in range(len(bounds) - 1):
            take(i, values[row], layout, tables)
            add_up(i, 1.0, layout, tables, sums)
            for k in range(bounds[i + 1] - bounds[i]):
                found[row, np.uintp(names[bounds[i] + k])] = sums[k]


@compiled_as_written
def _add_subsets(u, bundles, subsets):
    """Fill `subsets` (f << TOGETHER,) with the sums over all subsets of f bundles of samples.

    Of the samples `bundles[q]`, those whose bits are set in b are in the sum number (q << TOGETHER) + b.
    """
    for q in range(len(bundles)):
        # A vector has the sums over the first two samples or three; the others are those and one sample more.
        first = q << TOGETHER
        some, together = in_lanes(u[bundles[q, 0]], 1) + in_lanes(u[bundles[q, 1]], 2), 2
        if DOUBLES == 8:
            some, together = some + in_lanes(u[bundles[q, 2]], 4), 3
        write(some, subsets, first)
        for j in range(together, TOGETHER):
            more = everywhere(u[bundles[q, j]])
            for b in range(first, first + (1 << j), DOUBLES):
                write(read(subsets, b) + more, subsets, b + (1 << j))
