"""Sums over each client's samples of one number a sample, sum_s u_s a_se, for many e at once.

Where the a_se are few and never change, which samples make up each sum is laid out once, as the processor's
vectors read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# Samples that are compared with each other at once.
_MOST_COMPARED = 1000


class Terms(NamedTuple):
    """The a_se other than zero of one client.

    Attributes
    ----------
    names : int array, shape (t,)
        e, in any order, not negative.
    samples : int array, shape (t,)
        s, counted from the client's first; no pair of a name and a sample stands here twice.
    factors : array, shape (t,), or None
        a_se; None where all are one.
    """

    names: NDArray
    samples: NDArray
    factors: NDArray | None


class SampleSums:
    """Where sums over clients' samples are, and what makes them up.

    A client's sums stand in the order of how many terms they have, so that those that are added at once are
    alike.

    Parameters
    ----------
    first : int array, shape (N + 1,)
        Where each client's samples begin, and their number.
    clients : sequence of Terms
        All of them with factors, or none.
    ahead : int array
        Names that all clients have, if only with a sum of nothing; theirs come first.
    columns_of : sequence of CSR matrices, shapes (m_i, n), optional
        For terms without factors: what each client's samples are made of; any matrices serve, since they say
        only which samples are put together. Those with many columns in common,
        which are then terms of many of the same sums, are put together in bundles of TOGETHER, and all
        subsets of these are added up first. A sum has one term where it would have up to as many.

    Attributes
    ----------
    layout : Layout
    names : int array, shape (E,)
        Of all sums, client by client.
    """

    def __init__(
        self,
        first: NDArray,
        clients: Sequence[Terms],
        ahead: Sequence[int] | NDArray = (),
        *,
        columns_of: Sequence[sp.csr_array] | None = None,
    ) -> None:
        from replifed.kernels.sample_sums import TOGETHER, Layout
        from replifed.kernels.vectors import DOUBLES

        first, ahead = np.asarray(first, dtype=np.int64), np.asarray(ahead, dtype=np.int64)
        if columns_of is None:
            made = [
                (terms, m, np.zeros((0, TOGETHER), np.int64))
                for terms, m in zip(clients, np.diff(first), strict=True)
            ]
        elif any(terms.factors is not None for terms in clients):
            raise ValueError("terms with factors cannot be put together in bundles")
        else:
            made = [_in_bundles(terms, X) for terms, X in zip(clients, columns_of, strict=True)]
        parts = [_Client(*each, ahead, DOUBLES) for each in made]
        self.names = _short([part.names for part in parts])
        sizes = [[len(part.bundles), len(part.terms), len(part.lengths)] for part in parts]
        self.layout = Layout(
            first,
            np.cumsum([0, *(len(part.names) for part in parts)]),
            np.cumsum([[0, 0, 0], *sizes], axis=0),
            _short([part.bundles for part in parts]),
            _short([part.terms for part in parts]),
            np.concatenate([part.products for part in parts]),
            _short([part.lengths for part in parts]),
        )


def _short(parts: list[NDArray]) -> NDArray:
    """The parts one behind the other, in 16 bits if their numbers allow: half as much to read."""
    whole = np.concatenate(parts)
    fits = whole.max(initial=0) <= np.iinfo(np.uint16).max
    return whole.astype(np.uint16 if fits else np.uint32)


class _Client:
    """One client's part of the layout.

    Parameters
    ----------
    terms : Terms
        With what `Layout.terms` says in place of samples.
    nothing : int
        Stands for no term.
    bundles, ahead : int arrays
    lanes : int
        Sums that are added up side by side.

    Attributes
    ----------
    names : int array, shape (e,)
    bundles, terms, products, lengths
        See `Layout`.
    """

    def __init__(self, terms: Terms, nothing: int, bundles: NDArray, ahead: NDArray, lanes: int) -> None:
        self.bundles = bundles
        held, entry = np.unique(np.concatenate([ahead, terms.names]), return_inverse=True)
        entry = entry[len(ahead) :]
        numbers = np.bincount(entry, minlength=len(held))
        order = np.lexsort([numbers, ~np.isin(held, ahead)])
        self.names = held[order]

        # Each sum's terms, and behind all of them one that is none, as in lanes without a sum.
        by_entry = np.argsort(entry, kind="stable")
        unused = -len(order) % lanes
        starts = np.pad((np.cumsum(numbers) - numbers)[order], (0, unused)).reshape(-1, lanes)
        numbers = np.pad(numbers[order], (0, unused)).reshape(-1, lanes)
        self.lengths = numbers.max(axis=1)
        group = np.repeat(np.arange(len(self.lengths)), self.lengths)
        k = np.arange(len(group)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        which = np.where(k[:, None] < numbers[group], starts[group] + k[:, None], -1).ravel()
        self.terms = np.append(terms.samples[by_entry], nothing)[which]
        if terms.factors is None:
            self.products = np.zeros(0)
        else:
            self.products = np.append(terms.factors[by_entry], 0.0)[which]


def _in_bundles(terms: Terms, X: sp.csr_array) -> tuple[Terms, int, NDArray]:
    """Terms that are sums over subsets of bundles, the number that stands for none, and the bundles."""
    from replifed.kernels.sample_sums import TOGETHER

    order, m = _alike(X), X.shape[0]
    count = -(-m // TOGETHER)
    rank = np.argsort(order)[terms.samples]
    # Terms that differ in the sample of the same bundle alone become one.
    held, which = np.unique(terms.names * count + rank // TOGETHER, return_inverse=True)
    subset = np.zeros(len(held), np.int64)
    np.add.at(subset, which, 1 << rank % TOGETHER)
    merged = Terms(held // count, (held % count << TOGETHER) + subset, None)
    bundles = np.pad(order, (0, count * TOGETHER - m), constant_values=m).reshape(count, TOGETHER)
    return merged, 0, bundles


def _alike(X: sp.csr_array) -> NDArray:
    """An order in which the samples of each bundle, TOGETHER that follow each other, have much in common.

    Counted are pairs of columns. A bundle begins with the sample that has most of them, and takes those that
    share most with what is in it.
    """
    from replifed.kernels.sample_sums import TOGETHER

    by_size, order = np.argsort(-np.diff(X.indptr), kind="stable"), []
    for begin in range(0, X.shape[0], _MOST_COMPARED):
        some = by_size[begin : begin + _MOST_COMPARED]
        common = (X[some] @ X[some].T).toarray()
        pairs = common * (common + 1) / 2
        left = np.ones(len(some), dtype=bool)
        for taken in range(len(some)):
            if taken % TOGETHER == 0:
                best = int(left.argmax())  # they are sorted by their number of columns
                shared = pairs[best].copy()
            else:
                best = int(np.where(left, shared, -1.0).argmax())
                shared += pairs[best]
            left[best] = False
            order.append(some[best])
    return np.array(order, np.int64)
