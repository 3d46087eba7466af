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
from replifed.problems.base import Listed
from replifed.problems.sample_sums import SampleSums, Terms

# Of products of two non-zeros of one sample, which Hessians are made of.
_MOST_PRODUCTS = 1 << 25


class HessianPattern:
    """Where the Hessians of all clients have entries, and how the samples make them up.

    One vector of E values holds the lower triangles of all clients' symmetric matrices, client by client, the
    whole diagonal first (`sample_sums`).

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
        N, n, fewest = len(first) - 1, X.shape[1], int(np.diff(first).argmin())
        if first[fewest] == first[fewest + 1]:
            raise ReplifedError(f"client {fewest} holds no sample")
        total = int((np.diff(X.indptr).astype(np.int64) * (np.diff(X.indptr) + 1) // 2).sum())
        # With fewer, n has the 16 bits that names of entries have for a column.
        if N * n**2 > np.iinfo(np.int32).max or total > _MOST_PRODUCTS:
            raise ReplifedError("data too large, or not sparse enough, for Hessians; use dense features")
        self._dim, self._clients = n, N
        plain = bool((X.data == 1).all())
        diagonal = _named(np.arange(n), np.arange(n))
        own = [X[begin:end] for begin, end in pairwise(first)]
        pairs = [_pairs(samples, plain) for samples in own]
        sums = SampleSums(first, pairs, diagonal, columns_of=own if plain else None)
        self._layout, self._names, self.bounds = sums.layout, sums.names, sums.layout.bounds
        self._most = int(np.diff(self.bounds).max())

    def values(self, h: NDArray, ridge: float) -> NDArray:
        """The mean of h_s x_s x_s' over each client's samples s, plus `ridge` times the identity.

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
        hessian_values(_doubles(h), float(ridge), self._dim, self._layout, values)
        return values

    def none(self, rows: int) -> Listed:
        """Matrices of zeros of so many rows: nothing is listed."""
        # Numbers that tell a client's values apart, and one more.
        short = self._most <= np.iinfo(np.uint16).max
        places = np.zeros((rows, self._clients, 0), np.uint16 if short else np.uint32)
        return Listed(np.zeros((rows, self._clients), np.int64), places, np.zeros(places.shape))

    def learn_largest(
        self,
        h: NDArray,
        ridge: float,
        H: Listed,
        mean: NDArray,
        k: int,
        rate: NDArray,
        weights: NDArray,
    ) -> tuple[Listed, NDArray, NDArray]:
        """H_i + rate_i C(A_i - H_i), where C keeps the k largest entries of lower triangles.

        Parameters
        ----------
        h : array, shape (R, m)
            A_i has the `values` of h and `ridge`.
        ridge : float
        H : Listed
        mean : array, shape (R, n, n)
            sum_i p_i H_i.
        k : int
            Of equal entries the first of the packed triangle are kept.
        rate : array, shape (R, N)
        weights : array, shape (N,)
            p_i.

        Returns
        -------
        learned : Listed
        mean : array, shape (R, n, n)
            sum_i p_i of these.
        distances : array, shape (R, N)
            |A_i - H_i|_F.
        """
        from replifed.kernels.hessians import learn_largest

        rows, N = rate.shape
        most = min(int(H.counts.max(initial=0)) + k, self._most)
        places, values = np.empty((rows, N, most), H.places.dtype), np.empty((rows, N, most))
        learned = Listed(np.empty_like(H.counts), places, values)
        mean, distances = mean.copy(), np.empty(rate.shape)
        given = _doubles(h), float(ridge), self._dim, self._layout, self._names, *H, k
        learn_largest(*given, _doubles(rate), _doubles(weights), *learned, mean, distances)
        return learned, mean, distances

    def matrices(self, values: NDArray) -> NDArray:
        """The clients' matrices, (R, N, n, n), by their values (R, E)."""
        from replifed.kernels.hessians import fill_symmetric

        matrices = np.zeros((len(values), self._clients, self._dim, self._dim))
        fill_symmetric(_doubles(values), self.bounds, self._names, matrices)
        return matrices

    def spread(self, H: Listed) -> NDArray:
        """All values of matrices that are listed, (R, E)."""
        values = np.zeros((len(H.counts), self.bounds[-1]))
        for (row, i), count in np.ndenumerate(H.counts):
            values[row, self.bounds[i] + H.places[row, i, :count].astype(np.int64)] = H.values[row, i, :count]
        return values


def _pairs(X: sp.csr_array, plain: bool) -> Terms:
    """What the entries of one client's Hessian are made of, by their names.

    Parameters
    ----------
    X : CSR matrix, shape (m, n)
    plain : bool
        Whether all products are one.
    """
    # A sample's non-zero number q, counted from 0, is paired with those from 0 to q, at lower columns.
    pairs = np.arange(1, X.nnz + 1) - np.repeat(X.indptr[:-1], np.diff(X.indptr))
    one = np.repeat(np.arange(X.nnz), pairs)
    other = one - (np.repeat(np.cumsum(pairs), pairs) - 1 - np.arange(len(one)))
    columns = X.indices.astype(np.int64)
    samples = np.repeat(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), pairs)
    names = _named(columns[one], columns[other])
    return Terms(names, samples, None if plain else X.data[one] * X.data[other])


def _named(rows: NDArray, columns: NDArray) -> NDArray:
    """Names of entries, which are in the order of the packed triangle."""
    from replifed.kernels.hessians import COLUMN_BITS

    return (rows << COLUMN_BITS) + columns


def _doubles(values: NDArray) -> NDArray:
    return np.ascontiguousarray(values, dtype=np.float64)
