"""Symmetric matrices of the clients, compressed to what a message holds, and sums with them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.operators.matrices import packed_size


class RankOne(NamedTuple):
    """Matrices c v v'."""

    values: NDArray  # (R, N), the c
    vectors: NDArray  # (R, N, n), the v

    def times(self, factors: NDArray) -> RankOne:
        """Product with `factors` (R, N), of which a zero makes zeros also of what is not finite."""
        kept = factors != 0
        return RankOne(
            np.where(kept, factors * self.values, 0.0), np.where(kept[..., None], self.vectors, 0.0)
        )

    def add_to(self, matrices: NDArray, mean: NDArray, weights: NDArray) -> None:
        """Add each to its client's matrix (R, N, n, n); to `mean` their sum with `weights` (1 or R, N)."""
        from replifed.kernels.symmetric import add_rank_one

        add_rank_one(self.values, self.vectors, matrices)
        weighted = (weights * self.values)[..., None] * self.vectors
        mean += np.matmul(weighted.swapaxes(-1, -2), self.vectors)


class Entries(NamedTuple):
    """Matrices with few entries below the diagonal or on it, and their mirror images."""

    values: NDArray  # (R, N, k)
    places: NDArray  # (R, N, k), n times row plus column

    def times(self, factors: NDArray) -> Entries:
        """See `RankOne.times`."""
        factors = factors[..., None]
        return Entries(np.where(factors != 0, factors * self.values, 0.0), self.places)

    def add_to(self, matrices: NDArray, mean: NDArray, weights: NDArray) -> None:
        """See `RankOne.add_to`."""
        from replifed.kernels.symmetric import add_entries

        weights = np.broadcast_to(weights, self.values.shape[:-1])
        add_entries(self.values, self.places, weights, matrices, mean)


def largest_entries(matrices: NDArray, k: int) -> Entries:
    """Top-k of the lower triangles of symmetric matrices (R, N, n, n).

    Ties go to the first entry, row by row.
    """
    from replifed.kernels.selection import largest_of_triangles

    *clients, n, _ = matrices.shape
    k = min(k, packed_size(n))
    values, places = np.zeros((*clients, k)), np.zeros((*clients, k), np.intp)
    largest_of_triangles(matrices.reshape(-1, n, n), values.reshape(-1, k), places.reshape(-1, k))
    return Entries(values, places)


def subtract(matrices: NDArray, others: NDArray) -> NDArray:
    """Frobenius norms (R, N) of the differences of symmetric matrices (R, N, n, n).

    The lower triangles of `matrices` become those of the differences. Their upper ones are left.
    """
    from replifed.kernels.symmetric import subtract_triangles

    norms = np.empty(matrices.shape[:2])
    subtract_triangles(matrices, others, norms)
    return norms
