"""Clients' weights: methods with and without weighted means all minimise F = sum_i p_i f_i."""

from __future__ import annotations

from typing import Any

import numpy as np

from replifed.errors import ReplifedError

# Weights that differ by less than this share are equal.
_EQUAL = 1e-6


def handed(method: type[Any], problem: Any) -> Any:
    """Problem that a method minimises: rewritten with equal weights if the method takes plain means.

    A method whose attribute `weighted` is true averages with the weights p_i. Any other takes plain means: if
    the weights differ, it gets F = (1 / N) sum_i (N p_i f_i), with the constants of the losses N p_i f_i.

    Raises
    ------
    ReplifedError
        The weights differ, the method takes plain means, and the problem cannot be rewritten.
    """
    p = getattr(problem, "weights", None)
    if p is None or getattr(method, "weighted", False) or np.ptp(p, axis=1).max() <= _EQUAL * p.max():
        return problem
    if not hasattr(problem, "with_equal_weights"):
        name, kind = method.__name__, type(problem).__name__
        raise ReplifedError(
            f"{name} takes plain means, and the weights of this {kind} differ: give dense features or equal "
            f"weights, or {name} the attribute weighted = True if it averages with them"
        )
    return problem.with_equal_weights()
