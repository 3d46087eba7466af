"""Minimisers of clients' losses over models with a given support, batched over clients and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.operators.supports import listed

# Corrections after the normal equations; each gains the digits that squaring the condition number left.
_CORRECTIONS = 4
# Corrections end once they are so small, relative to the solution; a last one above has not converged.
_SETTLED = 1e-13
# The gathered columns of so many clients as fit stay in the cache.
_BLOCK_BYTES = 1 << 20
# Rounding errors of each column that a residual may be made of where the columns fit.
_FITTING = 4
_ROUNDING = 1e-12
_NEWTON_STEPS = 100
_NEWTON_TOLERANCE = 1e-12


def predictions(columns_of: NDArray, models: NDArray, columns: NDArray, real: NDArray) -> NDArray:
    """A_i w_i for models w_i with few non-zeros.

    Parameters
    ----------
    columns_of : array, shape (S, N, D, m)
        A_i'; S is 1 or R.
    models : array, shape (R, N, D)
    columns, real : arrays, shape (R, N, s)
        Where they are not zero, `listed`.

    Returns
    -------
    array, shape (R, N, m)
    """
    S, N, D, m = columns_of.shape
    A = np.take(columns_of.reshape(-1, m), columns + D * np.arange(S * N).reshape(S, N, 1), axis=0)
    w = np.take_along_axis(models, columns, axis=-1)
    w[~real] = 0.0
    return np.matmul(w[..., None, :], A)[..., 0, :]


def least_squares(
    columns_of: NDArray,
    targets: NDArray,
    ridge: NDArray,
    start: NDArray,
    support: NDArray,
    descent_steps: int | None = None,
) -> NDArray:
    """Minimise |A_i w - y_i|^2 / 2 + ridge_i |w|^2 / 2 over w with a given support, for each client.

    Parameters
    ----------
    columns_of : array, shape (S, N, D, m)
        A_i', so that a column of A_i lies in one piece; S is 1 or R.
    targets : array, shape (S, N, m)
    ridge : array, shape (S, N)
        All positive or all zero.
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
    rows, clients, D = support.shape
    S, m = len(columns_of), columns_of.shape[-1]
    solution = np.zeros(start.shape, start.dtype)
    columns, real = listed(support)
    few = max(1, _BLOCK_BYTES // (columns.shape[-1] * m * start.itemsize))
    for row in range(rows):
        of = min(row, S - 1)
        for begin in range(0, clients, few):
            now = slice(begin, begin + few)
            held, counts = columns[row, now], real[row, now]
            places = held + D * np.arange(len(held))[:, None]
            A = np.take(columns_of[of, now].reshape(-1, m), places, axis=0)
            w = np.take(start[row, now], places)
            A[~counts] = 0.0
            w[~counts] = 0.0
            residual = targets[of, now] - np.matmul(w[:, None], A)[:, 0]
            if descent_steps is None:
                w += _to_minimiser(A, residual, w, ridge[of, now, None], counts)
            else:
                w += _descent(A, residual, w, ridge[of, now, None], descent_steps)
            # Entries that do not count share column 0 with one that may: only real ones are written.
            solution[row, now].reshape(-1)[places[counts]] = w[counts]
    return solution


def _to_minimiser(A: NDArray, residual: NDArray, w: NDArray, ridge: NDArray, real: NDArray) -> NDArray:
    """Shortest step from `w` (n, s) to a minimiser; A is (n, s, m), zero where not `real`; ridge (n, 1)."""
    step = np.zeros_like(w)
    todo = np.flatnonzero(~_fits(A, residual, w, ridge))
    if len(todo) == len(w):
        return _solved(A, residual, w, ridge, real)
    if len(todo):
        step[todo] = _solved(A[todo], residual[todo], w[todo], ridge[todo], real[todo])
    return step


def _fits(A: NDArray, residual: NDArray, w: NDArray, ridge: NDArray) -> NDArray:
    """Whether the targets are those of `w` on columns a few rounding errors away from the ones given.

    No computed minimiser is surer than that, and without noise all clients soon start from one.
    """
    if ridge.any():
        return np.zeros(len(w), dtype=bool)
    lengths = np.sqrt(np.einsum("nsm,nsm->ns", A, A))
    scale = np.einsum("ns,ns->n", lengths, np.abs(w))
    return np.linalg.norm(residual, axis=1) <= _FITTING * np.finfo(w.dtype).eps * scale


def _solved(A: NDArray, residual: NDArray, w: NDArray, ridge: NDArray, real: NDArray) -> NDArray:
    """As `_to_minimiser`, whether or not there is anything left to gain."""
    n, s, m = A.shape
    with_ridge = bool(ridge.any())
    tall = s <= m or with_ridge
    step = np.zeros_like(w)
    unsettled = np.arange(n)
    # Normal equations in the smaller of the two spaces, then corrections.
    H = np.matmul(A, A.swapaxes(1, 2)) if tall else np.matmul(A.swapaxes(1, 2), A)
    if tall:
        diagonal = np.einsum("nii->ni", H)
        diagonal += np.where(real, ridge, 1.0)
    try:
        inverse = np.linalg.inv(H)
    except np.linalg.LinAlgError:
        inverse = None
    if inverse is not None:
        size = np.zeros(n)
        left = residual
        with np.errstate(all="ignore"):
            for _ in range(1 + _CORRECTIONS):
                if tall:
                    slope = np.matmul(A, left[..., None])[..., 0]
                    if with_ridge:
                        slope -= ridge * (w + step)
                    change = np.matmul(inverse, slope[..., None])[..., 0]
                else:
                    change = np.matmul(A, np.matmul(inverse, left[..., None]))[..., 0]
                step += change
                # Corrections shrink by the same factor each time: the next one would be size^2 / before.
                before, size = size, np.linalg.norm(change, axis=1)
                most = _SETTLED * np.linalg.norm(w + step, axis=1)
                settled = (size <= most) | (size * (size / before) <= most)
                if settled.all():
                    break
                left = residual - np.matmul(step[:, None], A)[:, 0]
        unsettled = np.flatnonzero(~settled)
    for i in unsettled:
        matrix, right = A[i].T, residual[i]
        if with_ridge:
            matrix = np.concatenate([matrix, np.sqrt(ridge[i]) * np.eye(s)])
            right = np.concatenate([right, -np.sqrt(ridge[i]) * w[i]])
        if np.isfinite(right).all():
            step[i] = np.linalg.lstsq(matrix, right, rcond=None)[0] * real[i]
        else:
            step[i] = np.inf
    return step


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
