"""Feature-sign search: lasso problems, solved exactly for guessed signs of their codes.

H. Lee, A. Battle, R. Raina, A. Ng: Efficient sparse coding algorithms, NeurIPS 2006 (Algorithm 1).
"""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import copy

# Maximum number of exact solves of a problem; each lowers its objective, and 50 unknowns need a few tens.
_MAX_SOLVES = 400
# Largest relative violation of the optimality conditions that counts as rounding.
_TOLERANCE = 1e-12


@compiled
def search_signs(G, dictionary, right, penalty, sweeps, h):
    """Minimise 1/2 h' G h - c' h + penalty |h|_1 from h, in place, for each row c of `right` (n, K).

    Row i has the Gram matrix G[dictionary[i]]. `sweeps` of coordinate descent guess the signs. Then the
    problem is solved exactly for them. If signs of the solution differ, go to the best point on the line to
    it at which a coordinate changes its sign; if all agree, add the coordinate that violates the optimality
    conditions most to the support, or stop.
    """
    n, K = right.shape
    signs, exact, residual, direction = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    support, factor = np.empty(K, np.int64), np.empty((K, K))
    for i in range(n):
        A, c, code = G[dictionary[i]], right[i], h[i]
        _descend(A, c, penalty, sweeps, code, residual)
        size = penalty
        for k in range(K):
            signs[k] = np.sign(code[k])
            size = max(size, penalty + abs(c[k]))
        for _ in range(_MAX_SOLVES):
            if not _solve(A, c, penalty, signs, support, factor, exact):
                _search_line(A, c, penalty, exact, direction, code)
                for k in range(K):
                    signs[k] = np.sign(code[k])
                continue
            copy(exact, code)
            _residual(A, c, code, residual)
            worst, violation = -1, penalty + _TOLERANCE * size
            for k in range(K):
                if signs[k] == 0 and abs(residual[k]) > violation:
                    worst, violation = k, abs(residual[k])
            if worst < 0:
                break
            signs[worst] = np.sign(residual[worst])


@compiled_within
def _residual(A, c, h, residual):
    """Fill `residual` with c - A h."""
    copy(c, residual)
    for l in range(len(c)):  # noqa: E741
        if h[l] != 0:
            for k in range(len(c)):
                residual[k] -= A[l, k] * h[l]


@compiled_within
def _descend(A, c, penalty, sweeps, h, residual):
    """Sweeps of cyclic coordinate descent. Coordinates without a diagonal become 0."""
    _residual(A, c, h, residual)
    for _ in range(sweeps):
        for k in range(len(c)):
            scale = A[k, k]
            r = residual[k] + scale * h[k]
            new = np.sign(r) * max(abs(r) - penalty, 0.0) / scale if scale > 0 else 0.0
            change = new - h[k]
            if change != 0:
                h[k] = new
                for l in range(len(c)):  # noqa: E741
                    residual[l] -= A[k, l] * change


@compiled_within
def _solve(A, c, penalty, signs, support, factor, exact):
    """Fill `exact` with the solution of A_SS h_S = c_S - penalty signs_S; return True if it has these signs.

    By Cholesky factors; with zeros, and False, where A_SS is singular.
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
        agrees &= exact[k] * signs[k] >= 0  # False for NaN
    return agrees


@compiled_within
def _search_line(A, c, penalty, target, direction, h):
    """Move `h` to the sign change on the line to `target`, or to its end, with the lowest objective."""
    K = len(c)
    for k in range(K):
        direction[k] = (target[k] if np.isfinite(target[k]) else 0.0) - h[k]
    slope, curvature = 0.0, 0.0  # the smooth objective at h + t direction is slope t + curvature t^2 / 2
    for k in range(K):
        product, gradient = 0.0, -c[k]
        for l in range(K):  # noqa: E741
            product += A[k, l] * direction[l]
            gradient += A[k, l] * h[l]
        slope += gradient * direction[k]
        curvature += product * direction[k]
    best, lowest = 1.0, np.inf
    for k in range(K):
        t = _crossing(h[k], direction[k])
        value = slope * t + 0.5 * curvature * t * t
        for l in range(K):  # noqa: E741
            value += penalty * abs(h[l] + t * direction[l])
        if value < lowest:
            best, lowest = t, value
    for k in range(K):
        crosses = best < 1 and _crossing(h[k], direction[k]) == best
        h[k] = 0.0 if crosses else h[k] + best * direction[k]


@compiled_within
def _crossing(start, direction):
    """Fraction of the line, from 0 to 1, at which a coordinate changes its sign; 1 if it does not."""
    return -start / direction if start * (start + direction) < 0 else 1.0
