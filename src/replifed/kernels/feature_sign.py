"""Feature-sign search: lasso problems, solved exactly for the signs that their codes seem to have.

H. Lee, A. Battle, R. Raina, A. Ng: Efficient sparse coding algorithms, NeurIPS 2006 (Algorithm 1).
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled

# Exact solves of one problem; each lowers its objective, and a few tens do for 50 unknowns.
_MOST_SOLVES = 400
# Largest relative violation of the optimality conditions that counts as rounding.
_TOLERANCE = 1e-12


@compiled
def search_signs(G, which, right, penalty, sweeps, h):
    """Minimise 1/2 h' G h - c' h + penalty |h|_1 from h, in place, for each row c of `right` (n, K).

    Row i has the Gram matrix G[which[i]]. Some sweeps of coordinate descent guess the signs. Then: solve
    exactly for them; where some come out otherwise, go to the best of the points at which a coordinate
    changes its sign on the way; where all agree, let in the coordinate that violates the optimality
    conditions most, or stop.
    """
    n, K = right.shape
    signs, exact, residual, way = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    support, factor = np.empty(K, np.int64), np.empty((K, K))
    for i in range(n):
        A, c, now = G[which[i]], right[i], h[i]
        _descend(A, c, penalty, sweeps, now, residual)
        size = penalty
        for k in range(K):
            signs[k] = np.sign(now[k])
            size = max(size, penalty + abs(c[k]))
        for _ in range(_MOST_SOLVES):
            if not _solve(A, c, penalty, signs, support, factor, exact):
                _go_towards(A, c, penalty, exact, way, now)
                for k in range(K):
                    signs[k] = np.sign(now[k])
                continue
            now[:] = exact
            _subtract(A, c, now, residual)
            worst, violation = -1, penalty + _TOLERANCE * size
            for k in range(K):
                if signs[k] == 0 and abs(residual[k]) > violation:
                    worst, violation = k, abs(residual[k])
            if worst < 0:
                break
            signs[worst] = np.sign(residual[worst])


@compiled
def _subtract(A, c, h, residual):
    """residual = c - A h."""
    residual[:] = c
    for l in range(len(c)):  # noqa: E741
        if h[l] != 0:
            for k in range(len(c)):
                residual[k] -= A[l, k] * h[l]


@compiled
def _descend(A, c, penalty, sweeps, h, residual):
    """Sweeps of cyclic coordinate descent. Coordinates without a diagonal become 0."""
    _subtract(A, c, h, residual)
    for _ in range(sweeps):
        for k in range(len(c)):
            scale = A[k, k]
            r = residual[k] + scale * h[k]
            new = np.sign(r) * max(abs(r) - penalty, 0.0) / scale if scale > 0 else 0.0
            moved = new - h[k]
            if moved != 0:
                h[k] = new
                for l in range(len(c)):  # noqa: E741
                    residual[l] -= A[k, l] * moved


@compiled
def _solve(A, c, penalty, signs, support, factor, exact):
    """Fill `exact` with what h is if the signs are right, A_SS h_S = c_S - penalty signs_S; tell if they are.

    By Cholesky factors; zeros where A_SS is singular.
    """
    size = 0
    for k in range(len(c)):
        exact[k] = 0.0
        if signs[k] != 0:
            support[size] = k
            size += 1
    for a in range(size):
        k = support[a]
        for b in range(a + 1):
            total = A[k, support[b]]
            for l in range(b):  # noqa: E741
                total -= factor[a, l] * factor[b, l]
            if b < a:
                factor[a, b] = total / factor[b, b]
            elif total > 0:
                factor[a, a] = np.sqrt(total)
            else:
                exact[:] = 0.0
                return False
        total = c[k] - penalty * signs[k]
        for l in range(a):  # noqa: E741
            total -= factor[a, l] * exact[support[l]]
        exact[k] = total / factor[a, a]
    agrees = True
    for a in range(size - 1, -1, -1):
        k = support[a]
        for l in range(a + 1, size):  # noqa: E741
            exact[k] -= factor[l, a] * exact[support[l]]
        exact[k] /= factor[a, a]
        agrees &= exact[k] * signs[k] >= 0  # not where it is no number
    return agrees


@compiled
def _go_towards(A, c, penalty, target, way, h):
    """Go from `h` to where, on the way to `target`, the objective is least among the changes of sign."""
    K = len(c)
    for k in range(K):
        way[k] = (target[k] if np.isfinite(target[k]) else 0.0) - h[k]
    slope, bend = 0.0, 0.0  # the smooth part of the objective at h + t way is slope t + bend t^2 / 2
    for k in range(K):
        product, gradient = 0.0, -c[k]
        for l in range(K):  # noqa: E741
            product += A[k, l] * way[l]
            gradient += A[k, l] * h[l]
        slope += gradient * way[k]
        bend += product * way[k]
    best, least = 1.0, np.inf
    for k in range(K):
        t = _crossing(h[k], way[k])
        value = slope * t + 0.5 * bend * t * t
        for l in range(K):  # noqa: E741
            value += penalty * abs(h[l] + t * way[l])
        if value < least:
            best, least = t, value
    for k in range(K):
        crosses = best < 1 and _crossing(h[k], way[k]) == best
        h[k] = 0.0 if crosses else h[k] + best * way[k]


@compiled
def _crossing(start, way):
    """Where on the way, from 0 to 1, a coordinate changes its sign; else at the end."""
    return -start / way if start * (start + way) < 0 else 1.0
