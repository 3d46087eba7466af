"""Hessians of clients with sparse data, by the entries that can be other than zero.

A client's Hessian has an entry for two columns only if both occur in one of its samples; the entries' places
never change, and with many clients they are a small part of all.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.errors import ReplifedError

# Of products of two non-zeros of one sample, which Hessians are made of.
_MOST_PRODUCTS = 1 << 25
# Entries that `kernels.hessians` sums side by side.
_LANES = 4


class HessianPattern:
    """Where the Hessians of all clients have entries, and how the samples make them up.

    One vector of E values holds the lower triangles of all clients' symmetric matrices: client by client, and
    in the order of the packed triangle. All diagonals are part of it.

    Parameters
    ----------
    X : CSR matrix, shape (m, n)
        Samples, client by client.
    first : int array, shape (N + 1,)
        Where each client's samples begin, and their number.

    Attributes
    ----------
    bounds : int array, shape (N + 1,)
        Where each client's values begin, and E.
    """

    def __init__(self, X: sp.csr_array, first: NDArray) -> None:
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        N, n = len(first) - 1, X.shape[1]
        total = int((np.diff(X.indptr).astype(np.int64) * (np.diff(X.indptr) + 1) // 2).sum())
        if N * n**2 > np.iinfo(np.int32).max or total > _MOST_PRODUCTS:
            raise ReplifedError("data too large, or not sparse enough, for Hessians; use dense features")
        self._dim, self._first = n, np.asarray(first, dtype=np.int64)
        plain = bool((X.data == 1).all())
        clients = [_Client(X[begin:end], plain) for begin, end in pairwise(self._first)]
        self.bounds = np.cumsum([0, *(len(client.places) for client in clients)])
        self._diagonals = np.stack([client.diagonal for client in clients])
        # Numbers of 16 bits where they suffice, as they do for most: less to read.
        most = max(n, np.diff(self._first).max(), np.diff(self.bounds).max())
        short = np.uint16 if most <= np.iinfo(np.uint16).max else np.uint32
        self._places = np.concatenate([client.places for client in clients]).astype(short)
        self._samples = np.concatenate([client.samples for client in clients]).astype(short)
        self._targets = np.concatenate([client.targets for client in clients]).astype(short)
        self._products = np.concatenate([client.products for client in clients])
        self._runs = np.concatenate([client.runs for client in clients])
        lengths = [[len(client.samples), len(client.targets), len(client.runs)] for client in clients]
        self._parts = np.cumsum([[0, 0, 0], *lengths], axis=0)

    @property
    def _layout(self) -> tuple[NDArray, ...]:
        """What the kernels read."""
        return (
            self._first,
            self.bounds,
            self._parts,
            self._samples,
            self._products,
            self._targets,
            self._runs,
            self._diagonals,
        )

    def values(self, h: NDArray, ridge: float) -> NDArray:
        """sum_s h_s x_s x_s' over each client's samples s, plus `ridge` times the identity.

        Parameters
        ----------
        h : array, shape (R, m)
        ridge : float

        Returns
        -------
        array, shape (R, E)
        """
        from replifed.kernels.hessians import hessian_values

        values = np.empty((len(h), self.bounds[-1]))
        hessian_values(_doubles(h), float(ridge), *self._layout, values)
        return values

    def learn_largest(
        self, h: NDArray, ridge: float, H: NDArray, k: int, rate: NDArray, weights: NDArray
    ) -> tuple[NDArray, NDArray, NDArray]:
        """H_i + rate_i C(A_i - H_i), where C keeps the k largest entries of lower triangles.

        Parameters
        ----------
        h : array, shape (R, m)
            A_i has the `values` of h and `ridge`.
        ridge : float
        H : array, shape (R, E)
        k : int
            Of equal entries the first are kept.
        rate : array, shape (R, N)
        weights : array, shape (N,)
            p_i.

        Returns
        -------
        learned : array, shape (R, E)
        change : array, shape (R, n, n)
            Of sum_i p_i H_i.
        distances : array, shape (R, N)
            |A_i - H_i|_F.
        """
        from replifed.kernels.hessians import learn_largest

        rows, n = len(H), self._dim
        learned, change, distances = np.empty_like(H), np.empty((rows, n, n)), np.empty(rate.shape)
        given = _doubles(h), float(ridge), *self._layout, self._places, _doubles(H), k
        learn_largest(*given, _doubles(rate), _doubles(weights), learned, change, distances)
        return learned, change, distances

    def matrices(self, values: NDArray) -> NDArray:
        """The clients' matrices, (R, N, n, n)."""
        from replifed.kernels.hessians import fill_symmetric

        matrices = np.zeros((len(values), len(self._diagonals), self._dim, self._dim))
        fill_symmetric(_doubles(values), self.bounds, self._places, matrices)
        return matrices


class _Client:
    """One client's part of the layout, with places counted from its first entry and samples from its first.

    Parameters
    ----------
    X : CSR matrix, shape (m, n)
    plain : bool
        Whether all products of non-zeros are one.

    Attributes
    ----------
    places : int array, shape (e, 2)
        Row and column of each entry, in the order of the packed triangle.
    diagonal : int array, shape (n,)
    samples, products, targets, runs
        See `kernels.hessians`.
    """

    def __init__(self, X: sp.csr_array, plain: bool) -> None:
        m, n = X.shape
        # A sample's non-zero number q, counted from 0, is paired with those from 0 to q, at lower columns.
        pairs = np.arange(1, X.nnz + 1) - np.repeat(X.indptr[:-1], np.diff(X.indptr))
        one = np.repeat(np.arange(X.nnz), pairs)
        other = one - (np.repeat(np.cumsum(pairs), pairs) - 1 - np.arange(len(one)))
        columns = X.indices.astype(np.int64)
        sample = np.repeat(np.repeat(np.arange(m), np.diff(X.indptr)), pairs)
        place = columns[one] * (columns[one] + 1) // 2 + columns[other]
        everywhere = np.arange(n) * (np.arange(n) + 3) // 2
        held, entry = np.unique(np.concatenate([everywhere, place]), return_inverse=True)
        self.diagonal, entry = entry[:n], entry[n:]
        row = np.searchsorted(everywhere, held)
        self.places = np.stack([row, held - row * (row + 1) // 2], axis=1)

        by_entry = np.argsort(entry, kind="stable")
        sample = sample[by_entry]
        product = None if plain else (X.data[one] * X.data[other])[by_entry]
        numbers = np.bincount(entry, minlength=len(held))
        starts = np.cumsum(numbers) - numbers
        samples, products, targets, runs = [], [], [], []
        for length in np.unique(numbers[numbers > 0]):
            own = np.flatnonzero(numbers == length)
            unused = -len(own) % _LANES
            which = starts[own][:, None] + np.arange(length)
            samples.append(_by_lanes(np.pad(sample[which], ((0, unused), (0, 0)), constant_values=m)))
            if product is not None:
                products.append(_by_lanes(np.pad(product[which], ((0, unused), (0, 0)))))
            targets.append(np.pad(own, (0, unused), constant_values=len(held)).reshape(-1, _LANES))
            runs.append((length, len(targets[-1])))
        nothing = np.zeros((0, _LANES), dtype=np.int64)
        self.samples = np.concatenate([nothing, *samples])
        self.products = np.concatenate([nothing, *products], dtype=float)
        self.targets = np.concatenate([nothing, *targets])
        self.runs = np.array(runs, dtype=np.int64).reshape(-1, 2)


def _by_lanes(lists: NDArray) -> NDArray:
    """Lists of equal length, (c, length), side by side in groups of LANES: (c length / LANES, LANES)."""
    groups = lists.reshape(-1, _LANES, lists.shape[1])
    return groups.swapaxes(1, 2).reshape(-1, _LANES)


def _doubles(values: NDArray) -> NDArray:
    return np.ascontiguousarray(values, dtype=np.float64)
