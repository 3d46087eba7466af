"""FedLin (Mitra, Jaafar, Pappas and Hassani 2021), without sparsification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round, ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, LocalSolver
from replifed.network.ledger import Cost
from replifed.problems.base import PerClientModels, Smooth
from replifed.randomness import Streams


@dataclass(frozen=True, kw_only=True)
class FedLin:
    """Local steps along grad f_i(w) - grad f_i(x) + mean_j grad f_j(x), then an average.

    Clients and server wait for each other twice a round: for the mean gradient, and for the mean model.

    Parameters
    ----------
    solver : LocalSolver
        N_e steps on f_i(w) + <g - g_i, w>, from the server's model.
    """

    solver: LocalSolver

    needs: ClassVar = (Smooth, PerClientModels)
    partial_participation: ClassVar = False

    @property
    def stochastic(self) -> bool:
        return self.solver.stochastic

    def init(self, problem: Any, streams: Streams) -> ServerModel:
        return ServerModel(np.zeros((len(streams), problem.dim), dtype=problem.dtype))

    def round(self, state: ServerModel, problem: Any, ctx: Round) -> tuple[ServerModel, Cost]:
        cohort = Cohort(problem, ctx)
        x = np.repeat(state.x[:, None], problem.n_clients, axis=1)
        g_i = problem.per_client_gradients(x)
        g = g_i.mean(axis=1, keepdims=True)  # first exchange
        w = self.solver.solve(LocalObjective(problem, g - g_i), x, cohort.draw(self.solver))
        state = ServerModel(w.mean(axis=1))  # second exchange
        steps = self.solver.steps
        used = steps * cohort.total(self.solver.samples(problem)) + cohort.total(problem.sizes)
        # Up: g_i and w_i; down: x and g.
        return state, Cost(
            cohort.message(2), cohort.message(2), exchanges=2, iterations=steps, sample_gradients=used
        )

    def observe(self, state: ServerModel) -> dict[str, NDArray]:
        return {"server": state.x}

    @classmethod
    def example(cls) -> FedLin:
        """Small settings, for the contract tests."""
        return cls(solver=Gradient(steps=3, step=0.05))


def theory_step(L: float | NDArray, steps: int) -> float | NDArray:
    """The local step 1 / (6 L N_e) of the method's theorem for strongly convex losses."""
    return 1.0 / (6.0 * np.asarray(L) * steps)
