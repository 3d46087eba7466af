"""FedIterHT: federated iterative hard thresholding (Tong et al. 2022, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replifed.algorithms.base import (
    Round,
    ServerModel,
    leading,
    local_steps,
    participants,
    per_row,
    sample_count,
)
from replifed.algorithms.hard_thresholding import HardThresholding
from replifed.network.ledger import Cost, sparse_bits
from replifed.operators.hard_threshold import hard_threshold


@dataclass(frozen=True, kw_only=True)
class FedIterHT(HardThresholding):
    """K local steps with a threshold after each, average, threshold at the server.

    Settings are those of `HardThresholding`. Messages are sparse both ways. As in `FedHT`, K steps
    are taken where the box's indices make K - 1.
    """

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b = self.local_steps, self.batch_size(ctx.t)
        tau = np.broadcast_to(self.sparsity, len(state.x))
        local = problem.local(state.x, sparsity=int(np.max(tau)), clients=ctx.chosen)
        mean = 0.0
        for some, steps in local.parts(list(local_steps(ctx, problem, K, b))):  # line 2: all clients
            u = some.start  # line 3: x_{t,1} = x_t
            gamma = per_row(self.step, u)
            for n, batch in steps:  # lines 4-5, of the first n rows
                g = some.gradient(u[:n], batch)  # line 6
                g *= gamma[:n]
                u = leading(some.hard_threshold(np.subtract(u[:n], g, out=g), tau[:n]), u)  # line 7
            mean += some.mean(u)
        x = hard_threshold(mean, tau)  # line 10
        message = participants(ctx, problem) * sparse_bits(tau, problem.dim)
        cost = Cost(message, message, iterations=K, sample_gradients=K * sample_count(problem, b, ctx))
        return ServerModel(x), cost
