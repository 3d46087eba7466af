"""Eigenpair of largest magnitude of symmetric matrices, by Lanczos iteration."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import copy, dot

# Steps between two checks of the error, each of which costs about as much as a step.
_CHECK_EVERY = 4
# Laguerre's iteration is of third order, and comes from outside all roots: it needs about six.
_MAX_CORRECTIONS = 100


@compiled
def leading_eigenpairs(matrices, start, tolerance, max_steps, values, vectors):
    """Fill `values` (c,) and `vectors` (c, n), by Lanczos iteration with full reorthogonalisation.

    From the unit vector `start`, until the residual |A v - theta v| is `tolerance` |theta|, in at most
    `max_steps` <= n steps. NaN for a matrix that is not finite; the value of a zero matrix is zero.
    """
    n = len(start)
    Q = np.empty((max_steps, n))
    r, components, s = np.empty(n), np.empty(max_steps), np.empty(max_steps)
    # Diagonal and subdiagonal of the tridiagonal matrix.
    d, e = np.empty(max_steps), np.empty(max_steps)
    for i in range(len(matrices)):
        A = matrices[i]
        copy(start, Q[0])
        theta, size = 0.0, 0.0
        for k in range(max_steps):
            _times_symmetric(A, Q[k], r)
            d[k] = dot(r, Q[k])
            if not np.isfinite(d[k]):
                theta, s[0] = np.nan, np.nan
                break
            # What exact arithmetic leaves to subtract.
            for j in range(n):
                r[j] -= d[k] * Q[k, j]
            if k > 0:
                for j in range(n):
                    r[j] -= e[k - 1] * Q[k - 1, j]
            before, beta = np.inf, np.sqrt(dot(r, r))
            # A vector that is much shorter afterwards is not orthogonal to working precision.
            while beta < 0.5 * before:
                before = beta
                _orthogonalise(r, Q[: k + 1], components)
                beta = np.sqrt(dot(r, r))
            size = max(size, abs(d[k]))
            # On an invariant subspace only rounding error remains.
            ends = k + 1 == max_steps or not beta > 1e-14 * size
            if ends or (k + 1) % _CHECK_EVERY == 0:
                theta = largest_of_tridiagonal(d[: k + 1], e[:k], s[: k + 1])
                if ends or beta * abs(s[k]) <= tolerance * abs(theta):
                    break
            e[k] = beta
            size = max(size, beta)
            for j in range(n):
                Q[k + 1, j] = r[j] / beta
        values[i] = theta
        vector = vectors[i]
        vector[:] = 0.0
        for m in range(k + 1):
            for j in range(n):
                vector[j] += s[m] * Q[m, j]
        vector /= np.sqrt(dot(vector, vector))


@compiled_within
def _times_symmetric(A, q, r):
    """r = A q for a symmetric matrix, of which the lower half is read, four rows at a time."""
    n = len(q)
    fours = n // 4 * 4
    for j in range(n):
        r[j] = 0.0
    for i in range(0, fours, 4):
        a, b, c, d = A[i], A[i + 1], A[i + 2], A[i + 3]
        s, t, u, v = 0.0, 0.0, 0.0, 0.0
        for j in range(i):
            s += a[j] * q[j]
            t += b[j] * q[j]
            u += c[j] * q[j]
            v += d[j] * q[j]
            r[j] += a[j] * q[i] + b[j] * q[i + 1] + c[j] * q[i + 2] + d[j] * q[i + 3]
        # The block on the diagonal, written out: a loop over its triangle takes longer.
        w, x, y, z = q[i], q[i + 1], q[i + 2], q[i + 3]
        r[i] = s + a[i] * w + b[i] * x + c[i] * y + d[i] * z
        r[i + 1] = t + b[i] * w + b[i + 1] * x + c[i + 1] * y + d[i + 1] * z
        r[i + 2] = u + c[i] * w + c[i + 1] * x + c[i + 2] * y + d[i + 2] * z
        r[i + 3] = v + d[i] * w + d[i + 1] * x + d[i + 2] * y + d[i + 3] * z
    for i in range(fours, n):
        for j in range(i):
            r[i] += A[i, j] * q[j]
            r[j] += A[i, j] * q[i]
        r[i] += A[i, i] * q[i]


@compiled_within
def _orthogonalise(r, Q, components):
    """Subtract from `r` its components along the orthonormal rows of Q."""
    for m in range(len(Q)):
        components[m] = dot(Q[m], r)
    for m in range(len(Q)):
        for j in range(len(r)):
            r[j] -= components[m] * Q[m, j]


@compiled
def largest_of_tridiagonal(d, e, s):
    """Return the eigenvalue of largest magnitude of a tridiagonal matrix; fill `s` with its unit vector."""
    top, bottom = _largest(d, e, 1.0), -_largest(d, e, -1.0)
    theta = top if abs(top) >= abs(bottom) else bottom
    _vector(d, e, theta, s)
    return theta


@compiled_within
def _largest(d, e, sign):
    """Largest eigenvalue of `sign` times a tridiagonal matrix, by Laguerre's iteration from above.

    The logarithmic derivatives of the characteristic polynomial come from those of the pivots
    q_i = (x - d_i) - e_{i-1}^2 / q_{i-1}, which are positive above all eigenvalues.
    """
    n = len(d)
    x, scale, before = -np.inf, 0.0, 0.0
    for i in range(n):
        after = abs(e[i]) if i + 1 < n else 0.0
        x = max(x, sign * d[i] + before + after)
        scale = max(scale, abs(d[i]) + before + after)
        before = after
    for _ in range(_MAX_CORRECTIONS):
        # p'/p and -(p'/p)', as sums over the pivots.
        first, second = 0.0, 0.0
        q, slope, curvature, square = 1.0, 0.0, 0.0, 0.0
        for i in range(n):
            ratio = square / q
            # slope = q'/q and curvature = q''/q, still of the previous pivot.
            dq, ddq = 1.0 + ratio * slope, ratio * (curvature - 2.0 * slope * slope)
            q = x - sign * d[i] - ratio
            # At an eigenvalue, or below it by rounding.
            if not q > 0.0:
                return x
            slope, curvature = dq / q, ddq / q
            first += slope
            second += slope * slope - curvature
            square = e[i] * e[i] if i + 1 < n else 0.0
        step = n / (first + np.sqrt(max((n - 1) * (n * second - first * first), 0.0)))
        x -= step
        if step <= 4e-16 * scale:
            return x
    return x


@compiled_within
def _vector(d, e, theta, s):
    """Fill `s` with the unit vector of the eigenvalue `theta` at an end of the spectrum.

    By the pivots p_i, computed from the last row up and all of one sign: s_i = -e_{i-1} s_{i-1} / p_i. The
    first coordinate is the component along the start of the Lanczos iteration, and not small.
    """
    n = len(d)
    tiny = 1e-300
    p = d[n - 1] - theta
    for i in range(n - 1, 0, -1):
        s[i] = -e[i - 1] / (p if p != 0.0 else tiny)
        p = d[i - 1] - theta + e[i - 1] * s[i]
    s[0] = 1.0
    norm = 1.0
    for i in range(1, n):
        s[i] *= s[i - 1]
        norm += s[i] * s[i]
    s /= np.sqrt(norm)
