"""FedIterHT: federated iterative hard thresholding (Tong et al. 2022, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import (
    Round,
    ServerModel,
    gradient_step,
    local_steps,
    mean_after,
    participants,
    sample_count,
)
from replifed.algorithms.hard_thresholding import HardThresholding
from replifed.network.ledger import Cost, sparse_bits
from replifed.operators.hard_threshold import hard_threshold
from replifed.problems.base import LocalModels


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

        def move(some: LocalModels, u: NDArray, batch: NDArray | None) -> NDArray:
            moved = gradient_step(some, u, batch, self.step)  # line 6
            return some.hard_threshold(moved, tau[: len(u)])  # line 7

        steps = local_steps(ctx, problem, K, b)  # lines 2-5: all clients, from x_{t,1} = x_t
        x = hard_threshold(mean_after(local, steps, move), tau)  # line 10
        message = participants(ctx, problem) * sparse_bits(tau, problem.dim)
        cost = Cost(message, message, iterations=K, sample_gradients=K * sample_count(problem, b, ctx))
        return ServerModel(x), cost
