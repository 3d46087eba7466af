"""Minimisers of clients' losses over models with a given support, batched over clients and runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_NEWTON_STEPS = 100
_NEWTON_TOLERANCE = 1e-12


def least_squares(
    columns_of: NDArray, targets: NDArray, ridge: NDArray, start: NDArray, support: NDArray
) -> NDArray:
    """Minimise |A_i w - y_i|^2 / 2 + ridge_i |w|^2 / 2 over w with a given support, for each client.

    `columns_of` are A_i', (S, N, D, m), so that a column of A_i is contiguous, for targets (S, N, m) and
    ridges (S, N); the first R / S runs share the first data set, and so on. `start` and the mask `support`
    are (R, N, D). Of several minimisers, as on a support larger than m, it is the nearest to `start`.
    """
    from replifed.kernels.least_squares import to_minimisers

    solution = np.array(start, order="C")
    converged = np.empty(support.shape[:2], dtype=bool)
    targets = np.ascontiguousarray(targets, start.dtype)
    to_minimisers(columns_of, targets, ridge, np.ascontiguousarray(support), solution, converged)
    for run, client in np.argwhere(~converged):
        indices, data_set = np.flatnonzero(support[run, client]), run * len(columns_of) // len(start)
        A, w = columns_of[data_set, client, indices].T, start[run, client, indices]
        y, weight = targets[data_set, client], np.sqrt(ridge[data_set, client])
        if weight > 0:
            A = np.concatenate([A, weight * np.eye(len(indices))])
        residual = np.pad(y, (0, len(A) - len(y))) - A @ w
        finite = np.isfinite(residual).all() and np.isfinite(A).all()
        solution[run, client, indices] = w + np.linalg.lstsq(A, residual, rcond=None)[0] if finite else np.inf
    return solution


def descent(
    columns_of: NDArray, targets: NDArray, ridge: NDArray, start: NDArray, support: NDArray, steps: int
) -> NDArray:
    """Models after `steps` steps of steepest descent with exact line search; losses of `least_squares`."""
    solution = np.zeros_like(start)
    for run, client in np.ndindex(*support.shape[:2]):
        data_set, mask = run * len(columns_of) // len(start), support[run, client]
        A, w = columns_of[data_set, client, mask], start[run, client, mask]
        residual = targets[data_set, client] - w @ A
        solution[run, client, mask] = w + _descent(A, residual, w, ridge[data_set, client], steps)
    return solution


def _descent(A: NDArray, residual: NDArray, w: NDArray, ridge: float, steps: int) -> NDArray:
    """Sum of `steps` steepest-descent steps from `w` (s,); A is (s, m).

    Without a ridge all steps are combinations of samples, A c: the iteration then runs on the residual,
    with the samples' Gram matrix, at m x m a step.
    """
    if ridge > 0:
        step = np.zeros_like(w)
        for _ in range(steps):
            g = A @ (residual - step @ A) - ridge * (w + step)
            predicted = g @ A
            curvature = predicted @ predicted + ridge * (g @ g)
            step = step + (g @ g) / np.maximum(curvature, np.finfo(w.dtype).tiny) * g
        return step
    from replifed.kernels.least_squares import combination

    return A @ combination(A.T @ A, residual, steps)


def newton(problem: Any, start: NDArray, support: NDArray) -> NDArray:
    """Minimise each client's loss of linear predictions over a support by Newton's method.

    Iterations stop when a step no longer lowers the loss. Steps are halved until the loss falls; with a
    singular Hessian, the shortest Newton step is taken. For small models.
    """
    solution = start.copy()
    S, loss, C = len(problem.X), problem.loss_function, problem.loss_function.n_outputs
    for run, client in np.ndindex(*support.shape[:2]):
        data_set = run * S // len(start)
        X, y = problem.X[data_set, client], problem.y[data_set, client]
        weight = problem.sample_weights[data_set, client]
        feature, output = np.divmod(np.flatnonzero(support[run, client]), C)
        if not len(feature):
            continue
        A = X[:, feature]
        of_output = output[:, None] == np.arange(C)

        def value(w: NDArray, A=A, of_output=of_output, y=y, weight=weight) -> float:
            z = A @ (w[:, None] * of_output)
            return float(weight @ loss.value(z, y) + 0.5 * problem.l2 * (w @ w))

        w = solution[run, client, support[run, client]]
        for _ in range(_NEWTON_STEPS):
            z = A @ (w[:, None] * of_output)
            r = loss.derivative(z, y) * weight[:, None]
            g = (A * r[:, output]).sum(axis=0) + problem.l2 * w
            h = loss.second_derivative(z, y) * weight[:, None, None]
            pairs = h[:, output[:, None], output[None, :]]
            H = np.einsum("ma,mab,mb->ab", A, pairs, A) + problem.l2 * np.eye(len(w))
            if not (np.isfinite(H).all() and np.isfinite(g).all()):  # diverged; an SVD would not converge
                w = np.full_like(w, np.inf)
                break
            step = np.linalg.lstsq(H, -g, rcond=1e-12)[0]
            current, t = value(w), 1.0
            while value(w + t * step) > current and t > 1e-10:
                t /= 2
            if not value(w + t * step) <= current:
                break
            w = w + t * step
            if abs(g @ step) <= _NEWTON_TOLERANCE**2 * max(abs(current), 1.0):
                break
        solution[run, client, support[run, client]] = w
    return solution
