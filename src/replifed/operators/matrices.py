"""Stacks of linear systems and of symmetric matrices, their eigenpairs, and restricted eigenvalues."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Block size of LAPACK, for speed alone.
_BLOCK = 32
# Maximum number of steps of Lanczos iteration.
_MAX_STEPS = 160


def solve_each(A: NDArray, b: NDArray) -> NDArray:
    """A^{-1} b for stacks A (..., n, n) and b (..., n, k) of one length; NaN where A is singular.

    `numpy.linalg.solve` would fail for the whole stack, also for runs that could continue.
    """
    try:
        return np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        if A.ndim == 2:
            return np.full(b.shape, np.nan)
        return np.stack([solve_each(*system) for system in zip(A, b, strict=True)])


def packed_size(n: int) -> int:
    """Number of entries of a symmetric matrix's lower triangle, which is sent in place of the matrix."""
    return n * (n + 1) // 2


def eigenpairs(matrices: NDArray) -> tuple[NDArray, NDArray]:
    """All eigenvalues of symmetric matrices (..., n, n), in decreasing order, and their unit vectors.

    Returns
    -------
    values : array, shape (..., n)
        NaN for matrices that are not finite.
    vectors : array, shape (..., n, n)
        Row i is the vector of values[..., i]; its coordinate of largest magnitude is positive, since
        eigensolvers do not define the sign.
    """
    # numpy's `eigh` fails for matrices that are not finite: zeros take their place.
    finite = np.isfinite(matrices).all(axis=(-2, -1))
    w, V = np.linalg.eigh(matrices if finite.all() else np.where(finite[..., None, None], matrices, 0.0))
    vectors = np.ascontiguousarray(V.swapaxes(-1, -2)[..., ::-1, :])
    top = np.abs(vectors).argmax(axis=-1)[..., None]
    vectors *= np.where(np.take_along_axis(vectors, top, axis=-1) < 0, -1.0, 1.0)
    return np.where(finite[..., None], w[..., ::-1], np.nan), vectors


def leading_eigenpair(matrices: NDArray, tolerance: float = 1e-8) -> tuple[NDArray, NDArray]:
    """Eigenvalues (...) of largest magnitude of symmetric matrices (..., n, n), and unit vectors (..., n).

    By Lanczos iteration with full reorthogonalisation, from a fixed start, until
    |A v - theta v| <= `tolerance` |theta|, in 160 steps at most. NaN for matrices that are not finite. Reads
    their lower triangles alone.
    """
    from replifed.kernels.lanczos import leading_eigenpairs

    *leading, n, _ = matrices.shape
    A = np.ascontiguousarray(matrices, dtype=float).reshape(-1, n, n)
    start = np.random.default_rng(0).standard_normal(n)
    value, vector = np.empty(len(A)), np.empty((len(A), n))
    leading_eigenpairs(A, start / np.linalg.norm(start), tolerance, min(n, _MAX_STEPS), value, vector)
    return value.reshape(leading), vector.reshape(*leading, n)


def apply_inverse(H: NDArray, g: NDArray, floor: float) -> NDArray:
    """V max(Lambda, `floor`)^{-1} V' g for one symmetric matrix H = V Lambda V' (n, n), g (n,).

    No eigenvector of H itself is computed: g is mapped to the basis in which H is tridiagonal, and back.
    """
    from scipy.linalg import lapack

    n = len(g)
    if n == 1:
        return g / np.maximum(H[0], floor)
    Q, d, e, tau, _ = lapack.dsytrd(H.T, lower=1, lwork=_BLOCK * n)
    w, Z, info = lapack.dstevd(d, e)
    if info:  # finite entries have overflowed
        return np.full(n, np.nan)
    reflectors, b = np.asfortranarray(Q[1:, :-1]), g[:, None].copy()
    b[1:], *_ = lapack.dormqr("L", "T", reflectors, tau, np.asfortranarray(b[1:]), _BLOCK)
    b = Z @ ((Z.T @ b) / np.maximum(w, floor)[:, None])
    b[1:], *_ = lapack.dormqr("L", "N", reflectors, tau, np.asfortranarray(b[1:]), _BLOCK)
    return b[:, 0]


def restricted_eigenvalues(
    A: NDArray, size: int, rng: np.random.Generator, trials: int = 50
) -> tuple[float, float]:
    """Smallest and largest eigenvalue of A_S' A_S over random supports S of `size` columns of A (m, d).

    The extremes over all supports are at most this smallest and at least this largest value.
    """
    extremes = []
    for _ in range(trials):
        columns = A[:, rng.choice(A.shape[1], size, replace=False)]
        extremes.append(np.linalg.svd(columns, compute_uv=False)[[0, -1]] ** 2)
    squared = np.array(extremes)
    low = 0.0 if size > A.shape[0] else float(squared[:, 1].min())
    return low, float(squared[:, 0].max())


def isometry_constant(A: NDArray, size: int, rng: np.random.Generator, trials: int = 50) -> float:
    """Estimate, from below, the smallest delta with (1 - delta)|z|^2 <= |A z|^2 <= (1 + delta)|z|^2."""
    low, high = restricted_eigenvalues(A, size, rng, trials)
    return max(high - 1, 1 - low)


def stable_rank(B: NDArray) -> float:
    """|B|_F^2 / |B|^2."""
    values = np.linalg.svd(B, compute_uv=False)
    return float((values**2).sum() / values[0] ** 2)
