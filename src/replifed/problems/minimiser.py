"""The exact minimiser of a smooth, strongly convex problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.operators.matrices import solve_each
from replifed.problems.base import HessianProducts

_MOST_STEPS = 100
# Most coordinates, and most entries of all clients' Hessians, for which Newton's systems are solved by
# factors; above, they are solved by products with the Hessian.
_MOST_FACTORED, _MOST_ENTRIES = 2000, 1 << 28
# Largest gradient norm that remains, relative to one plus that at zero. Rounding may keep it a little higher;
# then the step that no longer improves is the last.
_TOLERANCE = 1e-13


def minimiser(problem: Any, runs: int) -> NDArray:
    """Minimise F of a problem with `Smooth` and `Hessian` by Newton's method with halved steps; (R, D).

    A problem with `HessianProducts` may have any number of coordinates.

    `runs` is a multiple of the number of data sets; runs that share a data set get the same minimiser, which
    is NaN if a Hessian on that data set is singular.

    Raises
    ------
    ReplifedError
        Hessians are singular on all data sets, or Newton's method does not converge.
    """
    sets = len(problem.weights)
    newton_step, has_products = _by_factors, isinstance(problem, HessianProducts)
    if has_products:
        large = problem.dim > _MOST_FACTORED or problem.weights.size * problem.dim**2 > _MOST_ENTRIES
        # The Hessians of C classes take C^2 products of all features, one with a model C.
        if large or problem.loss_function.n_outputs > 1:
            newton_step = _by_products
    x = np.zeros((sets, problem.dim))
    goal = _TOLERANCE * (1.0 + np.linalg.norm(problem.gradient(x), axis=-1))
    for _ in range(_MOST_STEPS):
        g = problem.gradient(x)
        move = newton_step(problem, x, g, goal)
        length, before = np.ones((sets, 1)), problem.loss(x)
        for _ in range(40):
            worse = problem.loss(x - length * move) > before + 1e-14 * np.abs(before)
            if not worse.any():
                break
            length[worse] /= 2
        x = x - length * move
        lost = np.isnan(x).any(axis=-1)
        if lost.all():
            raise ReplifedError("Newton's method meets a singular Hessian; give the problem a ridge, l2 > 0")
        if (lost | (np.linalg.norm(g, axis=-1) <= goal)).all():
            return np.repeat(x, runs // sets, axis=0)
    left = np.linalg.norm(problem.gradient(x), axis=-1)[~lost].max()
    if left <= 1e3 * goal.max():
        return np.repeat(x, runs // sets, axis=0)
    raise ReplifedError(f"Newton's method stopped at a gradient of norm {left:.2g}")


def _by_factors(problem: Any, x: NDArray, g: NDArray, goal: NDArray) -> NDArray:
    """H^{-1} g for each data set, NaN where H is singular."""
    H = np.einsum("sn,snab->sab", problem.weights, problem.client_hessians(x))
    return solve_each(H, g[..., None])[..., 0]


def _by_products(problem: Any, x: NDArray, g: NDArray, goal: NDArray) -> NDArray:
    """H^{-1} g by conjugate gradients; the smaller g, the smaller the relative residual at the end."""
    if not problem.l2:
        # With fewer samples than features, or with classes, of which only differences count.
        C = problem.loss_function.n_outputs
        singular = (problem.sizes.sum(axis=1) < problem.dim // C) | (C > 1)
        g = np.where(singular[:, None], np.nan, g)
    H, move, r, p = problem.hessian_products(x), np.zeros_like(g), g, g
    size, rr = np.linalg.norm(g, axis=-1), (g * g).sum(axis=-1)
    enough = np.maximum(size * np.minimum(0.1, np.sqrt(size * _TOLERANCE / goal)), goal / 10)
    for _ in range(10 * problem.dim):
        active = np.sqrt(rr) > enough
        if not active.any():
            break
        Hp = H(p)
        length = np.where(active, rr / (p * Hp).sum(axis=-1), 0.0)[:, None]
        move, r, before = move + length * p, r - length * Hp, rr
        rr = (r * r).sum(axis=-1)
        p = r + (rr / before)[:, None] * p
    return np.where(np.isnan(g), np.nan, move)
