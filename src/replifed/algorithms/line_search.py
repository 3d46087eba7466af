"""Distributed backtracking: every client evaluates its own loss, the server decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, Range, check_settings

_UNIT = Range(0, 1, low_open=True, high_open=True)
# Near the minimiser the required decrease is below the rounding error of the objective.
_ROUNDING = 16 * np.finfo(float).eps


@dataclass(frozen=True, kw_only=True)
class Armijo:
    """The first of the steps 1, r, r^2, ... with f(x + eta p) <= f(x) + c eta g'p.

    Parameters
    ----------
    c : required share of the linear decrease.
    shrink : r.
    trials : steps tried at most; the last is taken if none is good enough.

    Notes
    -----
    GIANT's rule is c = 0.1, r = 1/4, 10 trials. The direction p is sent to the clients as any model is.
    Each of them then sends f_i(x) and, for every step that is tried, f_i(x + eta p) - f_i(x), and
    receives one scalar, whether to go on: `messages` in all. A difference loses less to rounding than two
    losses.
    """

    c: Annotated[float, _UNIT] = 1e-4
    shrink: Annotated[float, _UNIT] = 0.5
    trials: Annotated[int, COUNT] = 60

    def __post_init__(self) -> None:
        check_settings(self)

    def step(
        self,
        problem: Any,
        x: NDArray,
        g: NDArray,
        p: NDArray,
        sent: Callable[[NDArray], NDArray] = lambda exact: exact,
    ) -> tuple[NDArray, NDArray]:
        """Search along p from x, where the gradient is g; `sent` is what arrives of an array.

        Returns the steps eta (R,), and how many were tried (R,).
        """
        losses = problem.along(x, p)
        weights = problem.weights
        slope = np.einsum("rd,rd->r", g, p)
        here = losses(np.zeros(len(x)))
        f = (weights * here).sum(axis=-1)
        eta, tried = np.ones(len(x)), np.ones(len(x), dtype=np.int64)
        # A run without a finite direction has diverged.
        accepted = ~np.isfinite(slope)
        for _ in range(self.trials - 1):
            change = (weights * sent(losses(eta) - here)).sum(axis=-1)
            accepted |= change <= self.c * eta * slope + _ROUNDING * np.abs(f)
            if accepted.all():
                break
            eta = np.where(accepted, eta, eta * self.shrink)
            tried += ~accepted
        return eta, tried

    @staticmethod
    def messages(tried: NDArray) -> tuple[NDArray, NDArray]:
        """Scalars that one client sends and receives for a search of `tried` steps."""
        return 1 + tried, tried
