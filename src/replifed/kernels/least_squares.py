"""Least squares over supports, client by client."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import combine, predict

# Corrections after the normal equations; each gains the digits that squaring the condition number left.
_CORRECTIONS = 4
# Corrections end once they are so small, relative to the solution; a last one above has not converged.
_SETTLED = 1e-13
# Rounding errors of each column that a residual may be made of where the columns fit.
_FITTING = 4


@compiled
def to_minimisers(columns_of, targets, ridge, support, models, settled):
    """Move `models` to the minimisers of |A_i w - y_i|^2 / 2 + ridge_i |w|^2 / 2 over supports.

    Of A_i' in `columns_of` (S, N, D, m), targets (S, N, m) and ridges (S, N); the mask `support` and
    `models`, zero outside of it, are (R, N, D). Fills the mask `settled` (R, N) with whether the minimiser
    has been found to rounding; other models stay where they were.
    """
    S, N, D, m = columns_of.shape
    longest = 0
    for run in range(len(models)):
        for i in range(N):
            count = 0
            for k in range(D):
                count += support[run, i, k]
            longest = max(longest, count)
    size, indices = max(longest, m), np.empty(D, np.intp)
    everyone, scratch = np.arange(size), np.empty((longest, m), models.dtype)
    factor, left = np.empty((size, size), models.dtype), np.empty(m, models.dtype)
    for run in range(len(models)):
        for i in range(N):
            s, n = run * S // len(models), 0
            for a in range(D):
                # Without a branch: indices outside the support are overwritten.
                indices[n] = a
                n += support[run, i, a]
            support_i = indices[:n]
            A, w = scratch[:n], np.empty(n, models.dtype)
            for a in range(n):
                w[a] = models[run, i, support_i[a]]
            settled[run, i] = ridge[s, i] == 0 and _fits(columns_of[s, i], support_i, targets[s, i], w, left)
            if settled[run, i]:
                continue
            for a in range(n):
                A[a] = columns_of[s, i, support_i[a]]
            step, settled[run, i] = _step(A, targets[s, i], ridge[s, i], w, factor, everyone)
            if settled[run, i]:
                for a in range(n):
                    models[run, i, support_i[a]] += step[a]


@compiled
def _fits(columns, support_i, y, w, left):
    """Whether the targets are those of `w` on columns a few rounding errors away from the ones given.

    No computed minimiser is surer than that, and without noise all clients soon start from one.
    """
    left[:] = y
    scale = 0.0
    for a in range(len(support_i)):
        if w[a] != 0:
            column, length = columns[support_i[a]], 0.0
            for j in range(len(y)):
                left[j] -= column[j] * w[a]
                length += column[j] ** 2
            scale += np.sqrt(length) * abs(w[a])
    residual = 0.0
    for j in range(len(y)):
        residual += left[j] ** 2
    return np.sqrt(residual) <= _FITTING * np.finfo(w.dtype).eps * scale


@compiled
def _step(A, y, ridge, w, factor, everyone):
    """Shortest step from `w` (s,) to a minimiser, and whether it was found; A is (s, m)."""
    s, m = A.shape
    step, slope, change = np.zeros(s, w.dtype), np.empty(s, w.dtype), np.empty(s, w.dtype)
    left, moved = np.empty(m, w.dtype), np.empty(m, w.dtype)
    tall = s <= m or ridge > 0
    # Normal equations in the smaller of the two spaces, then corrections.
    if tall:
        for a in range(s):
            predict(A, everyone[: a + 1], A[a], factor[a])
            factor[a, a] += ridge
        n = s
    else:
        B = np.ascontiguousarray(A.T)
        for j in range(m):
            predict(B, everyone[: j + 1], B[j], factor[j])
        n = m
    if not _cholesky(factor, n):
        return step, False
    size = 0.0
    for _ in range(1 + _CORRECTIONS):
        for a in range(s):
            slope[a] = w[a] + step[a]
        combine(A, everyone[:s], slope, moved)
        for j in range(m):
            left[j] = y[j] - moved[j]
        if tall:
            predict(A, everyone[:s], left, slope)
            for a in range(s):
                change[a] = slope[a] - ridge * (w[a] + step[a])
            _solve(factor, change)
        else:
            _solve(factor, left)
            predict(A, everyone[:s], left, change)
        before, size, length = size, 0.0, 0.0
        for a in range(s):
            step[a] += change[a]
            size += change[a] ** 2
            length += (w[a] + step[a]) ** 2
        size, most = np.sqrt(size), _SETTLED * np.sqrt(length)
        # Corrections shrink by the same factor each time: the next one would be size^2 / before.
        if size <= most or size * size <= most * before:
            return step, True
    return step, False


@compiled
def _cholesky(H, n):
    """Replace the lower triangle of `H` (n, n) by its factor; say whether it is positive definite."""
    for i in range(n):
        for j in range(i + 1):
            total = H[i, j]
            for k in range(j):
                total -= H[i, k] * H[j, k]
            if j < i:
                H[i, j] = total * H[j, j]
            elif total > 0:
                H[i, i] = 1 / np.sqrt(total)  # inverses on the diagonal save divisions
            else:
                return False
    return True


@compiled
def _solve(L, x):
    """Solve L L' z = x in place, with inverses on the diagonal of L."""
    n = len(x)
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total * L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] *= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]
