"""Distributed gradient descent with a line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Round, ServerModel, per_run
from replifed.algorithms.newton_type import Direction, NewtonType
from replifed.problems.base import Ray, Smooth


@dataclass(frozen=True, kw_only=True)
class GradientDescent(NewtonType):
    """x <- x - eta gamma g; a Newton-type method with H = I/gamma.

    Parameters
    ----------
    step : gamma, the largest step of the search, a number or one per run, (R,).
    """

    step: Annotated[float | NDArray, POSITIVE] = 1.0

    needs: ClassVar = (Smooth, Ray)

    def direction(self, state: ServerModel, g: NDArray, problem, ctx: Round) -> Direction:
        return Direction(state, -per_run(self.step, g) * g)
