"""Stacks of linear systems of which some may have no solution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def solve_each(A: NDArray, b: NDArray) -> NDArray:
    """A^{-1} b for stacks A (..., n, n) and b (..., n, k) of one length; NaN where A is singular.

    `numpy.linalg.solve` gives up the whole stack instead, and with it the runs that could go on.
    """
    try:
        return np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        if A.ndim == 2:
            return np.full(b.shape, np.nan)
        return np.stack([solve_each(*system) for system in zip(A, b, strict=True)])
