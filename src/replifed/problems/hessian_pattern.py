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


class HessianPattern:
    """Where the Hessians of all clients have entries, and how the samples make them up.

    One vector of E values holds the lower triangles of all clients' symmetric matrices: client by client, and
    by how many samples make up an entry, so that as many entries as the processor adds at once are alike. All
    diagonals are part of it.

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
        from replifed.kernels.vectors import DOUBLES

        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        N, n = len(first) - 1, X.shape[1]
        total = int((np.diff(X.indptr).astype(np.int64) * (np.diff(X.indptr) + 1) // 2).sum())
        if N * n**2 > np.iinfo(np.int32).max or total > _MOST_PRODUCTS:
            raise ReplifedError("data too large, or not sparse enough, for Hessians; use dense features")
        self._dim, self._first = n, np.asarray(first, dtype=np.int64)
        plain = bool((X.data == 1).all())
        clients = [_Client(X[begin:end], plain, DOUBLES) for begin, end in pairwise(self._first)]
        self.bounds = np.cumsum([0, *(len(client.names) for client in clients)])
        self._diagonals = np.stack([client.diagonal for client in clients])
        # Numbers of 16 bits where they suffice, as they do for most: less to read.
        self._names = _short([client.names for client in clients])
        row = np.searchsorted(_diagonal(n), self._names)
        self._places = _short([np.stack([row, self._names - row * (row + 1) // 2], axis=1)])
        self._samples = _short([client.samples for client in clients])
        self._lengths = _short([client.lengths for client in clients])
        self._products = np.concatenate([client.products for client in clients])
        sizes = [[len(client.samples), len(client.lengths)] for client in clients]
        self._parts = np.cumsum([[0, 0], *sizes], axis=0)

    @property
    def _layout(self) -> tuple[NDArray, ...]:
        """What the kernels read."""
        return (
            self._first,
            self.bounds,
            self._parts,
            self._samples,
            self._products,
            self._lengths,
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
            Of equal entries the first of the packed triangle are kept.
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
        given = _doubles(h), float(ridge), *self._layout, self._places, self._names, _doubles(H), k
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
    lanes : int
        Entries that are summed side by side.

    Attributes
    ----------
    names : int array, shape (e,)
        Place of each entry in the packed triangle.
    diagonal : int array, shape (n,)
        Where the entries of the diagonal are.
    samples, products, lengths
        See `kernels.hessians`.
    """

    def __init__(self, X: sp.csr_array, plain: bool, lanes: int) -> None:
        m, n = X.shape
        # A sample's non-zero number q, counted from 0, is paired with those from 0 to q, at lower columns.
        pairs = np.arange(1, X.nnz + 1) - np.repeat(X.indptr[:-1], np.diff(X.indptr))
        one = np.repeat(np.arange(X.nnz), pairs)
        other = one - (np.repeat(np.cumsum(pairs), pairs) - 1 - np.arange(len(one)))
        columns = X.indices.astype(np.int64)
        sample = np.repeat(np.repeat(np.arange(m), np.diff(X.indptr)), pairs)
        name = columns[one] * (columns[one] + 1) // 2 + columns[other]
        held, entry = np.unique(np.concatenate([_diagonal(n), name]), return_inverse=True)
        diagonal, entry = entry[:n], entry[n:]

        by_entry = np.argsort(entry, kind="stable")
        sample = np.append(sample[by_entry], m)
        numbers = np.bincount(entry, minlength=len(held))
        order = np.argsort(numbers, kind="stable")
        self.names = held[order]
        self.diagonal = np.argsort(order)[diagonal]

        # Each entry's samples, and behind them a place that stands for none, as in lanes without an entry.
        unused = -len(order) % lanes
        starts = np.pad((np.cumsum(numbers) - numbers)[order], (0, unused)).reshape(-1, lanes)
        numbers = np.pad(numbers[order], (0, unused)).reshape(-1, lanes)
        self.lengths = numbers.max(axis=1)
        group = np.repeat(np.arange(len(self.lengths)), self.lengths)
        k = np.arange(len(group)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        which = np.where(k[:, None] < numbers[group], starts[group] + k[:, None], -1).ravel()
        self.samples = sample[which]
        self.products = (
            np.zeros(0) if plain else np.append((X.data[one] * X.data[other])[by_entry], 0.0)[which]
        )


def _diagonal(n: int) -> NDArray:
    """Places of the diagonal in a packed triangle."""
    return np.arange(n) * (np.arange(n) + 3) // 2


def _short(parts: list[NDArray]) -> NDArray:
    """The parts one behind the other, in 16 bits if their numbers allow."""
    whole = np.concatenate(parts)
    fits = whole.max(initial=0) <= np.iinfo(np.uint16).max
    return whole.astype(np.uint16 if fits else np.uint32)


def _doubles(values: NDArray) -> NDArray:
    return np.ascontiguousarray(values, dtype=np.float64)
