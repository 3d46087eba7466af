"""FedHT: federated hard thresholding (Tong et al. 2022, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from replifed.algorithms.base import Cohorts, Round, ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.hard_thresholding import HardThresholding
from replifed.algorithms.local_steps import gradient_steps
from replifed.network.ledger import Cost, sparse_bits
from replifed.network.messages import Counted, Sent
from replifed.operators.hard_threshold import hard_threshold


@dataclass(frozen=True, kw_only=True)
class FedHT(HardThresholding):
    """K local gradient steps, average, threshold at the server; settings: `HardThresholding`.

    Notes
    -----
    The paper's box counts k = 1..K and sends x_{t,K}, which is K - 1 steps; its text says K steps, as here.
    """

    name: ClassVar = "fedht"
    look: ClassVar = ("blue", "long", "s")
    cohorts: ClassVar = Cohorts("all clients in every round", "as FedAvg, then the threshold", form=False)

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, cohort = self.local_steps, self.batch_size(ctx.t), Cohort(problem, ctx)
        # Line 2: all clients at once; line 3: x_{t,1} = x_t.
        local = problem.local(state.x, additive=True, clients=cohort.index, draws=cohort.draws(K, b))
        # Lines 4-7: u <- u - gamma grad f_B(u)
        u = gradient_steps(local, cohort.minibatches(K, b), self.step)
        x = hard_threshold(cohort.average(local, u, state.x), self.sparsity)  # line 10
        return ServerModel(x), cohort.cost(K, b, down=sparse_bits(self.sparsity, problem.dim))

    @staticmethod
    def messages(r: Counted) -> Sent:
        """The server's threshold alone makes a message sparse."""
        return Sent(r.c * r.dense, r.c * r.sparse, r.K * r.n)
