"""Least squares over supports, client by client."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import combine, copy, predict

# Corrections after the normal equations; each gains the digits that the squared condition number leaves.
_CORRECTIONS = 4
# Largest size of a correction, relative to the solution, at which the iteration has converged.
_CONVERGED = 1e-13
# Residual, in rounding errors of the columns, up to which the columns fit the targets.
_FITTING = 4
# Length of a step's direction, beside the largest that it can have, from which on it is rounding error.
_ROUNDING = 1e-12


@compiled
def to_minimisers(columns_of, targets, ridge, support, models, converged):
    """Move `models` to the minimisers of |A_i w - y_i|^2 / 2 + ridge_i |w|^2 / 2 over supports.

    Takes A_i' in `columns_of` (S, N, D, m), targets (S, N, m) and ridges (S, N); the mask `support` and
    `models`, zero outside of it, are (R, N, D). Fills the mask `converged` (R, N) of the models that are
    minimisers up to rounding; other models do not change.
    """
    S, N, D, m = columns_of.shape
    largest = 0
    for run in range(len(models)):
        for i in range(N):
            count = 0
            for k in range(D):
                count += support[run, i, k]
            largest = max(largest, count)
    size, indices = max(largest, m), np.empty(D, np.intp)
    all_indices, scratch = np.arange(size), np.empty((largest, m), models.dtype)
    factor, residual = np.empty((size, size), models.dtype), np.empty(m, models.dtype)
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
            converged[run, i] = ridge[s, i] == 0 and _fits(
                columns_of[s, i], support_i, targets[s, i], w, residual
            )
            if converged[run, i]:
                continue
            for a in range(n):
                copy(columns_of[s, i, support_i[a]], A[a])
            step, converged[run, i] = _step(A, targets[s, i], ridge[s, i], w, factor, all_indices)
            if converged[run, i]:
                for a in range(n):
                    models[run, i, support_i[a]] += step[a]


@compiled
def combination(gram, residual, steps):
    """Coefficients c (m,) of the sum A c of `steps` steepest-descent steps on |r - A'w|^2 / 2 from zero.

    Steps have an exact line search; all of it needs `gram` A'A (m, m) and the `residual` r (m,) alone.
    """
    m = len(residual)
    r, direction, c = residual.copy(), np.empty_like(residual), np.zeros_like(residual)
    everyone, trace = np.arange(m), 0.0
    for j in range(m):
        trace += gram[j, j]
    for _ in range(steps):
        predict(gram, everyone, r, direction)
        squared, along, length = 0.0, 0.0, 0.0
        for j in range(m):
            squared += r[j] ** 2
            along += r[j] * direction[j]
            length += direction[j] ** 2
        # Once the columns cannot lower a residual further, the direction is rounding error.
        if not length > (_ROUNDING * trace) ** 2 * squared:
            break
        t = r.dtype.type(along / length)
        for j in range(m):
            c[j] += t * r[j]
            r[j] -= t * direction[j]
    return c


@compiled_within
def _fits(columns, support_i, y, w, residual):
    """Return True if `w` fits the targets exactly on columns that differ by a few rounding errors.

    No computed minimiser is more accurate, and without noise all clients soon start from one.
    """
    copy(y, residual)
    scale = 0.0
    for a in range(len(support_i)):
        if w[a] != 0:
            column, length = columns[support_i[a]], 0.0
            for j in range(len(y)):
                residual[j] -= column[j] * w[a]
                length += column[j] ** 2
            scale += np.sqrt(length) * abs(w[a])
    squared = 0.0
    for j in range(len(y)):
        squared += residual[j] ** 2
    return np.sqrt(squared) <= _FITTING * np.finfo(w.dtype).eps * scale


@compiled_within
def _step(A, y, ridge, w, factor, all_indices):
    """Return the shortest step from `w` (s,) to a minimiser, and True if it converged; A is (s, m)."""
    s, m = A.shape
    step, slope, change = np.zeros(s, w.dtype), np.empty(s, w.dtype), np.empty(s, w.dtype)
    residual, predicted = np.empty(m, w.dtype), np.empty(m, w.dtype)
    tall = s <= m or ridge > 0
    # Normal equations in the smaller of the two spaces, then corrections.
    if tall:
        for a in range(s):
            predict(A, all_indices[: a + 1], A[a], factor[a])
            factor[a, a] += ridge
        n = s
    else:
        B = np.ascontiguousarray(A.T)
        for j in range(m):
            predict(B, all_indices[: j + 1], B[j], factor[j])
        n = m
    if not _cholesky(factor, n):
        return step, False
    size = 0.0
    for _ in range(1 + _CORRECTIONS):
        for a in range(s):
            slope[a] = w[a] + step[a]
        combine(A, all_indices[:s], slope, predicted)
        for j in range(m):
            residual[j] = y[j] - predicted[j]
        if tall:
            predict(A, all_indices[:s], residual, slope)
            for a in range(s):
                change[a] = slope[a] - ridge * (w[a] + step[a])
            _solve(factor, change)
        else:
            _solve(factor, residual)
            predict(A, all_indices[:s], residual, change)
        before, size, length = size, 0.0, 0.0
        for a in range(s):
            step[a] += change[a]
            size += change[a] ** 2
            length += (w[a] + step[a]) ** 2
        size, bound = np.sqrt(size), _CONVERGED * np.sqrt(length)
        # Corrections shrink by the same factor each time: the next one would be size^2 / before.
        if size <= bound or size * size <= bound * before:
            return step, True
    return step, False


@compiled_within
def _cholesky(H, n):
    """Replace the lower triangle of `H` (n, n) by its Cholesky factor; False if it is not definite."""
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


@compiled_within
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
