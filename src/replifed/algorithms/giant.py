"""GIANT: the mean of the clients' Newton directions.

S. Wang, F. Roosta-Khorasani, P. Xu, M. W. Mahoney: GIANT: Globally Improved Approximate Newton Method for
Distributed Optimization, NeurIPS 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round, ServerModel
from replifed.algorithms.newton_type import Direction, NewtonType, solve_runs


@dataclass(frozen=True, kw_only=True)
class Giant(NewtonType):
    """p = -sum_i p_i H_i^{-1} g, sent unquantised on any channel: two exchanges a round, and the line search.

    Notes
    -----
    Local systems are solved exactly, where the paper takes a few conjugate-gradient steps.
    """

    def direction(self, state: ServerModel, g: NDArray, problem, ctx: Round) -> Direction:
        x, N, n = state.x, problem.n_clients, problem.dim
        H = problem.client_hessians(x).reshape(-1, n, n)
        local = solve_runs(H, np.repeat(self.sent(g), N, axis=0)).reshape(len(x), N, n)
        p = -(problem.weights[..., None] * self.sent(local)).sum(axis=1)
        # The server sends the gradient between the two exchanges.
        return Direction(state, p, N * n * self.value_bits, hessians=N, exchanges=2)
