"""What FedMid and FedDualAvg share: a 1-norm, and steps of clients and server (Yuan et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Range, check_settings
from replifed.algorithms.guarantees import Guarantee
from replifed.problems.base import LocalSteps, Smooth


@dataclass(frozen=True, kw_only=True)
class Composite:
    """Settings of a method for sum_i p_i f_i(x) + lambda |x|_1.

    Parameters
    ----------
    step : float or array, shape (R,)
        eta_c, the clients' step size.
    weight : float or array, shape (R,)
        lambda.
    local_steps : int
        K.
    batch : int or None
        Minibatch size; None takes all of a client's samples.
    server_step : float
        eta_s.

    Notes
    -----
    The problem's own objective has no 1-norm: it is the method's.
    """

    step: float | NDArray
    weight: float | NDArray
    local_steps: int
    batch: int | None = None
    server_step: float = 1.0

    needs: ClassVar = (Smooth, LocalSteps)
    partial_participation: ClassVar = True
    guarantee: ClassVar = Guarantee(linear_to_bias=False, unbounded_dissimilarity=False)

    def __post_init__(self) -> None:
        check_settings(
            self,
            {
                "step": POSITIVE,
                "weight": Range(0),
                "local_steps": COUNT,
                "batch": COUNT,
                "server_step": POSITIVE,
            },
        )

    @property
    def stochastic(self) -> bool:
        return self.batch is not None

    @property
    def _shrinkage(self) -> NDArray:
        """eta_c lambda, one or one a run."""
        return np.asarray(self.step) * np.asarray(self.weight)

    @classmethod
    def example(cls) -> Self:
        """Small settings, for the contract tests."""
        return cls(step=0.05, weight=0.01, local_steps=3)
