"""FedIterHT: federated iterative hard thresholding (Tong et al. 2022, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from replifed.algorithms.base import Cohorts, Round, ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.hard_thresholding import HardThresholding
from replifed.algorithms.local_steps import gradient_steps
from replifed.network.ledger import Cost, sparse_bits
from replifed.network.messages import Counted, Sent
from replifed.operators.hard_threshold import hard_threshold


@dataclass(frozen=True, kw_only=True)
class FedIterHT(HardThresholding):
    """K local steps with a threshold after each, average, threshold at the server.

    Settings: `HardThresholding`. Messages are sparse both ways. As in `FedHT`, a round has K steps, although
    the indices of the paper's box give K - 1.
    """

    name: ClassVar = "fediterht"
    look: ClassVar = ("vermillion", "solid", "o")
    cohorts: ClassVar = Cohorts("all clients in every round", "as FedAvg, then the threshold", form=False)

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, cohort = self.local_steps, self.batch_size(ctx.t), Cohort(problem, ctx)
        tau = np.broadcast_to(self.sparsity, len(state.x))
        # Line 2: all clients at once; line 3: x_{t,1} = x_t.
        local = problem.local(state.x, sparsity=int(tau.max()), clients=cohort.index)
        # Lines 4-7: u <- H_tau(u - gamma grad f_B(u))
        u = gradient_steps(local, cohort.minibatches(K, b), self.step, tau=tau)
        x = hard_threshold(cohort.average(local, u, state.x), tau)  # line 10
        message = sparse_bits(tau, problem.dim)
        return ServerModel(x), cohort.cost(K, b, up=message, down=message)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Thresholds on both sides."""
        return Sent(r.c * r.sparse, r.c * r.sparse, r.K * r.n)
