"""GIANT: the mean of the devices' own Newton directions.

S. Wang, F. Roosta-Khorasani, P. Xu, M. W. Mahoney: GIANT: Globally Improved Approximate Newton Method for
Distributed Optimization, NeurIPS 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replifed.algorithms.base import Round, ServerModel
from replifed.algorithms.newton_type import IDLE, NewtonType, solve_rows
from replifed.network.ledger import BITS_PER_VALUE, Cost


@dataclass(frozen=True, kw_only=True)
class Giant(NewtonType):
    """p = -sum_i p_i H_i^{-1} g, whatever the channel allows: two exchanges a round, and the line search.

    Notes
    -----
    Local systems are solved exactly, where the paper takes a few conjugate-gradient steps.
    """

    def init(self, problem, streams) -> ServerModel:
        return ServerModel(np.zeros((len(streams), problem.dim)))

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        x, N, n = state.x, problem.n_clients, problem.dim
        g = problem.gradient(x)
        going = self.going(g)
        if not going.any():
            return state, IDLE
        H = problem.client_hessians(x).reshape(-1, n, n)
        local = solve_rows(H, np.repeat(g, N, axis=0)).reshape(len(x), N, n)
        p = -(problem.weights[..., None] * local).sum(axis=1)
        x, cost = self.descend(x, g, p, problem, going, sent=N * n * self.b_max, hessians=N)
        # The server sends the gradient between the two exchanges.
        down = cost.bits_down + np.where(going, N * n * BITS_PER_VALUE, 0)
        return ServerModel(x), cost._replace(bits_down=down, exchanges=np.where(going, 2, 0))
