"""Eigenpairs of stacked symmetric matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Up to this size all eigenpairs are found faster than the one of largest magnitude alone.
_DIRECT = 48
# Numbers of Lanczos steps after which the error is looked at, which costs as much as several steps.
_LOOKS = (12, 20, 32, 48, 72, 108, 160)


def eigenpairs(matrices: NDArray) -> tuple[NDArray, NDArray]:
    """All eigenpairs, by decreasing eigenvalue.

    Parameters
    ----------
    matrices : array, shape (..., n, n)
        Symmetric.

    Returns
    -------
    values : array, shape (..., n)
    vectors : array, shape (..., n, n)
        Row i is the unit vector of `values[..., i]`; its coordinate of largest magnitude is positive.

    Notes
    -----
    A coordinate that a matrix couples to no other is an eigenvector as it stands. On sparse data, where
    a client has never seen some features, only the rest is decomposed: half the work on w8a, and exact.
    """
    *leading, n, _ = matrices.shape
    flat = matrices.reshape(-1, n, n)
    values, vectors = np.empty((len(flat), n)), np.empty((len(flat), n, n))
    for H, found, rows in zip(flat, values, vectors, strict=True):
        diagonal = np.diagonal(H)
        coupled = np.flatnonzero(np.count_nonzero(H, axis=1) > (diagonal != 0))
        if len(coupled) == n:
            w, V = np.linalg.eigh(H)
            found[:], rows[:] = w[::-1], _positive(V.T[::-1])
            continue
        w, V = np.linalg.eigh(H[np.ix_(coupled, coupled)])
        alone = np.setdiff1d(np.arange(n), coupled, assume_unique=True)
        unordered = np.concatenate([w[::-1], diagonal[alone]])
        order = np.argsort(-unordered, kind="stable")
        place = np.argsort(order)  # where each of the unordered ones goes
        found[:], rows[:] = unordered[order], 0.0
        rows[np.ix_(place[: len(w)], coupled)] = _positive(V.T[::-1])
        rows[place[len(w) :], alone] = 1.0
    return values.reshape(*leading, n), vectors.reshape(*leading, n, n)


def _positive(rows: NDArray) -> NDArray:
    """Turn rows so that the entry of largest magnitude is positive."""
    rows = np.ascontiguousarray(rows)
    if not rows.size:
        return rows
    top = np.abs(rows).argmax(axis=1)
    rows[rows[np.arange(len(rows)), top] < 0] *= -1.0
    return rows


def leading_eigenpair(matrices: NDArray, tolerance: float = 1e-5) -> tuple[NDArray, NDArray]:
    """The eigenvalue of largest magnitude, and its unit vector.

    Parameters
    ----------
    matrices : array, shape (..., n, n)
        Symmetric.
    tolerance : float
        Residual |A v - theta v| over |theta| to which larger matrices are solved.

    Returns
    -------
    value : array, shape (...)
    vector : array, shape (..., n)

    Notes
    -----
    By Lanczos iteration on all matrices at once, with full reorthogonalisation, from one start that is
    the same in every call.
    """
    *leading, n, _ = matrices.shape
    A = matrices.reshape(-1, n, n)
    if n <= _DIRECT:
        w, V = np.linalg.eigh(A)
        best = np.abs(w).argmax(axis=-1)
        value = np.take_along_axis(w, best[:, None], axis=-1)[:, 0]
        vector = np.take_along_axis(V, best[:, None, None], axis=-1)[..., 0]
    else:
        value, vector = _lanczos(A, tolerance)
    return value.reshape(leading), vector.reshape(*leading, n)


def _lanczos(A: NDArray, tolerance: float) -> tuple[NDArray, NDArray]:
    count, n, _ = A.shape
    most = min(n, _LOOKS[-1])
    start = np.random.default_rng(0).standard_normal(n)
    Q = np.zeros((count, most, n))
    Q[:, 0] = start / np.linalg.norm(start)
    T = np.zeros((count, most, most))
    for k in range(most):
        r = np.matmul(A, Q[:, k, :, None])[..., 0]
        T[:, k, k] = np.einsum("ij,ij->i", r, Q[:, k])
        known = Q[:, : k + 1]
        for _ in range(2):
            r -= np.matmul(np.matmul(known, r[..., None]).swapaxes(1, 2), known)[:, 0]
        beta = np.linalg.norm(r, axis=-1)
        last = k + 1 == most
        if last or k + 1 in _LOOKS:
            w, S = np.linalg.eigh(T[:, : k + 1, : k + 1])
            best = np.abs(w).argmax(axis=-1)
            theta = np.take_along_axis(w, best[:, None], axis=-1)[:, 0]
            s = np.take_along_axis(S, best[:, None, None], axis=-1)[..., 0]
            if last or np.all(beta * np.abs(s[:, -1]) <= tolerance * np.abs(theta)):
                break
        # An invariant subspace is exhausted: its matrix goes on with zeros.
        open_ = beta > 1e-14 * np.abs(T[:, : k + 1, : k + 1]).max(axis=(1, 2))
        T[:, k, k + 1] = T[:, k + 1, k] = np.where(open_, beta, 0.0)
        Q[:, k + 1] = np.where(open_, 1.0 / np.where(open_, beta, 1.0), 0.0)[:, None] * r
    vector = np.matmul(s[:, None], Q[:, : k + 1])[:, 0]
    norm = np.linalg.norm(vector, axis=-1, keepdims=True)
    return theta, vector / np.where(norm > 0, norm, 1.0)
