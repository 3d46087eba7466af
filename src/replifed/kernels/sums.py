"""Sums inside compiled loops, where numpy's own take long to compile or need BLAS."""

from __future__ import annotations

from replifed.kernels import compiled


@compiled
def dot(a, b):
    """Sum of a_j b_j for arrays of one length."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total
