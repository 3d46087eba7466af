"""FedMid: federated mirror descent (Yuan, Zaheer, Reddi 2021, Algorithm 2), here with the 1-norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from replifed.algorithms.base import Cohorts, Round, ServerModel, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.composite import Composite
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways
from replifed.operators.proximal import soft_threshold


@dataclass(frozen=True, kw_only=True)
class FedMid(Composite):
    """K proximal steps at the clients, then one at the server; settings: `Composite`.

    Notes
    -----
    The server's proximal map counts all K steps, as in the authors' code; in the box it counts one.
    """

    name: ClassVar = "fedmid"
    look: ClassVar = ("blue", "short", "s")
    messages: ClassVar = staticmethod(both_ways)  # a model there and back
    cohorts: ClassVar = Cohorts("a subset of the clients; plain mean", "as FedAvg")

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, eta_s = self.local_steps, self.batch, self.server_step
        cohort = Cohort(problem, ctx)
        local = problem.local(state.x, clients=cohort.index)
        w = local.start
        eta_c, shrink = per_run(self.step, w), per_run(self._shrinkage, w)
        for batch in cohort.minibatches(K, b):
            w = soft_threshold(w - eta_c * local.gradient(w, batch), shrink)  # prox of eta_c psi
        change = cohort.average(local, w, state.x) - state.x
        x = soft_threshold(state.x + eta_s * change, eta_s * K * per_run(self._shrinkage, change))
        return ServerModel(x), cohort.cost(K, b)
