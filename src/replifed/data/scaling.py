"""Standardised features, and the statistics of columns that they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.data.table import canonical

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BLOCK = 1 << 20  # values at a time


class Statistics(NamedTuple):
    """Of each column of a table of `rows` samples."""

    rows: int
    filled: NDArray  # values that are not zero
    mean: NDArray
    deviation: NDArray
    magnitude: NDArray  # root mean square of the values that are not zero
    low: NDArray
    high: NDArray
    whole: NDArray  # whether all values are whole numbers

    @property
    def constant(self) -> NDArray:
        """Columns that have one value; that of an intercept, too."""
        return self.low == self.high

    def scaling(self) -> Scaling:
        """Return what makes columns comparable.

        A column that is mostly zeros keeps them, so that a sparse table stays sparse; one of zeros and ones
        stays as it is, and a constant one an intercept.
        """
        category = (self.low == 0) & (self.high == 1) & self.whole
        centred = (2 * self.filled >= self.rows) & ~self.constant & ~category
        scale = np.where(centred, self.deviation, self.magnitude)
        return Scaling(np.where(centred, self.mean, 0.0), np.where(scale > 0, scale, 1.0), centred)


class Scaling(NamedTuple):
    """x -> (x - shift) / scale for each column; shift is zero unless the column is centred."""

    shift: NDArray
    scale: NDArray
    centred: NDArray


def statistics(X: csr_matrix) -> Statistics:
    """Statistics of the columns of a canonical sparse table."""
    n, d = X.shape
    filled, fractions = np.zeros(d), np.zeros(d)
    low, high = np.full(d, np.inf), np.full(d, -np.inf)  # of the values that are not zero
    for k, x in _blocks(X):
        filled += np.bincount(k, minlength=d)
        fractions += np.bincount(k, x % 1 != 0, minlength=d)
        np.minimum.at(low, k, x)
        np.maximum.at(high, k, x)
    some_zero = filled < n
    low, high = np.where(some_zero, np.minimum(low, 0), low), np.where(some_zero, np.maximum(high, 0), high)
    unit = np.maximum(np.abs(low), np.abs(high))  # by which values are divided, since squares may overflow
    unit[unit == 0] = 1.0
    total, squares, around = np.zeros(d), np.zeros(d), np.zeros(d)
    for k, x in _blocks(X, unit):
        total += np.bincount(k, x, minlength=d)
        squares += np.bincount(k, x * x, minlength=d)
    mean = total / n
    for k, x in _blocks(X, unit):
        around += np.bincount(k, (x - mean[k]) ** 2, minlength=d)
    deviation = np.sqrt((around + (n - filled) * mean**2) / n)
    magnitude = np.sqrt(squares / np.maximum(filled, 1))
    return Statistics(n, filled, mean * unit, deviation * unit, magnitude * unit, low, high, fractions == 0)


def _blocks(X: csr_matrix, unit: NDArray | None = None) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield columns and values, some at a time, in units of each column."""
    for begin in range(0, X.nnz, _BLOCK):
        k, x = X.indices[begin : begin + _BLOCK], X.data[begin : begin + _BLOCK]
        yield k, x if unit is None else x / unit[k]


def whose(samples: int, tested: bool = False) -> str:
    """Say whose statistics are taken."""
    if tested:
        return f"with the statistics of the training samples (here of all {samples})"
    return f"with the statistics of all {samples} samples, none of which is kept for a test"


def standardise(X: csr_matrix) -> tuple[csr_matrix, str]:
    """Return the table with comparable columns, and in words whose statistics it took.

    Columns get the mean zero and the deviation one. Those that are mostly zeros, constant, or of zeros and
    ones are only divided, by the root mean square of the values that are not zero.
    """
    return scaled(X, statistics(X).scaling()), whose(X.shape[0])


def scaled(X: csr_matrix, scaling: Scaling) -> csr_matrix:
    """Return the table with each column shifted and divided."""
    from scipy.sparse import csr_matrix, vstack

    n = X.shape[0]
    shift, scale, centred = scaling
    places = np.flatnonzero(centred)
    if not places.size:
        return csr_matrix((X.data / scale[X.indices], X.indices, X.indptr), X.shape)
    blocks, step = [], max(1, _BLOCK * n // max(X.nnz, 1))
    for begin in range(0, n, step):
        rows = X[begin : begin + step]
        size = rows.shape[0]
        means = (np.tile(shift[places], size), np.tile(places, size), np.arange(size + 1) * len(places))
        rows = (rows - csr_matrix(means, shape=rows.shape)).tocsr()
        rows.data /= scale[rows.indices]
        blocks.append(rows)
    return canonical(vstack(blocks, format="csr"))
