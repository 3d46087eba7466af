"""Common settings of FedMid and FedDualAvg: a 1-norm, steps of clients and server (Yuan et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import (
    COUNT,
    NONNEGATIVE,
    POSITIVE,
    Conditions,
    Guarantee,
    Method,
    usual_settings,
)


@dataclass(frozen=True, kw_only=True)
class Composite(Method):
    """Settings of a method for sum_i p_i f_i(x) + lambda |x|_1.

    Parameters
    ----------
    step : eta_c, the clients' step size, a number or one per run, (R,).
    weight : lambda, a number or one per run, (R,).
    local_steps : K.
    batch : minibatch size; None takes all of a client's samples.
    server_step : eta_s.

    Notes
    -----
    The problem's objective has no 1-norm: the method adds it.
    """

    step: Annotated[float | NDArray, POSITIVE]
    weight: Annotated[float | NDArray, NONNEGATIVE]
    local_steps: Annotated[int, COUNT]
    batch: Annotated[int | None, COUNT] = None
    server_step: Annotated[float, POSITIVE] = 1.0

    weighted: ClassVar = True
    guarantee: ClassVar = Guarantee(linear_to_bias=False, unbounded_dissimilarity=False)
    small: ClassVar = {"step": 0.05, "weight": 0.01, "local_steps": 3}

    @property
    def _shrinkage(self) -> NDArray:
        """eta_c lambda, a number or one per run."""
        return np.asarray(self.step) * np.asarray(self.weight)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """The step as a multiple of 1 / L."""
        return cls(**usual_settings(cls, multiple, given), weight=given.l1)
