"""FedHT: federated hard thresholding (Tong et al. 2022, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

from replifed.algorithms.base import (
    Round,
    ServerModel,
    local_steps,
    participants,
    sample_count,
)
from replifed.algorithms.hard_thresholding import HardThresholding
from replifed.network.ledger import Cost, dense_bits, sparse_bits
from replifed.operators.hard_threshold import hard_threshold


@dataclass(frozen=True, kw_only=True)
class FedHT(HardThresholding):
    """K local gradient steps, average, threshold at the server; settings: `HardThresholding`.

    Notes
    -----
    The box counts k = 1..K and sends x_{t,K}, which would be K - 1 steps; the text says K, taken here.
    """

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b = self.local_steps, self.batch_size(ctx.t)
        local = problem.local(state.x, additive=True, clients=ctx.chosen)
        steps = local_steps(ctx, problem, K, b)  # lines 2-5: all clients, from x_{t,1} = x_t
        mean = local.mean_after(steps, self.step)  # lines 6-7: x_{t,k+1} = x_{t,k} - gamma_t g
        x = hard_threshold(mean, self.sparsity)  # line 10
        cost = Cost(
            bits_up=participants(ctx, problem) * dense_bits(problem.dim),
            bits_down=participants(ctx, problem) * sparse_bits(self.sparsity, problem.dim),
            iterations=K,
            sample_gradients=K * sample_count(problem, b, ctx),
        )
        return ServerModel(x), cost
