"""FedExP: federated averaging with extrapolation at the server (Jhunjhunwala, Wang and Joshi 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.fedavg import FedAvg
from replifed.network.ledger import Cost
from replifed.problems.base import PerClientModels, Smooth
from replifed.randomness import Streams


class Iterates(NamedTuple):
    """State of FedExP."""

    x: NDArray  # (R, D), the server's model
    before: NDArray  # (R, D), that of the round before; x itself at first


@dataclass(frozen=True, kw_only=True)
class FedExP(FedAvg):
    """x+ = x - eta_g d, with d the mean of d_i = x - x_i, and eta_g >= 1 the larger, the more these differ.

    Settings of the clients: `FedAvg`.

    Parameters
    ----------
    eps : keeps eta_g finite where the mean change vanishes; in units of |d|^2.

    Notes
    -----
    The paper weighs its N clients alike. Here, as in its authors' code, both sums have the weights p_i of the
    cohort, so that p_i = 1 / N gives the paper's rule, and eta_g = 1 gives FedAvg. (Their code also
    multiplies eps by the size of the cohort and lets it decay; this is the rule as printed.)

    The models may oscillate, so the paper evaluates the mean of the last two; here "server" is that mean, and
    the round goes on from the last one.
    """

    name: ClassVar = "fedexp"
    look: ClassVar = ("vermillion", "wide", "p")
    cohorts: ClassVar = Cohorts(
        "uniform cohort M_t; sums over the cohort in place of all",
        "weights p_i of both sums, scaled to sum to one over those who came",
    )

    eps: Annotated[float, POSITIVE] = 1e-3

    needs: ClassVar = (Smooth, PerClientModels)  # the norm of each d_i, in the server's coordinates

    def init(self, problem, streams: Streams) -> Iterates:
        x = np.zeros((len(streams), problem.dim), dtype=problem.dtype)
        return Iterates(x, x.copy())

    def round(self, state: Iterates, problem, ctx: Round) -> tuple[Iterates, Cost]:  # type: ignore[override]
        K, b, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        p = cohort.shares
        x_i = x = np.repeat(state.x[:, None], cohort.clients.shape[1], axis=1)
        eta = per_run(self.step, x)
        # x_i <- x_i - eta grad f_i(x_i; b), K times, for all clients of the cohort at once
        for batch in cohort.minibatches(K, b):
            x_i = x_i - eta * cohort.problem.per_client_gradients(x_i, batch)
        d_i = x - x_i
        d = (p[..., None] * d_i).sum(axis=1)  # 1 / N sum_i d_i
        mean_square = (p * (d_i**2).sum(axis=2)).sum(axis=1)  # 1 / N sum_i |d_i|^2
        # eta_g = max(1, sum_i |d_i|^2 / (2 N (|d|^2 + eps)))
        eta_g = np.maximum(1, mean_square / (2 * ((d**2).sum(axis=1) + self.eps)))
        server = state.x - per_run(eta_g, d) * d
        return Iterates(server, state.x), cohort.cost(K, b)

    def observe(self, state: Iterates) -> dict[str, NDArray]:
        return {"server": (state.x + state.before) / 2}
