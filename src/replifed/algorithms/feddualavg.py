"""FedDualAvg: federated dual averaging (Yuan, Zaheer, Reddi 2021, Algorithm 3), here with the 1-norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Cohorts, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.composite import Composite
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways
from replifed.operators.proximal import soft_threshold
from replifed.randomness import Streams


class DualState(NamedTuple):
    """State of FedDualAvg."""

    x: NDArray  # (R, D), the model that the dual state stands for
    z: NDArray  # (R, D), dual state
    threshold: NDArray  # (R,), eta_s eta_c r K lambda before round r


@dataclass(frozen=True, kw_only=True)
class FedDualAvg(Composite):
    """Clients and server add up gradients; models are proximal maps of the sums. Settings: `Composite`.

    psi = lambda |.|_1; a round begins at prox_{eta_s eta_c r K psi}(z).
    """

    name: ClassVar = "feddualavg"
    look: ClassVar = ("purple", "dots", "D")
    messages: ClassVar = staticmethod(both_ways)  # a dual state there and back
    cohorts: ClassVar = Cohorts("a subset of the clients; plain mean", "as FedAvg, of dual states")

    def init(self, problem, streams: Streams) -> DualState:
        zero = np.zeros((len(streams), problem.dim), dtype=problem.dtype)
        return DualState(zero, zero.copy(), np.zeros(len(streams), dtype=problem.dtype))

    def round(self, state: DualState, problem, ctx: Round) -> tuple[DualState, Cost]:
        K, b, eta_s = self.local_steps, self.batch, self.server_step
        cohort = Cohort(problem, ctx)
        local = problem.local(state.z, clients=cohort.index)
        z = local.start
        eta_c, shrink = per_run(self.step, z), per_run(self._shrinkage, z)  # shrink is eta_c lambda
        threshold = per_run(state.threshold, z)  # eta_s eta_c r K lambda
        for k, batch in enumerate(cohort.minibatches(K, b)):
            w = soft_threshold(z, threshold + k * shrink)  # prox of (eta_s eta_c r K + eta_c k) psi
            z = z - eta_c * local.gradient(w, batch)
        z = state.z + eta_s * (cohort.average(local, z, state.z) - state.z)
        threshold = state.threshold + np.asarray(eta_s * K * self._shrinkage, dtype=state.threshold.dtype)
        return DualState(soft_threshold(z, threshold[:, None]), z, threshold), cohort.cost(K, b)
