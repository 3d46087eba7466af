"""Restricted eigenvalues: what a matrix does to sparse vectors, estimated on random supports."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def restricted_eigenvalues(
    A: NDArray, size: int, rng: np.random.Generator, trials: int = 50
) -> tuple[float, float]:
    """Smallest and largest eigenvalue of A_S' A_S over random supports S of `size` columns of A (m, d).

    The true extremes over all supports lie outside: at most the smallest, at least the largest.
    """
    extremes = []
    for _ in range(trials):
        chosen = A[:, rng.choice(A.shape[1], size, replace=False)]
        extremes.append(np.linalg.svd(chosen, compute_uv=False)[[0, -1]] ** 2)
    squared = np.array(extremes)
    low = 0.0 if size > A.shape[0] else float(squared[:, 1].min())
    return low, float(squared[:, 0].max())


def isometry_constant(A: NDArray, size: int, rng: np.random.Generator, trials: int = 50) -> float:
    """Estimate, from below, the least delta with (1 - delta)|z|^2 <= |A z|^2 <= (1 + delta)|z|^2."""
    low, high = restricted_eigenvalues(A, size, rng, trials)
    return max(high - 1, 1 - low)


def stable_rank(B: NDArray) -> float:
    """|B|_F^2 / |B|^2."""
    values = np.linalg.svd(B, compute_uv=False)
    return float((values**2).sum() / values[0] ** 2)
