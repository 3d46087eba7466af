"""Lasso problems by the thousand: many right-hand sides for each of a few Gram matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Sweeps of coordinate descent before the first exact solve: enough to find most supports.
_SWEEPS = 6
_SWEEPS_FROM_GUESS = 2
# Exact solves of one problem; each lowers its objective, and a few tens do for 50 unknowns.
_MOST_SOLVES = 400
# Largest relative violation of the optimality conditions that counts as rounding.
_TOLERANCE = 1e-12
# Largest one of codes that are returned.
_ACCEPTED = 1e-9
# Share of its diagonal that is added to a singular Gram matrix: well above rounding.
_RIDGE = 1e-13
# Proximal points of one problem. The first will do, except where codes of 1e4 and above are optimal.
_MOST_POINTS = 30


def lasso(G: NDArray, C: NDArray, penalty: float, guess: NDArray | None = None) -> NDArray:
    """Minimise 1/2 h' G h - c' h + penalty |h|_1 over h, for every c.

    Parameters
    ----------
    G : array, shape (B, K, K)
        Gram matrices D'D, one a dictionary.
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
        1e-9 (|c|_inf + penalty). NaN where G or c is not finite, or where rounding hides the minimiser:
        dependent atoms so alike, and a penalty so small, that codes of 1e5 and above are optimal.

    Notes
    -----
    A few sweeps of cyclic coordinate descent guess the signs. Then feature-sign search (Lee, Battle, Raina,
    Ng, Efficient sparse coding algorithms, NeurIPS 2006), over all samples at once: solve exactly for them;
    where some come out otherwise, go to the best of the points at which a coordinate changes its sign on the
    way; where all agree, let in the coordinate that violates the optimality conditions most, or stop. A zero
    column of D (an unused atom) keeps the code 0.

    Dependent atoms, such as more of them than features, make these systems singular. There, and where codes
    turn out not to be optimal, `_proximal_points` finds one of the minimisers.
    """
    B, m, K = C.shape
    G = np.broadcast_to(G, (B, K, K))
    finite = np.isfinite(G).all(axis=(1, 2)) & np.isfinite(C).all(axis=(1, 2))
    if not finite.all():
        # NaN codes show a method that it has blown up; the search would never end.
        codes = np.full((B, m, K), np.nan)
        if finite.any():
            codes[finite] = lasso(G[finite], C[finite], penalty)
        return codes
    sweeps = _SWEEPS_FROM_GUESS
    if guess is None or not np.isfinite(guess).all():
        guess, sweeps = np.zeros_like(C), _SWEEPS
    h = _sweep(G, C, guess, penalty, sweeps).reshape(B * m, K)
    which, right = np.repeat(np.arange(B), m), C.reshape(B * m, K)
    regular = ~_dependent(G)[which]
    _search_signs(G, which, right, h, penalty, np.flatnonzero(regular))
    residual = C - h.reshape(B, m, K) @ G
    failed = np.flatnonzero(~(regular & _optimal(residual.reshape(B * m, K), right, h, penalty)))
    if failed.size:
        h[failed] = _proximal_points(G, which[failed], right[failed], penalty)
    return h.reshape(B, m, K)


def _proximal_points(G: NDArray, which: NDArray, right: NDArray, penalty: float) -> NDArray:
    """Codes of n problems with dependent atoms, shape (n, K); NaN where they do not come out optimal.

    By the proximal point method (Rockafellar, SIAM J. Control Optim. 1976) from 0: each problem of it adds
    |h - h_last|^2 / 2 in a norm of 1e-13 times that of G's diagonal, so that its systems have one solution,
    and its minimiser lowers the objective.
    """
    K = G.shape[1]
    h, left = np.zeros_like(right), np.arange(len(right))
    near = _RIDGE * G[:, range(K), range(K)]
    for _ in range(_MOST_POINTS):
        near_last = right + near[which] * h
        _search_signs(G + near[:, :, None] * np.eye(K), which, near_last, h, penalty, left)
        residual = right[left] - _product(G, which[left], h[left])
        left = left[~_optimal(residual, right[left], h[left], penalty)]
        if not left.size:
            break
    h[left] = np.nan
    return h


def _dependent(G: NDArray) -> NDArray:
    """Whether the used atoms of each Gram matrix, brought to length one, are dependent, shape (B,)."""
    K = G.shape[1]
    length = np.sqrt(G[:, range(K), range(K)])
    length[length == 0] = 1.0
    cosines = G / length[:, :, None] / length[:, None, :]
    cosines[:, range(K), range(K)] = 1.0
    return np.linalg.eigvalsh(cosines)[:, 0] <= _RIDGE


def _optimal(residual: NDArray, right: NDArray, h: NDArray, penalty: float) -> NDArray:
    """Whether codes h with c - G h = residual meet the optimality conditions, (n, K) -> (n,)."""
    signs = np.sign(h)
    violation = np.abs(residual - penalty * signs) - penalty * (signs == 0)
    # Codes are seldom worse than rounding, and the largest of all takes no time to find.
    if violation.max() <= _ACCEPTED * penalty:
        return np.ones(len(h), dtype=bool)
    return violation.max(axis=1) <= _ACCEPTED * (np.abs(right).max(axis=1) + penalty)


def _sweep(G: NDArray, C: NDArray, start: NDArray, penalty: float, sweeps: int) -> NDArray:
    """Coordinate descent from `start`, shape (B, m, K)."""
    K = C.shape[2]
    # One row a coordinate: what a step touches is contiguous.
    c, h = (np.ascontiguousarray(array.transpose(0, 2, 1)) for array in (C, start))
    for _ in range(sweeps):
        for k in range(K):
            scale = G[:, k, k, None]
            r = c[:, k] - (G[:, k, None, :] @ h)[:, 0] + scale * h[:, k]
            r -= np.clip(r, -penalty, penalty)
            np.divide(r, scale, out=h[:, k], where=scale > 0)
    return np.ascontiguousarray(h.transpose(0, 2, 1))


def _search_signs(
    G: NDArray, which: NDArray, right: NDArray, h: NDArray, penalty: float, left: NDArray
) -> None:
    """Feature-sign search for the problems `left` of n, in place.

    Problem i has the Gram matrix G[which[i]], c in right[i], and in h[i] its start, replaced by its solution.
    """
    signs = np.sign(h[left])
    for _ in range(_MOST_SOLVES):
        gram, c, now = which[left], right[left], h[left]
        exact = _solve(G, gram, c, signs, penalty)
        agrees = (exact * signs >= 0).all(axis=1) & np.isfinite(exact).all(axis=1)
        now[agrees] = exact[agrees]
        turned = ~agrees
        if turned.any():
            now[turned] = _go_towards(exact[turned], now[turned], G, gram[turned], c[turned], penalty)
        h[left] = now
        # Where a coordinate has come to 0, it leaves; a coordinate that is let in has its sign already.
        signs = np.where(turned[:, None], np.sign(now), signs)
        residual = c - _product(G, gram, now)
        size = np.where(signs != 0, 0.0, np.abs(residual))
        worst = size.argmax(axis=1)
        slack = _TOLERANCE * (np.abs(c).max(axis=1) + penalty)
        rows = np.arange(len(left))
        enters = agrees & (size[rows, worst] > penalty + slack)
        signs[rows[enters], worst[enters]] = np.sign(residual[enters, worst[enters]])
        going = enters | turned
        if not going.any():
            return
        left, signs = left[going], signs[going]


def _solve(G: NDArray, gram: NDArray, c: NDArray, signs: NDArray, penalty: float) -> NDArray:
    """Solution if the signs were known: G_SS h_S = c_S - penalty * signs_S, 0 off the support S."""
    support = signs != 0
    sizes = support.sum(axis=1)
    out = np.zeros_like(c)
    # Supports are small: systems of k equations, size by size, take a fraction of the time of K each.
    for size in range(1, c.shape[1] + 1):
        rows = np.flatnonzero(sizes == size)
        if rows.size:
            active = np.nonzero(support[rows])[1].reshape(len(rows), size)
            systems = G[gram[rows, None, None], active[:, :, None], active[:, None, :]]
            at = rows[:, None], active
            out[at] = _solutions(systems, c[at] - penalty * signs[at])
    return out


def _product(matrices: NDArray, which: NDArray, vectors: NDArray) -> NDArray:
    """matrices[which] @ vectors, shape (n, K), without a copy of each matrix where few are used often."""
    n, K = vectors.shape
    if n < 4 * len(matrices):
        return (matrices[which] @ vectors[:, :, None])[:, :, 0]
    out = np.empty((n, K))
    for number in np.unique(which):
        rows = np.flatnonzero(which == number)
        out[rows] = vectors[rows] @ matrices[number].T
    return out


def _solutions(systems: NDArray, right: NDArray) -> NDArray:
    try:
        return np.linalg.solve(systems, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        # A pivot came out as 0: the least-norm solution will do, and `_optimal` judges it.
        return (np.linalg.pinv(systems, rcond=1e-13, hermitian=True) @ right[:, :, None])[:, :, 0]


def _go_towards(
    target: NDArray, h: NDArray, G: NDArray, gram: NDArray, c: NDArray, penalty: float
) -> NDArray:
    """Go from `h` to where, on the way to `target`, the objective is least among the changes of sign."""
    target = np.where(np.isfinite(target), target, 0.0)
    way = target - h
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where((h != 0) & (h * target < 0), h / (h - target), 1.0)
    # h(t) = h + t * way; the smooth part of the objective is slope * t + bend * t^2 / 2.
    product = _product(G, gram, way)
    slope = ((_product(G, gram, h) - c) * way).sum(axis=1)
    bend = (product * way).sum(axis=1)
    points = h[:, None, :] + crossing[:, :, None] * way[:, None, :]
    value = slope[:, None] * crossing + 0.5 * bend[:, None] * crossing**2
    value += penalty * np.abs(points).sum(axis=2)
    best = value.argmin(axis=1)
    rows = np.arange(len(h))
    t = crossing[rows, best]
    moved = h + t[:, None] * way
    moved[(crossing == t[:, None]) & (t < 1)[:, None]] = 0.0
    return moved
