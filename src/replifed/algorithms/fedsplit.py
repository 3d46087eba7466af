"""FedSplit: operator splitting (Pathak and Wainwright 2020, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Conditions, Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, SolverMethod, proximal
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways
from replifed.randomness import Streams


class Splitting(NamedTuple):
    """State of FedSplit."""

    x: NDArray  # (R, D), the mean of the z_j
    z: NDArray  # (R, N, D), the clients' variables


@dataclass(frozen=True, kw_only=True)
class FedSplit(SolverMethod):
    """z_j <- z_j + 2 (prox_{s f_j}(2 x - z_j) - x), then x = mean z_j.

    Parameters
    ----------
    s : step of the proximal map, one or one a run (R,).
    solver : steps on f_j(u) + |u - (2 x - z_j)|^2 / (2 s), from x as in the paper's inexact form, so that x*
        remains a fixed point; `Exact` gives the paper's Algorithm 1.
    """

    name: ClassVar = "fedsplit"
    look: ClassVar = ("purple", "dash_dot", "P")
    theory: ClassVar = "s = 1 / sqrt(mu L), Theorem 1"
    messages: ClassVar = staticmethod(both_ways)  # z_j up, x down

    s: Annotated[float | NDArray, POSITIVE]

    partial_participation: ClassVar = False
    cohorts: ClassVar = Cohorts("all clients in every round", form=False)
    small: ClassVar = {"s": 0.5, "solver": Gradient(steps=3)}

    def init(self, problem: Any, streams: Streams) -> Splitting:
        z = np.zeros((len(streams), problem.n_clients, problem.dim), dtype=problem.dtype)
        return Splitting(z[:, 0].copy(), z)

    def round(self, state: Splitting, problem: Any, ctx: Round) -> tuple[Splitting, Cost]:
        cohort, x = Cohort(problem, ctx), state.x[:, None]
        start = np.repeat(x, problem.n_clients, axis=1)
        objective = proximal(problem, 2 * x - state.z, self.s)
        half = self.solver.solve(objective, start, cohort.draw(self.solver))  # z_j^{t + 1/2}
        z = state.z + 2 * (half - x)
        return Splitting(z.mean(axis=1), z), self.cost(cohort)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """s as a multiple of the theory's."""
        solver = Gradient(steps=given.local_steps)
        return cls(s=multiple * theory_step(given.mu, given.L), solver=solver)


def theory_step(mu: float | NDArray, L: float | NDArray) -> float | NDArray:
    """s = 1 / sqrt(mu L), with which z shrinks by 1 - 2 / (sqrt(kappa) + 1) a round (Theorem 1)."""
    return 1.0 / np.sqrt(np.multiply(mu, L))
