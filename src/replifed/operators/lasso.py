"""Batches of lasso problems: many right-hand sides for each of a few Gram matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Sweeps of coordinate descent before the first exact solve: enough to find most supports.
_SWEEPS = 6
_SWEEPS_FROM_GUESS = 2
# Largest relative violation of the optimality conditions that is accepted.
_ACCEPTED = 1e-9
# Share of its diagonal that is added to a singular Gram matrix: well above rounding.
_RIDGE = 1e-13
# Maximum number of proximal points of one problem. One is enough unless codes of 1e4 and above are optimal.
_MAX_POINTS = 30


def lasso(G: NDArray, C: NDArray, penalty: float, guess: NDArray | None = None) -> NDArray:
    """Minimise 1/2 h' G h - c' h + penalty |h|_1 over h, for every c.

    Parameters
    ----------
    G : array, shape (B, K, K)
        Gram matrices D'D, one per dictionary.
    C : array, shape (B, m, K)
        Correlations D'z of m samples with each dictionary.
    penalty : float
        Above 0.
    guess : array, shape (B, m, K), optional
        Codes of similar problems. They save time and change nothing beyond the last digits.

    Returns
    -------
    array, shape (B, m, K)
        Minimisers: |c - G h|_k <= penalty, and (c - G h)_k = penalty sign(h_k) where h_k is not 0, up to
        1e-9 (|c|_inf + penalty). NaN where G or c is not finite, or where rounding error is too large to
        find them, as with nearly equal atoms and a small penalty, where optimal codes reach 1e5.

    Notes
    -----
    By feature-sign search, see `kernels.feature_sign`. A zero column of D (an unused atom) has the code 0.

    Linearly dependent atoms, such as more atoms than features, make its linear systems singular. Then, and if
    the codes found are not optimal, `_proximal_points` finds one of the minimisers.
    """
    B, m, K = C.shape
    G = np.broadcast_to(G, (B, K, K))
    finite = np.isfinite(G).all(axis=(1, 2)) & np.isfinite(C).all(axis=(1, 2))
    if not finite.all():
        # NaN codes tell a method that it has diverged; the search would not end.
        codes = np.full((B, m, K), np.nan)
        if finite.any():
            codes[finite] = lasso(G[finite], C[finite], penalty)
        return codes
    sweeps = _SWEEPS_FROM_GUESS
    if guess is None or not np.isfinite(guess).all():
        guess, sweeps = np.zeros_like(C), _SWEEPS
    h, start, right = np.zeros((B * m, K)), guess.reshape(B * m, K), C.reshape(B * m, K)
    dictionary, regular = np.repeat(np.arange(B), m), np.repeat(~_dependent(G), m)
    h[regular] = _searched(G, dictionary[regular], right[regular], start[regular], penalty, sweeps)
    residual = C - h.reshape(B, m, K) @ G
    failed = np.flatnonzero(~(regular & _optimal(residual.reshape(B * m, K), right, h, penalty)))
    if failed.size:
        h[failed] = _proximal_points(G, dictionary[failed], right[failed], penalty)
    return h.reshape(B, m, K)


def _searched(
    G: NDArray, dictionary: NDArray, right: NDArray, h: NDArray, penalty: float, sweeps: int
) -> NDArray:
    """Minimisers for rows `right` (n, K), with the Gram matrices G[dictionary]; overwrites the starts `h`."""
    from replifed.kernels.feature_sign import search_signs

    search_signs(np.ascontiguousarray(G), dictionary, right, penalty, sweeps, h)
    return h


def _proximal_points(G: NDArray, dictionary: NDArray, right: NDArray, penalty: float) -> NDArray:
    """Codes of n problems with dependent atoms, shape (n, K); NaN where they are not optimal.

    By the proximal point method (Rockafellar, SIAM J. Control Optim. 1976) from 0: each of its problems adds
    1e-13 |h - h_last|^2 / 2 in the norm of G's diagonal, so that its systems have one solution, and its
    minimiser lowers the objective.
    """
    K = G.shape[1]
    h, rest = np.zeros_like(right), np.arange(len(right))
    ridge = _RIDGE * G[:, range(K), range(K)]
    regular = G + ridge[:, :, None] * np.eye(K)
    for _ in range(_MAX_POINTS):
        its = dictionary[rest]
        h[rest] = _searched(regular, its, right[rest] + ridge[its] * h[rest], h[rest], penalty, 0)
        residual = right[rest] - np.einsum("nij,nj->ni", G[its], h[rest])
        rest = rest[~_optimal(residual, right[rest], h[rest], penalty)]
        if not rest.size:
            break
    h[rest] = np.nan
    return h


def _dependent(G: NDArray) -> NDArray:
    """Mask (B,) of the Gram matrices whose non-zero atoms, scaled to length one, are linearly dependent."""
    K = G.shape[1]
    length = np.sqrt(G[:, range(K), range(K)])
    length[length == 0] = 1.0
    cosines = G / length[:, :, None] / length[:, None, :]
    cosines[:, range(K), range(K)] = 1.0
    return np.linalg.eigvalsh(cosines)[:, 0] <= _RIDGE


def _optimal(residual: NDArray, right: NDArray, h: NDArray, penalty: float) -> NDArray:
    """Mask (n,) of the codes h (n, K) with c - G h = residual that meet the optimality conditions."""
    signs = np.sign(h)
    violation = np.abs(residual - penalty * signs) - penalty * (signs == 0)
    # Violations are mostly rounding errors: the largest of all is a cheap first test.
    if violation.max() <= _ACCEPTED * penalty:
        return np.ones(len(h), dtype=bool)
    return violation.max(axis=1) <= _ACCEPTED * (np.abs(right).max(axis=1) + penalty)
