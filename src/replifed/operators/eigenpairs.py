"""Eigenpairs of stacked symmetric matrices: all values with vectors on demand, or the leading pair alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

# Beyond this share of all vectors, all of them are found faster than each of them by inverse iteration.
_FEW = 1 / 4
# LAPACK's best size of blocks; any other is as correct.
_BLOCK = 32
# Up to this size all eigenpairs are found faster than the one of largest magnitude alone.
_DIRECT = 48
# Of Lanczos iteration.
_MOST_STEPS = 160


class Spectra(NamedTuple):
    """What `spectra` finds of symmetric matrices, enough to find their eigenvectors later.

    Attributes
    ----------
    values : array, shape (..., n)
        All eigenvalues, by decreasing size.
    tridiagonal : array, shape (..., 3, n)
        Diagonal and subdiagonal of a tridiagonal matrix with these eigenvalues, and the reflectors' factors.
    reflectors : array, shape (..., n - 1, n - 1)
        Householder's vectors, as rows, which lead from its eigenvectors to the matrix's.
    order : int array, shape (..., n)
        The coordinate that each row and column of the tridiagonal matrix began as.
    """

    values: NDArray
    tridiagonal: NDArray
    reflectors: NDArray
    order: NDArray


def spectra(matrices: NDArray) -> Spectra:
    """All eigenvalues of symmetric matrices (..., n, n), without vectors: about a third of the whole work.

    Notes
    -----
    A coordinate that a matrix couples to no other is an eigenvector as it stands. On sparse data, where
    a client has never seen some features, only the rest is reduced. The eigenvalues of a matrix that is not
    finite are NaN, and its vectors those of the zero matrix.
    """
    *leading, n, _ = matrices.shape
    flat = matrices.reshape(-1, n, n)
    found = empty_spectra((len(flat),), n)
    for H, w, (d, e, tau), rows, order in zip(flat, *found, strict=True):
        diagonal = np.diagonal(H)
        linked = H != 0
        np.fill_diagonal(linked, False)
        is_coupled = linked.any(axis=1)
        coupled, alone = np.flatnonzero(is_coupled), np.flatnonzero(~is_coupled)
        c = len(coupled)
        order[:c], order[c:], d[c:] = coupled, alone, diagonal[alone]
        if c:
            # Symmetric, so that the transpose, in Fortran's order, is the same matrix.
            inner = H[np.ix_(coupled, coupled)].T
            Q, d[:c], e[: c - 1], tau[: c - 1], _ = lapack.dsytrd(
                inner, lower=1, lwork=_BLOCK * c, overwrite_a=1
            )
            rows[: c - 1, : c - 1] = Q[1:, :-1].T
        w[:] = _values(d, e[:-1])
        if np.isnan(w[0]):
            d[:], e[:], tau[:] = 0.0, 0.0, 0.0
    return Spectra(*(field.reshape(*leading, *field.shape[1:]) for field in found))


def empty_spectra(leading: tuple[int, ...], n: int) -> Spectra:
    """Spectra of zero matrices."""
    order = np.zeros((*leading, n), dtype=np.int64)
    return Spectra(
        np.zeros((*leading, n)), np.zeros((*leading, 3, n)), np.zeros((*leading, n - 1, n - 1)), order
    )


def eigenvectors(found: Spectra, count: int) -> NDArray:
    """Unit vectors of the `count` largest eigenvalues.

    Returns
    -------
    array, shape (..., count, n)
        Row i is the vector of `values[..., i]`, its coordinate of largest magnitude is positive.
    """
    *leading, n = found.values.shape
    if n == 1:
        return np.ones((*leading, 1, 1))
    few = count <= _FEW * n
    rows = np.zeros((int(np.prod(leading)), count, n))
    flat = (field.reshape(len(rows), *field.shape[len(leading) :]) for field in found)
    for w, (d, e, tau), reflectors, order, vectors in zip(*flat, rows, strict=True):
        Z = _few_vectors(d, e[:-1], np.nan_to_num(w[:count])) if few else _all_vectors(d, e[:-1])[:, :count]
        inner = np.asfortranarray(Z[1:])
        inner, *_ = lapack.dormqr("L", "N", reflectors.T, tau[:-1], inner, _BLOCK * count, overwrite_c=1)
        vectors[:, order] = _positive(np.vstack([Z[:1], inner]).T)
    return rows.reshape(*leading, count, n)


def _values(d: NDArray, e: NDArray) -> NDArray:
    """Eigenvalues of a tridiagonal matrix, by decreasing size."""
    c = _coupled(e)
    w = d.copy()
    if c:
        w[:c], info = lapack.dsterf(d[:c], e[: c - 1])
        if info:
            return np.full(len(d), np.nan)
    return np.sort(w)[::-1] if np.isfinite(w).all() else np.full(len(d), np.nan)


def _coupled(e: NDArray) -> int:
    """How many rows there are before those that a tridiagonal matrix couples to no other."""
    linked = np.flatnonzero(e)
    return int(linked[-1]) + 2 if len(linked) else 0


def _few_vectors(d: NDArray, e: NDArray, w: NDArray) -> NDArray:
    """Eigenvectors of a tridiagonal matrix's largest eigenvalues `w`, as columns, by inverse iteration."""
    c, k = _coupled(e), len(w)
    Z, inner, left = np.zeros((len(d), k)), [], list(c + np.argsort(d[c:], kind="stable"))
    for column, value in enumerate(w):
        if left and d[left[-1]] == value:  # as it stands, from `_values`
            Z[left.pop(), column] = 1.0
        else:
            inner.append(column)
    if inner:
        # One block for LAPACK, and its eigenvalues by increasing size.
        block, ends = np.ones(c, dtype=np.int32), np.full(c, c, dtype=np.int32)
        found, info = lapack.dstein(d[:c], e[: c - 1], w[inner[::-1]], block, ends)
        if info or not np.isfinite(found).all():
            return _all_vectors(d, e)[:, :k]
        Z[:c, inner[::-1]] = found
    return Z


def _all_vectors(d: NDArray, e: NDArray) -> NDArray:
    """All eigenvectors of a tridiagonal matrix, as columns, by the sizes of their values."""
    _, Z, info = lapack.dstevd(d, e)
    return Z[:, ::-1] if info == 0 else np.full(Z.shape, np.nan)


def _positive(rows: NDArray) -> NDArray:
    """Turn rows so that the entry of largest magnitude is positive."""
    rows = np.ascontiguousarray(rows)
    if not rows.size:
        return rows
    top = np.abs(rows).argmax(axis=1)
    rows[rows[np.arange(len(rows)), top] < 0] *= -1.0
    return rows


def leading_eigenpair(matrices: NDArray, tolerance: float = 1e-8) -> tuple[NDArray, NDArray]:
    """The eigenvalue of largest magnitude, and its unit vector.

    Parameters
    ----------
    matrices : array, shape (..., n, n)
        Symmetric.
    tolerance : float
        Residual |A v - theta v| over |theta| to which larger matrices are solved, in 160 steps at most.

    Returns
    -------
    value : array, shape (...)
    vector : array, shape (..., n)

    Notes
    -----
    By Lanczos iteration with full reorthogonalisation, from one start that is the same in every call.
    NaN for matrices that are not finite.
    """
    *leading, n, _ = matrices.shape
    A = matrices.reshape(-1, n, n)
    if n <= _DIRECT:
        # An eigensolver would stop at what is not finite.
        sound = np.isfinite(A).all(axis=(-2, -1))
        w, V = np.linalg.eigh(np.where(sound[:, None, None], A, 0.0))
        best = np.abs(w).argmax(axis=-1)
        value = np.take_along_axis(w, best[:, None], axis=-1)[:, 0]
        vector = np.take_along_axis(V, best[:, None, None], axis=-1)[..., 0]
        value, vector = np.where(sound, value, np.nan), np.where(sound[:, None], vector, np.nan)
    else:
        value, vector = _lanczos(A, tolerance)
    return value.reshape(leading), vector.reshape(*leading, n)


def _lanczos(A: NDArray, tolerance: float) -> tuple[NDArray, NDArray]:
    from replifed.kernels.lanczos import leading_eigenpairs

    count, n, _ = A.shape
    start = np.random.default_rng(0).standard_normal(n)
    value, vector = np.empty(count), np.empty((count, n))
    A = np.ascontiguousarray(A, dtype=float)
    leading_eigenpairs(A, start / np.linalg.norm(start), tolerance, min(n, _MOST_STEPS), value, vector)
    return value, vector


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
