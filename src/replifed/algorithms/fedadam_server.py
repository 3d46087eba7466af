"""FedAdam, Adam at the server on FedAvg's change (Reddi et al. 2021, Algorithm 2), for any problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Conditions, Range, Round, ServerModel, per_run
from replifed.algorithms.fedavg import FedAvg
from replifed.network.ledger import Cost
from replifed.randomness import Streams

_DECAY = Range(0, 1, high_open=True)


class Moments(NamedTuple):
    """State of FedAdam."""

    x: NDArray  # (R, D), the server's model
    m: NDArray  # (R, D), first moment of its changes
    v: NDArray  # (R, D), second moment


@dataclass(frozen=True, kw_only=True)
class FedAdamServer(FedAvg):
    """m <- beta_1 m + (1 - beta_1) Delta, v likewise of Delta^2, x <- x + eta m / (sqrt v + tau).

    Delta is FedAvg's average less x. The bias of m and v is not corrected, as in the box; v begins at tau^2.
    Settings of the clients: `FedAvg`.

    Parameters
    ----------
    server_step : eta, one or one a run (R,).
    beta_1, beta_2 : decay of the moments.
    tau : degree of adaptivity: the larger, the less adaptive.
    """

    name: ClassVar = "fedadam_server"
    label: ClassVar = "FedAdam"
    look: ClassVar = ("wine", "dash_dot", "*")
    cohorts: ClassVar = Cohorts(
        "uniform cohort; plain mean of the changes",
        "as FedAvg, whose weights p_i are 1 / N in the box",
    )

    server_step: Annotated[float | NDArray, POSITIVE] = 0.01
    beta_1: Annotated[float, _DECAY] = 0.9
    beta_2: Annotated[float, _DECAY] = 0.99
    tau: Annotated[float, POSITIVE] = 1e-3

    def init(self, problem, streams: Streams) -> Moments:
        x = np.zeros((len(streams), problem.dim), dtype=problem.dtype)
        return Moments(x, x.copy(), np.full_like(x, self.tau**2))

    def round(self, state: Moments, problem, ctx: Round) -> tuple[Moments, Cost]:  # type: ignore[override]
        average, cost = super().round(ServerModel(state.x), problem, ctx)
        delta = average.x - state.x
        m = self.beta_1 * state.m + (1 - self.beta_1) * delta
        v = self.beta_2 * state.v + (1 - self.beta_2) * delta**2
        x = state.x + per_run(self.server_step, m) * m / (np.sqrt(v) + self.tau)
        return Moments(x, m, v), cost

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """The server's step as a multiple of 0.1; the clients' only scales what Adam normalises."""
        return cls(step=1.0 / given.L, local_steps=given.local_steps, server_step=multiple * 0.1)
