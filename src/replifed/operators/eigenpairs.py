"""Eigenpairs of stacked symmetric matrices: all of them, or the leading pair alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

# LAPACK's best size of blocks; any other is as correct.
_BLOCK = 32
# Of Lanczos iteration.
_MOST_STEPS = 160


def eigenpairs(matrices: NDArray) -> tuple[NDArray, NDArray]:
    """All eigenvalues of symmetric matrices (..., n, n), by decreasing size, and their unit vectors.

    Returns
    -------
    values : array, shape (..., n)
        NaN for matrices that are not finite.
    vectors : array, shape (..., n, n)
        Row i is the vector of values[..., i]; its coordinate of largest magnitude is positive, since an
        eigensolver leaves the sign to chance.
    """
    # numpy's `eigh` stops at what is not finite: there of zeros.
    finite = np.isfinite(matrices).all(axis=(-2, -1))
    w, V = np.linalg.eigh(matrices if finite.all() else np.where(finite[..., None, None], matrices, 0.0))
    vectors = np.ascontiguousarray(V.swapaxes(-1, -2)[..., ::-1, :])
    top = np.abs(vectors).argmax(axis=-1)[..., None]
    vectors *= np.where(np.take_along_axis(vectors, top, axis=-1) < 0, -1.0, 1.0)
    return np.where(finite[..., None], w[..., ::-1], np.nan), vectors


def leading_eigenpair(matrices: NDArray, tolerance: float = 1e-8) -> tuple[NDArray, NDArray]:
    """The eigenvalue of largest magnitude, and its unit vector.

    Parameters
    ----------
    matrices : array, shape (..., n, n)
        Symmetric.
    tolerance : float
        Residual |A v - theta v| over |theta|, reached in 160 steps at most.

    Returns
    -------
    value : array, shape (...)
    vector : array, shape (..., n)

    Notes
    -----
    By Lanczos iteration with full reorthogonalisation, from one start that is the same in every call.
    NaN for matrices that are not finite.
    """
    from replifed.kernels.lanczos import leading_eigenpairs

    *leading, n, _ = matrices.shape
    A = np.ascontiguousarray(matrices, dtype=float).reshape(-1, n, n)
    start = np.random.default_rng(0).standard_normal(n)
    value, vector = np.empty(len(A)), np.empty((len(A), n))
    leading_eigenpairs(A, start / np.linalg.norm(start), tolerance, min(n, _MOST_STEPS), value, vector)
    return value.reshape(leading), vector.reshape(*leading, n)


def apply_inverse(H: NDArray, g: NDArray, least: float) -> NDArray:
    """V max(Lambda, `least`)^{-1} V' g for one symmetric matrix H = V Lambda V' (n, n), g (n,).

    Notes
    -----
    No vector of H itself is needed: g is led to the tridiagonal matrix that H is similar to, and back.
    """
    n = len(g)
    if n == 1:
        return g / np.maximum(H[0], least)
    Q, d, e, tau, _ = lapack.dsytrd(H.T, lower=1, lwork=_BLOCK * n)
    w, Z, info = lapack.dstevd(d, e)
    if info:  # what was finite has overflowed
        return np.full(n, np.nan)
    reflectors, b = np.asfortranarray(Q[1:, :-1]), g[:, None].copy()
    b[1:], *_ = lapack.dormqr("L", "T", reflectors, tau, np.asfortranarray(b[1:]), _BLOCK)
    b = Z @ ((Z.T @ b) / np.maximum(w, least)[:, None])
    b[1:], *_ = lapack.dormqr("L", "N", reflectors, tau, np.asfortranarray(b[1:]), _BLOCK)
    return b[:, 0]
