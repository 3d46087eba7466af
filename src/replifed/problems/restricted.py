"""Minimisers of clients' losses over models with a given support, batched over clients and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Corrections after the normal equations; each gains the digits that squaring the condition number left.
_CORRECTIONS = 4
# Corrections end once they are so small, relative to the solution; a last one above has not converged.
_SETTLED = 1e-13
# The gathered columns of so many clients as fit stay in the cache.
_BLOCK_BYTES = 1 << 20
_ROUNDING = 1e-12
_NEWTON_STEPS = 100
_NEWTON_TOLERANCE = 1e-12


def listed(support: NDArray) -> tuple[NDArray, NDArray]:
    """Turn supports (..., D), boolean, into lists of equal length.

    Returns
    -------
    columns : int array, shape (..., s)
        The support in increasing order, then zeros.
    real : boolean array, shape (..., s)
        Which entries of `columns` count.
    """
    flat = support.reshape(-1, support.shape[-1])
    counts = np.count_nonzero(flat, axis=1)
    owner, column = np.nonzero(flat)
    size = max(int(counts.max(initial=0)), 1)
    columns = np.zeros((len(flat), size), dtype=np.intp)
    columns[owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)] = column
    real = np.arange(size) < counts[:, None]
    shape = (*support.shape[:-1], size)
    return columns.reshape(shape), real.reshape(shape)


def least_squares(
    columns_of: NDArray,
    targets: NDArray,
    l2: float,
    start: NDArray,
    support: NDArray,
    descent_steps: int | None = None,
) -> NDArray:
    """Minimise |A_i w - y_i|^2 / 2 + l2 |w|^2 / 2 over w with a given support, for each client.

    Parameters
    ----------
    columns_of : array, shape (S, N, D, m)
        A_i', so that a column of A_i lies in one piece; S is 1 or R.
    targets : array, shape (S, N, m)
    l2 : float
    start : array, shape (R, N, D)
        With support in `support`.
    support : boolean array, shape (R, N, D)
    descent_steps : int, optional
        Take so many steps of steepest descent instead, each as long as gains most.

    Returns
    -------
    array, shape (R, N, D)
        Where minimisers are many (a support larger than m, say), the one nearest to `start`.
    """
    rows, clients, _ = support.shape
    S, m = len(columns_of), columns_of.shape[-1]
    solution = np.zeros_like(start)
    columns, real = listed(support)
    size = columns.shape[-1]
    few = max(1, _BLOCK_BYTES // (size * m * start.itemsize))
    for row in range(rows):
        of = min(row, S - 1)
        for begin in range(0, clients, few):
            now = np.arange(begin, min(begin + few, clients))
            held = columns[row, now]
            A = columns_of[of, now[:, None], held]
            if not real[row, now].all():
                A *= real[row, now][..., None]
            w = np.take_along_axis(start[row, now], held, axis=1) * real[row, now]
            residual = targets[of, now] - np.matmul(w[:, None], A)[:, 0]
            if descent_steps is None:
                w = w + _to_minimiser(A, residual, w, l2, real[row, now])
            else:
                w = w + _descent(A, residual, w, l2, descent_steps)
            # Entries that do not count share column 0 with one that may: only real ones are written.
            owner, place = np.nonzero(real[row, now])
            solution[row, now[owner], held[owner, place]] = w[owner, place]
    return solution


def _to_minimiser(A: NDArray, residual: NDArray, w: NDArray, l2: float, real: NDArray) -> NDArray:
    """Shortest step from `w` (n, s) to a minimiser; A is (n, s, m), zero where not `real`."""
    n, s, m = A.shape
    tall = s <= m or l2 > 0
    step = np.zeros_like(w)
    unsettled = np.arange(n)
    # Normal equations in the smaller of the two spaces, then corrections.
    H = np.matmul(A, A.swapaxes(1, 2)) if tall else np.matmul(A.swapaxes(1, 2), A)
    if tall:
        diagonal = np.einsum("nii->ni", H)
        diagonal += np.where(real, l2, 1.0)
    try:
        inverse = np.linalg.inv(H)
    except np.linalg.LinAlgError:
        inverse = None
    if inverse is not None:
        with np.errstate(all="ignore"):
            for _ in range(1 + _CORRECTIONS):
                left = residual - np.matmul(step[:, None], A)[:, 0]
                if tall:
                    slope = np.matmul(A, left[..., None]) - (l2 * (w + step))[..., None]
                    change = np.matmul(inverse, slope)[..., 0]
                else:
                    change = np.matmul(A, np.matmul(inverse, left[..., None]))[..., 0]
                step = step + change
                settled = np.linalg.norm(change, axis=1) <= _SETTLED * np.linalg.norm(w + step, axis=1)
                if settled.all():
                    break
        unsettled = np.flatnonzero(~settled)
    for i in unsettled:
        matrix, right = A[i].T, residual[i]
        if l2 > 0:
            matrix = np.concatenate([matrix, np.sqrt(l2) * np.eye(s)])
            right = np.concatenate([right, -np.sqrt(l2) * w[i]])
        if np.isfinite(right).all():
            step[i] = np.linalg.lstsq(matrix, right, rcond=None)[0] * real[i]
        else:
            step[i] = np.inf
    return step


def _descent(A: NDArray, residual: NDArray, w: NDArray, l2: float, steps: int) -> NDArray:
    """Sum of `steps` steepest-descent steps from `w` (n, s); A is (n, s, m).

    Without a ridge all steps are combinations of samples, A c: the iteration then runs on the residual,
    with the samples' Gram matrix, at m x m a step.
    """
    if l2 > 0:
        step = np.zeros_like(w)
        for _ in range(steps):
            left = residual - np.matmul(step[:, None], A)[:, 0]
            g = np.matmul(A, left[..., None])[..., 0] - l2 * (w + step)
            moved = np.matmul(g[:, None], A)[:, 0]
            step = step + _best(_dot(g, g), _dot(moved, moved) + l2 * _dot(g, g)) * g
        return step
    gram = np.matmul(A.swapaxes(1, 2), A)
    c = np.zeros_like(residual)
    # Residuals that the columns cannot lower further move by rounding errors, which are no direction.
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


def newton(problem: Any, start: NDArray, support: NDArray, steps: int | None) -> NDArray:
    """Minimise each client's loss of linear predictions over a support by Newton's method.

    Parameters
    ----------
    problem : DenseLinearModel
    start, support : arrays, shape (R, N, D)
    steps : int or None
        None stops when a step gains nothing more. Steps are halved until the loss falls; where the
        Hessian is singular, the shortest one is taken.

    Notes
    -----
    Client by client: a Hessian of s x s outweighs the loop, and nothing here is meant for large models.
    """
    solution = start.copy()
    S, loss, C = len(problem.X), problem.loss_function, problem.loss_function.n_outputs
    for row, client in np.ndindex(*support.shape[:2]):
        of = min(row, S - 1)
        X, y = problem.X[of, client], problem.y[of, client]
        weight = problem.sample_weights[of, client]
        feature, output = np.divmod(np.flatnonzero(support[row, client]), C)
        if not len(feature):
            continue
        A = X[:, feature]
        same = output[:, None] == np.arange(C)

        def value(w: NDArray, A=A, same=same, y=y, weight=weight) -> float:
            z = A @ (w[:, None] * same)
            return float(weight @ loss.value(z, y) + 0.5 * problem.l2 * (w @ w))

        w = solution[row, client, support[row, client]]
        for _ in range(_NEWTON_STEPS if steps is None else steps):
            z = A @ (w[:, None] * same)
            r = loss.derivative(z, y) * weight[:, None]
            g = (A * r[:, output]).sum(axis=0) + problem.l2 * w
            h = loss.second_derivative(z, y) * weight[:, None, None]
            pairs = h[:, output[:, None], output[None, :]]
            H = np.einsum("ma,mab,mb->ab", A, pairs, A) + problem.l2 * np.eye(len(w))
            step = np.linalg.lstsq(H, -g, rcond=1e-12)[0]
            now, t = value(w), 1.0
            while value(w + t * step) > now and t > 1e-10:
                t /= 2
            if not value(w + t * step) <= now:
                break
            w = w + t * step
            if abs(g @ step) <= _NEWTON_TOLERANCE**2 * max(abs(now), 1.0):
                break
        solution[row, client, support[row, client]] = w
    return solution
