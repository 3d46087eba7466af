"""The lower triangle of symmetric matrices as a vector."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray


def packed_size(n: int) -> int:
    """Entries of the lower triangle, n (n + 1)/2."""
    return n * (n + 1) // 2


@cache
def _places(n: int) -> tuple[NDArray, NDArray]:
    """Where the packed entries stand in the matrix, and where each entry of the matrix is packed."""
    row, column = np.tril_indices(n)
    places = np.empty((n, n), dtype=np.intp)
    places[row, column] = places[column, row] = np.arange(len(row))
    return row * n + column, places.ravel()


def pack(matrices: NDArray) -> NDArray:
    """Lower triangles, row by row: (..., n, n) to (..., n (n + 1)/2)."""
    n = matrices.shape[-1]
    return matrices.reshape(*matrices.shape[:-2], n * n)[..., _places(n)[0]]


def unpack(packed: NDArray, n: int) -> NDArray:
    """The symmetric matrices that `pack` made vectors of."""
    return packed[..., _places(n)[1]].reshape(*packed.shape[:-1], n, n)
