"""Symmetric matrices, of which the lower triangle is sent."""

from __future__ import annotations

from numpy.typing import NDArray


def packed_size(n: int) -> int:
    """Entries of the lower triangle, n (n + 1)/2."""
    return n * (n + 1) // 2


def keep_largest_entries(matrices: NDArray, k: int) -> NDArray:
    """Top-k of the lower triangles of symmetric matrices (..., n, n), in place.

    Ties go to the first entry, row by row; what is kept is kept on both sides of the diagonal.
    """
    from replifed.kernels.selection import keep_largest_of_triangles

    n = matrices.shape[-1]
    if k < packed_size(n):
        keep_largest_of_triangles(matrices.reshape(-1, n, n), k)
    return matrices
