"""FedLin (Mitra, Jaafar, Pappas and Hassani 2021), without sparsification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Cohorts, Conditions, Round, ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, SolverMethod
from replifed.network.ledger import Cost
from replifed.network.messages import Counted, Sent, both_ways


@dataclass(frozen=True, kw_only=True)
class FedLin(SolverMethod):
    """Local steps along grad f_i(w) - grad f_i(x) + mean_j grad f_j(x), then an average.

    Clients and server wait for each other twice a round: for the mean gradient, and for the mean model.

    Parameters
    ----------
    solver : N_e steps on f_i(w) + <g - g_i, w>, from the server's model.
    """

    name: ClassVar = "fedlin"
    look: ClassVar = ("sky", "solid", "X")
    theory: ClassVar = "local step 1 / (6 L K), theorem for strongly convex losses"

    partial_participation: ClassVar = False
    cohorts: ClassVar = Cohorts(
        "all clients in every round: the first exchange is the mean gradient of all",
        form=False,
    )
    small: ClassVar = {"solver": Gradient(steps=3, step=0.05)}

    def round(self, state: ServerModel, problem: Any, ctx: Round) -> tuple[ServerModel, Cost]:
        cohort = Cohort(problem, ctx)
        x = np.repeat(state.x[:, None], problem.n_clients, axis=1)
        g_i = problem.per_client_gradients(x)
        g = g_i.mean(axis=1, keepdims=True)  # first exchange: g_i up, g down
        w = self.solver.solve(LocalObjective(problem, g - g_i), x, cohort.draw(self.solver))
        # Second exchange: w_i up, x down.
        return ServerModel(w.mean(axis=1)), self.cost(cohort, exchanges=2, gradients=1)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """The local step as a multiple of 1 / L."""
        return cls(solver=Gradient(steps=given.local_steps, step=multiple / given.L))

    @classmethod
    def theory_multiple(cls, given: Conditions) -> NDArray:
        return np.asarray(given.L * theory_step(given.L, given.local_steps))

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Gradient and model, each way; the gradient at the start takes all samples."""
        return both_ways(r, vectors=2, gradients=1, exchanges=2)


def theory_step(L: float | NDArray, steps: int) -> float | NDArray:
    """The local step 1 / (6 L N_e) of the method's theorem for strongly convex losses."""
    return 1.0 / (6.0 * np.asarray(L) * steps)
