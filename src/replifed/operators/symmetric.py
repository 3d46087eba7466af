"""Symmetric matrices, of which the lower triangle is sent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replifed.operators.hard_threshold import hard_threshold


def packed_size(n: int) -> int:
    """Entries of the lower triangle, n (n + 1)/2."""
    return n * (n + 1) // 2


def keep_largest_entries(matrices: NDArray, k: int) -> NDArray:
    """Top-k of the lower triangles of symmetric matrices (..., n, n), in place.

    Ties go to the first entry, row by row; what is kept is kept on both sides of the diagonal.
    """
    n = matrices.shape[-1]
    if k < packed_size(n):
        stack, lower = matrices.reshape(-1, n, n), np.flatnonzero(np.tri(n, dtype=bool))
        kept = hard_threshold(np.take(stack.reshape(-1, n * n), lower, axis=1), k)
        which, entry = np.nonzero(kept)
        row, column = np.divmod(lower[entry], n)
        stack[:] = 0.0
        stack[which, row, column] = stack[which, column, row] = kept[which, entry]
    return matrices
