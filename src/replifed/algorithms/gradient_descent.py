"""Distributed gradient descent with a line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Conditions, Round, ServerModel, per_run
from replifed.algorithms.newton_type import SOLVED, Direction, NewtonType, second_order
from replifed.problems.base import Ray, Smooth


@dataclass(frozen=True, kw_only=True)
class GradientDescent(NewtonType):
    """x <- x - eta gamma g; a Newton-type method with H = I/gamma.

    Parameters
    ----------
    step : gamma, the largest step of the search, a number or one per run, (R,).
    """

    name: ClassVar = "gradient_descent"
    label: ClassVar = "gradient descent"
    look: ClassVar = ("grey", "long", "", 1.2)
    messages: ClassVar = staticmethod(second_order)

    step: Annotated[float | NDArray, POSITIVE] = 1.0

    needs: ClassVar = (Smooth, Ray)

    def direction(self, state: ServerModel, g: NDArray, problem, ctx: Round) -> Direction:
        return Direction(state, -per_run(self.step, g) * g)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """The search halves the step from 4 / L."""
        return cls(step=4.0 / given.L, epsilon=SOLVED, single_precision=True)
