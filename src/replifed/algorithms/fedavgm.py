"""FedAvgM: FedAvg with momentum at the server (Hsu, Qi and Brown 2019, Section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Cohorts, Range, Round, ServerModel
from replifed.algorithms.fedavg import FedAvg
from replifed.network.ledger import Cost
from replifed.randomness import Streams


class Momentum(NamedTuple):
    """State of FedAvgM."""

    x: NDArray  # (R, D), the server's model
    v: NDArray  # (R, D), its momentum


@dataclass(frozen=True, kw_only=True)
class FedAvgM(FedAvg):
    """v <- beta v + Delta, x <- x - v, where Delta is x less FedAvg's average; settings: `FedAvg`.

    Parameters
    ----------
    momentum : beta; with 0 this is FedAvg.
    """

    name: ClassVar = "fedavgm"
    look: ClassVar = ("orange", "dots", "D")
    cohorts: ClassVar = Cohorts("uniform cohort of a share C; weights n_k", "as FedAvg")

    momentum: Annotated[float, Range(0, 1, high_open=True)] = 0.9

    def init(self, problem, streams: Streams) -> Momentum:
        x = np.zeros((len(streams), problem.dim), dtype=problem.dtype)
        return Momentum(x, x.copy())

    def round(self, state: Momentum, problem, ctx: Round) -> tuple[Momentum, Cost]:  # type: ignore[override]
        average, cost = super().round(ServerModel(state.x), problem, ctx)
        v = self.momentum * state.v + (state.x - average.x)
        return Momentum(state.x - v, v), cost
