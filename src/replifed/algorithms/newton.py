"""Distributed Newton: every device sends its whole Hessian, every round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replifed.algorithms.base import Round, ServerModel
from replifed.algorithms.newton_type import IDLE, NewtonType, averaged, solve_rows
from replifed.network.ledger import Cost
from replifed.operators.symmetric import packed_size


@dataclass(frozen=True, kw_only=True)
class DistributedNewton(NewtonType):
    """x <- x - eta H^{-1} g with the exact H = sum_i p_i hess f_i(x), whatever the channel allows."""

    def init(self, problem, streams) -> ServerModel:
        return ServerModel(np.zeros((len(streams), problem.dim)))

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        x, N = state.x, problem.n_clients
        g = problem.gradient(x)
        going = self.going(g)
        if not going.any():
            return state, IDLE
        H = averaged(problem.weights, problem.client_hessians(x))
        p = -solve_rows(H, g)
        sent = N * packed_size(problem.dim) * self.b_max
        x, cost = self.descend(x, g, p, problem, going, sent=sent, hessians=N)
        return ServerModel(x), cost
