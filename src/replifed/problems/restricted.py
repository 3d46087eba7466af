"""Minimisers of clients' losses over models with a given support, batched over clients and runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Clients are taken in blocks whose gathered columns fit into the cache.
_BLOCK_BYTES = 1 << 20
_ROUNDING = 1e-12
_NEWTON_STEPS = 100
_NEWTON_TOLERANCE = 1e-12


def least_squares(
    columns_of: NDArray, targets: NDArray, ridge: NDArray, start: NDArray, support: NDArray
) -> NDArray:
    """Minimise |A_i w - y_i|^2 / 2 + ridge_i |w|^2 / 2 over w with a given support, for each client.

    `columns_of` are A_i', (S, N, D, m), so that a column of A_i lies in one piece, for targets (S, N, m) and
    ridges (S, N); the first R / S runs share the first data set, and so on. `start` and the mask `support`
    are (R, N, D). Where minimisers are many (a support larger than m, say), it is the one nearest to `start`.
    """
    from replifed.kernels.least_squares import to_minimisers

    solution = np.array(start, order="C")
    settled = np.empty(support.shape[:2], dtype=bool)
    targets = np.ascontiguousarray(targets, start.dtype)
    to_minimisers(columns_of, targets, ridge, np.ascontiguousarray(support), solution, settled)
    for run, client in np.argwhere(~settled):
        free, of = np.flatnonzero(support[run, client]), run * len(columns_of) // len(start)
        A, w, weight = columns_of[of, client, free].T, start[run, client, free], np.sqrt(ridge[of, client])
        if weight > 0:
            A = np.concatenate([A, weight * np.eye(len(free))])
        right = np.pad(targets[of, client], (0, len(A) - len(targets[of, client]))) - A @ w
        finite = np.isfinite(right).all() and np.isfinite(A).all()
        solution[run, client, free] = w + np.linalg.lstsq(A, right, rcond=None)[0] if finite else np.inf
    return solution


def descent(
    columns_of: NDArray, targets: NDArray, ridge: NDArray, start: NDArray, support: NDArray, steps: int
) -> NDArray:
    """As `least_squares`, by so many steps of steepest descent, each of the best length."""
    runs, clients, D = support.shape
    S, m = len(columns_of), columns_of.shape[-1]
    solution = np.zeros(start.shape, start.dtype)
    columns, real = padded_indices(support)
    few = max(1, _BLOCK_BYTES // (columns.shape[-1] * m * start.itemsize))
    for run in range(runs):
        of = run * S // runs
        for begin in range(0, clients, few):
            now = slice(begin, begin + few)
            chosen, counts = columns[run, now], real[run, now]
            index = chosen + D * np.arange(len(chosen))[:, None]
            A = np.take(columns_of[of, now].reshape(-1, m), index, axis=0)
            w = np.take(start[run, now], index)
            A[~counts] = 0.0
            w[~counts] = 0.0
            residual = targets[of, now] - np.matmul(w[:, None], A)[:, 0]
            w += _descent(A, residual, w, ridge[of, now, None], steps)
            # Padding points at column 0: only real entries are written.
            solution[run, now].reshape(-1)[index[counts]] = w[counts]
    return solution


def padded_indices(support: NDArray) -> tuple[NDArray, NDArray]:
    """Supports, masks (..., D), as lists (..., s) in increasing order, then zeros; which entries count."""
    D = support.shape[-1]
    which, column = np.divmod(np.flatnonzero(support), D)
    counts = np.bincount(which, minlength=support.size // D).reshape(support.shape[:-1])
    real = np.arange(max(counts.max(initial=0), 1)) < counts[..., None]
    columns = np.zeros(real.shape, dtype=np.intp)
    columns[real] = column
    return columns, real


def _descent(A: NDArray, residual: NDArray, w: NDArray, ridge: NDArray, steps: int) -> NDArray:
    """Sum of `steps` steepest-descent steps from `w` (n, s); A is (n, s, m), ridge (n, 1).

    Without a ridge all steps are combinations of samples, A c: the iteration then runs on the residual,
    with the samples' Gram matrix, at m x m a step.
    """
    if ridge.any():
        step = np.zeros_like(w)
        for _ in range(steps):
            left = residual - np.matmul(step[:, None], A)[:, 0]
            g = np.matmul(A, left[..., None])[..., 0] - ridge * (w + step)
            moved = np.matmul(g[:, None], A)[:, 0]
            step = step + _best(_dot(g, g), _dot(moved, moved) + ridge * _dot(g, g)) * g
        return step
    gram = np.matmul(A.swapaxes(1, 2), A)
    c = np.zeros_like(residual)
    # Once the columns cannot lower a residual further, the direction is rounding error.
    rounding = (_ROUNDING * np.einsum("nmm->n", gram)[:, None]) ** 2
    for _ in range(steps):
        moved = np.matmul(gram, residual[..., None])[..., 0]
        length = _dot(moved, moved)
        t = np.where(length > rounding * _dot(residual, residual), _best(_dot(residual, moved), length), 0.0)
        c = c + t * residual
        residual = residual - t * moved
    return np.matmul(A, c[..., None])[..., 0]


def _dot(a: NDArray, b: NDArray) -> NDArray:
    return np.einsum("ni,ni->n", a, b)[:, None]


def _best(gain: NDArray, curvature: NDArray) -> NDArray:
    return gain / np.maximum(curvature, np.finfo(curvature.dtype).tiny)


def newton(problem: Any, start: NDArray, support: NDArray) -> NDArray:
    """Minimise each client's loss of linear predictions over a support by Newton's method.

    Until a step gains nothing more; steps are halved until the loss falls, and the shortest one is taken
    where the Hessian is singular. Not meant for large models.
    """
    solution = start.copy()
    S, loss, C = len(problem.X), problem.loss_function, problem.loss_function.n_outputs
    for run, client in np.ndindex(*support.shape[:2]):
        of = run * S // len(start)
        X, y = problem.X[of, client], problem.y[of, client]
        weight = problem.sample_weights[of, client]
        feature, output = np.divmod(np.flatnonzero(support[run, client]), C)
        if not len(feature):
            continue
        A = X[:, feature]
        same = output[:, None] == np.arange(C)

        def value(w: NDArray, A=A, same=same, y=y, weight=weight) -> float:
            z = A @ (w[:, None] * same)
            return float(weight @ loss.value(z, y) + 0.5 * problem.l2 * (w @ w))

        w = solution[run, client, support[run, client]]
        for _ in range(_NEWTON_STEPS):
            z = A @ (w[:, None] * same)
            r = loss.derivative(z, y) * weight[:, None]
            g = (A * r[:, output]).sum(axis=0) + problem.l2 * w
            h = loss.second_derivative(z, y) * weight[:, None, None]
            pairs = h[:, output[:, None], output[None, :]]
            H = np.einsum("ma,mab,mb->ab", A, pairs, A) + problem.l2 * np.eye(len(w))
            if not (np.isfinite(H).all() and np.isfinite(g).all()):  # lost; an SVD would not converge
                w = np.full_like(w, np.inf)
                break
            step = np.linalg.lstsq(H, -g, rcond=1e-12)[0]
            now, t = value(w), 1.0
            while value(w + t * step) > now and t > 1e-10:
                t /= 2
            if not value(w + t * step) <= now:
                break
            w = w + t * step
            if abs(g @ step) <= _NEWTON_TOLERANCE**2 * max(abs(now), 1.0):
                break
        solution[run, client, support[run, client]] = w
    return solution
