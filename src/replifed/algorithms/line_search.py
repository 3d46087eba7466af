"""Distributed backtracking: clients evaluate their losses, and the server decides."""

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
    """First of the steps 1, r, r^2, ... with f(x + eta p) <= f(x) + c eta g'p.

    Parameters
    ----------
    c : required share of the linear decrease.
    shrink : r.
    trials : maximum number of steps; the last is taken if none is accepted.

    Notes
    -----
    GIANT's rule is c = 0.1, r = 1/4, 10 trials. The direction p is sent to the clients like a model. Each
    client sends f_i(x) and, for every step, f_i(x + eta p) - f_i(x), and receives a scalar that tells it
    whether to go on: `messages` in all. A difference has less rounding error than two losses.
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
        """Search along p from x, where the gradient is g; `sent` returns an array as received.

        Returns the steps eta (R,), and the number of trials (R,).
        """
        losses = problem.along(x, p)
        weights = problem.weights
        slope = np.einsum("rd,rd->r", g, p)
        here = losses(np.zeros(len(x)))
        f = (weights * here).sum(axis=-1)
        eta, trials = np.ones(len(x)), np.ones(len(x), dtype=np.int64)
        # A run without a finite direction has diverged.
        accepted = ~np.isfinite(slope)
        for _ in range(self.trials - 1):
            change = (weights * sent(losses(eta) - here)).sum(axis=-1)
            accepted |= change <= self.c * eta * slope + _ROUNDING * np.abs(f)
            if accepted.all():
                break
            eta = np.where(accepted, eta, eta * self.shrink)
            trials += ~accepted
        return eta, trials

    @staticmethod
    def messages(trials: NDArray) -> tuple[NDArray, NDArray]:
        """Scalars that one client sends and receives in a search of `trials` steps."""
        return 1 + trials, trials
