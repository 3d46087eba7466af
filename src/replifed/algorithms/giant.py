"""GIANT: the mean of the clients' Newton directions.

S. Wang, F. Roosta-Khorasani, P. Xu, M. W. Mahoney: GIANT: Globally Improved Approximate Newton Method for
Distributed Optimization, NeurIPS 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round, ServerModel
from replifed.algorithms.newton_type import Direction, NewtonType, second_order, solve_runs
from replifed.network.messages import Counted, Sent


@dataclass(frozen=True, kw_only=True)
class Giant(NewtonType):
    """p = -sum_i p_i H_i^{-1} g, sent unquantised on any channel: two exchanges a round, and the line search.

    Notes
    -----
    Local systems are solved exactly, where the paper takes a few conjugate-gradient steps.
    """

    name: ClassVar = "giant"
    label: ClassVar = "GIANT"
    look: ClassVar = ("purple", "long", "P")

    def direction(self, state: ServerModel, g: NDArray, problem, ctx: Round) -> Direction:
        x, N, n = state.x, problem.n_clients, problem.dim
        H = problem.client_hessians(x).reshape(-1, n, n)
        local = solve_runs(H, np.repeat(self.sent(g), N, axis=0)).reshape(len(x), N, n)
        p = -(problem.weights[..., None] * self.sent(local)).sum(axis=1)
        # The server sends the gradient between the two exchanges.
        return Direction(state, p, N * n * self.value_bits, hessians=N, exchanges=2)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """A direction, for the mean gradient."""
        return second_order(r, r.c * 16 * r.D, exchanges=2)
