"""FedMid: federated mirror descent (Yuan, Zaheer, Reddi 2021, Algorithm 2), here with the 1-norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round, ServerModel, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.composite import Composite
from replifed.network.ledger import Cost, dense_bits
from replifed.operators.soft_threshold import soft_threshold
from replifed.randomness import Streams


@dataclass(frozen=True, kw_only=True)
class FedMid(Composite):
    """K proximal steps at the clients, then one at the server; settings: `Composite`.

    Parameters
    ----------
    server_prox_steps : bool
        Whether the server's proximal map counts all K steps, prox of eta_s eta_c K psi, as in the
        authors' code, or one, prox of eta_s eta_c psi.
    """

    server_prox_steps: bool = True

    def init(self, problem, streams: Streams) -> ServerModel:
        return ServerModel(np.zeros((len(streams), problem.dim), dtype=problem.dtype))

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, eta_s = self.local_steps, self.batch, self.server_step
        cohort = Cohort(problem, ctx)
        local = problem.local(state.x, clients=cohort.index)
        w = local.start
        eta_c, shrink = per_run(self.step, w), per_run(self._shrinkage, w)
        for batch in cohort.minibatches(K, b):
            g = local.gradient(w, batch)
            g *= eta_c
            w = soft_threshold(w - g, shrink)  # prox of eta_c psi
        change = local.mean(w) - state.x
        steps = K if self.server_prox_steps else 1
        x = soft_threshold(state.x + eta_s * change, eta_s * steps * per_run(self._shrinkage, change))
        message = cohort.size * dense_bits(problem.dim)
        cost = Cost(message, message, iterations=K, sample_gradients=K * cohort.samples(b))
        return ServerModel(x), cost

    def observe(self, state: ServerModel) -> dict[str, NDArray]:
        return {"server": state.x}
