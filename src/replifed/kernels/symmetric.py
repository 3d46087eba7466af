"""Sums with symmetric matrices that are known by few numbers, and differences of such matrices."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within

# Rows and columns of a block whose lines, read along and written across, stay in the innermost cache.
_BLOCK = 16


@compiled
def subtract_triangles(A, B, norms):
    """A -= B in the lower triangles of symmetric matrices (R, N, n, n); `norms` (R, N) are those of A - B."""
    R, N, n, _ = A.shape
    for run in range(R):
        for i in range(N):
            total = 0.0
            for j in range(n):
                a, b, below = A[run, i, j], B[run, i, j], 0.0
                for k in range(j + 1):
                    a[k] -= b[k]
                    below += a[k] * a[k]
                total += 2.0 * below - a[j] * a[j]
            norms[run, i] = np.sqrt(total)


@compiled
def add_rank_one(values, vectors, A):
    """A += c v v' for the values c (R, N), vectors v (R, N, n) and matrices A (R, N, n, n)."""
    R, N, n = vectors.shape
    for run in range(R):
        for i in range(N):
            v = vectors[run, i]
            for j in range(n):
                a, factor = A[run, i, j], values[run, i] * v[j]
                for k in range(n):
                    a[k] += factor * v[k]


@compiled
def add_entries(values, places, weights, A, mean):
    """Add entries (R, N, k) below the diagonals, and their mirror images, to A (R, N, n, n).

    Their sums with `weights` (R, N) are added to `mean` (R, n, n). A place is n times row plus column.
    """
    R, N, size = values.shape
    n = mean.shape[-1]
    for run in range(R):
        B = mean[run]
        for i in range(N):
            matrix, p = A[run, i], weights[run, i]
            for s in range(size):
                value, j, k = values[run, i, s], places[run, i, s] // n, places[run, i, s] % n
                matrix[j, k] += value
                B[j, k] += p * value
                if j != k:
                    matrix[k, j] += value
                    B[k, j] += p * value


@compiled_within
def mirror(A):
    """Copy the lower triangle of A (n, n) to the upper one, block by block."""
    n = len(A)
    for first in range(0, n, _BLOCK):
        for column in range(0, first + 1, _BLOCK):
            source = A[first : first + _BLOCK, column : column + _BLOCK]
            target = A[column : column + _BLOCK, first : first + _BLOCK]
            rows, columns = source.shape
            for k in range(columns):
                # On the diagonal, from below it alone.
                for j in range(k + 1 if first == column else 0, rows):
                    target[k, j] = source[j, k]
