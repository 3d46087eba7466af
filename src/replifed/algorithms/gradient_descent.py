"""Distributed gradient descent with a line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from replifed.algorithms.base import POSITIVE, Round, ServerModel, check_settings
from replifed.algorithms.newton_type import IDLE, NewtonType
from replifed.network.ledger import Cost
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

    needs: ClassVar = (Smooth, Ray)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, {"step": POSITIVE})

    def init(self, problem, streams) -> ServerModel:
        return ServerModel(np.zeros((len(streams), problem.dim)))

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        g = problem.gradient(state.x)
        going = self.going(g)
        if not going.any():
            return state, IDLE
        x, cost = self.descend(state.x, g, -self.step * g, problem, going, sent=0)
        return ServerModel(x), cost
