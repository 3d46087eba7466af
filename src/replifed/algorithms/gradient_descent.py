"""Distributed gradient descent with a line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Round, ServerModel, check_settings
from replifed.algorithms.newton_type import Direction, NewtonType
from replifed.problems.base import Ray, Smooth


@dataclass(frozen=True, kw_only=True)
class GradientDescent(NewtonType):
    """x <- x - eta gamma g; a Newton-type method with H = I/gamma.

    Parameters
    ----------
    step : float
        gamma, the longest step that the search tries.
    """

    step: float = 1.0

    needs: ClassVar[tuple[type, ...]] = (Smooth, Ray)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, {"step": POSITIVE})

    def init(self, problem, streams) -> ServerModel:
        return ServerModel(np.zeros((len(streams), problem.dim)))

    def direction(self, state: ServerModel, g: NDArray, problem, ctx: Round) -> Direction:
        return Direction(state, -self.step * g)
