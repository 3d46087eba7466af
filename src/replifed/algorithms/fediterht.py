"""FedIterHT: federated iterative hard thresholding (Tong et al. 2022, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replifed.algorithms.base import (
    Round,
    ServerModel,
    local_steps,
    participants,
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
        steps = local_steps(ctx, problem, K, b)  # lines 2-5: all clients, from x_{t,1} = x_t
        mean = local.mean_after(steps, self.step, tau)  # lines 6-7: x_{t,k+1} = H_tau(x_{t,k} - gamma_t g)
        x = hard_threshold(mean, tau)  # line 10
        message = participants(ctx, problem) * sparse_bits(tau, problem.dim)
        cost = Cost(message, message, iterations=K, sample_gradients=K * sample_count(problem, b, ctx))
        return ServerModel(x), cost
