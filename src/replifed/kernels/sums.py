"""Sums and lengths inside compiled loops, where numpy's functions take long to compile or need BLAS."""

from __future__ import annotations

from replifed.kernels import compiled


@compiled
def dot(a, b):
    """Sum of a_j b_j for arrays of one length."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled
def longest(bounds):
    """Length of the longest of segments, given by where they begin, and where the last one ends."""
    most = 0
    for s in range(len(bounds) - 1):
        most = max(most, bounds[s + 1] - bounds[s])
    return most
