"""The exact minimiser of a smooth, strongly convex problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.operators.matrices import solve_each

_MOST_STEPS = 100
# Largest gradient norm that remains, relative to one plus that at zero. Rounding may keep it a little higher;
# then the step that no longer improves is the last.
_TOLERANCE = 1e-13


def minimiser(problem: Any, runs: int) -> NDArray:
    """Minimise F of a problem with `Smooth` and `Hessian` by Newton's method with halved steps; (R, D).

    `runs` is a multiple of the number of data sets, of which those that share one get the same answer. It is
    NaN for data sets on which a Hessian is singular.

    Raises
    ------
    ReplifedError
        If Hessians are singular on all data sets, or the method does not converge.
    """
    sets = len(problem.weights)
    x = np.zeros((sets, problem.dim))
    goal = _TOLERANCE * (1.0 + np.linalg.norm(problem.gradient(x), axis=-1))
    for _ in range(_MOST_STEPS):
        g = problem.gradient(x)
        H = np.einsum("sn,snab->sab", problem.weights, problem.client_hessians(x))
        move = solve_each(H, g[..., None])[..., 0]
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
