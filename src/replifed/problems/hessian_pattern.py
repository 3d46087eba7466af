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
from replifed.operators.symmetric import packed_size, unpack

# Of products of two non-zeros of one sample, which Hessians are made of.
_MOST_PRODUCTS = 1 << 25


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
        # A sample's non-zero number q, counted from 0, is paired with those from 0 to q, at lower columns.
        pairs = np.arange(1, X.nnz + 1) - np.repeat(X.indptr[:-1], np.diff(X.indptr))
        ends = np.concatenate([[0], np.cumsum(pairs)])
        total = int(ends[-1])
        if N * n**2 > np.iinfo(np.int32).max or total > _MOST_PRODUCTS:
            raise ReplifedError("data too large, or not sparse enough, for Hessians; use dense features")
        columns = X.indices.astype(np.int64)
        diagonal = np.arange(n) * (np.arange(n) + 3) // 2
        # The ridge is one sample more, which adds one to each entry of the diagonals.
        products, entries = np.ones(total + N * n), np.empty(total + N * n, dtype=np.int32)
        bounds, places, diagonals = [0], [], []
        for begin, end in pairwise(X.indptr[first]):
            own = slice(ends[begin], ends[end])
            one = np.repeat(np.arange(begin, end), pairs[begin:end])
            other = one - (ends[one + 1] - 1 - np.arange(own.start, own.stop))
            products[own] = X.data[one] * X.data[other]
            place = columns[one] * (columns[one] + 1) // 2 + columns[other]
            held, entry = np.unique(np.concatenate([diagonal, place]), return_inverse=True)
            diagonals.append(entry[:n] + bounds[-1])
            entries[own] = entry[n:] + bounds[-1]
            places.append(held)
            bounds.append(bounds[-1] + len(held))
        self._dim, self._diagonals = n, np.stack(diagonals)
        entries[total:] = self._diagonals.ravel()
        # 32 bits throughout, or scipy would convert all in every product.
        self.bounds = np.array(bounds, dtype=np.int32)
        self._places = np.concatenate(places, dtype=np.int32)
        starts = np.append(ends[X.indptr], len(entries)).astype(np.int32)
        # By columns, one a sample: the entries that a sample adds to lie near one another.
        self._products = sp.csc_array((products, entries, starts), shape=(bounds[-1], X.shape[0] + 1))

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
        weights = np.append(h, np.full((len(h), 1), ridge), axis=1)
        return np.ascontiguousarray((self._products @ weights.T).T)

    def matrices(self, values: NDArray) -> NDArray:
        """The clients' matrices, (R, N, n, n)."""
        rows, N, size = len(values), len(self._diagonals), packed_size(self._dim)
        packed = np.zeros((rows, N * size))
        packed[:, np.repeat(np.arange(N) * size, np.diff(self.bounds)) + self._places] = values
        return unpack(packed.reshape(rows, N, size), self._dim)

    def mean(self, values: NDArray, weights: NDArray) -> NDArray:
        """sum_i p_i H_i with the clients' weights (N,); shape (R, n, n)."""
        shape = (packed_size(self._dim), len(weights))
        # A client's triangle is a column of a sparse matrix.
        sums = [sp.csc_array((row, self._places, self.bounds), shape=shape) @ weights for row in values]
        return unpack(np.stack(sums), self._dim)

    def norms(self, values: NDArray) -> NDArray:
        """Frobenius norms, (R, N)."""
        lower = np.add.reduceat(values * values, self.bounds[:-1], axis=-1)
        diagonal = np.square(values[:, self._diagonals]).sum(axis=-1)
        return np.sqrt(2.0 * lower - diagonal)
