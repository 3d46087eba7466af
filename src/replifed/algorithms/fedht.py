"""FedHT: federated hard thresholding (Tong et al. 2022, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

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
        mean = 0.0
        for some, steps in local.parts(list(local_steps(ctx, problem, K, b))):  # line 2: all clients
            u = some.start  # line 3: x_{t,1} = x_t
            gamma = per_row(self.step, u)
            for n, batch in steps:  # lines 4-5, of the first n rows
                g = some.gradient(u[:n], batch)  # line 6
                u = leading(u[:n] - gamma[:n] * g, u)  # line 7
            mean += some.mean(u)
        x = hard_threshold(mean, self.sparsity)  # line 10
        cost = Cost(
            bits_up=participants(ctx, problem) * dense_bits(problem.dim),
            bits_down=participants(ctx, problem) * sparse_bits(self.sparsity, problem.dim),
            iterations=K,
            sample_gradients=K * sample_count(problem, b, ctx),
        )
        return ServerModel(x), cost
