"""FedDyn: dynamic regularisation (Acar, Zhao, Matas, Mattina, Whatmough and Saligrama 2021, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms import client_states
from replifed.algorithms.base import POSITIVE, Cohorts, Conditions, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, SolverMethod
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways
from replifed.randomness import Streams


class Dynamics(NamedTuple):
    """State of FedDyn."""

    x: NDArray  # (R, D), the server's model theta
    h: NDArray  # (R, D), the server's state
    g: NDArray  # (R, N, D), each client's gradient at the model that it found last


@dataclass(frozen=True, kw_only=True)
class FedDyn(SolverMethod):
    """theta_k ~ argmin L_k(theta) - <g_k, theta> + alpha / 2 |theta - x|^2, then g_k, h and x.

    Parameters
    ----------
    alpha : weight of the quadratic term, one or one a run (R,).
    solver : steps on that objective, from x.
    """

    name: ClassVar = "feddyn"
    look: ClassVar = ("orange", "short", "D")
    messages: ClassVar = staticmethod(both_ways)  # theta_k up, theta down
    cohorts: ClassVar = Cohorts(
        "uniform cohort P; plain mean; h gets |P| / m of the mean change",
        "plain mean over those who came; the others keep g_k",
    )

    alpha: Annotated[float | NDArray, POSITIVE]

    small: ClassVar = {"alpha": 0.5, "solver": Gradient(steps=3)}

    def init(self, problem: Any, streams: Streams) -> Dynamics:
        x = np.zeros((len(streams), problem.dim), dtype=problem.dtype)
        return Dynamics(x, x.copy(), client_states.zeros(problem, len(streams)))

    def round(self, state: Dynamics, problem: Any, ctx: Round) -> tuple[Dynamics, Cost]:
        cohort = Cohort(problem, ctx)
        g = cohort.take(state.g)
        alpha, x = per_run(self.alpha, g), np.repeat(state.x[:, None], g.shape[1], axis=1)
        objective = LocalObjective(cohort.problem, -g - alpha * x, np.asarray(self.alpha))
        theta = self.solver.solve(objective, x, cohort.draw(self.solver))
        g = g - alpha * (theta - x)
        share = per_run(cohort.count / problem.n_clients, state.x)  # |P| / m
        h = state.h - per_run(self.alpha, state.x) * share * cohort.mean(theta - x)
        server = cohort.mean(theta) - h / per_run(self.alpha, state.x)
        return Dynamics(server, h, cohort.put(state.g, g)), self.cost(cohort)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """alpha as a multiple of sqrt(mu L)."""
        solver = Gradient(steps=given.local_steps)
        return cls(alpha=multiple * np.sqrt(given.mu * given.L), solver=solver)
