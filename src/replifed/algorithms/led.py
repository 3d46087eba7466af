"""LED: local exact diffusion (Alghunaim 2023), with a server: its mixing matrix averages over all clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Conditions, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, SolverMethod, SteppedSolver, with_step
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways
from replifed.randomness import Streams


class LEDState(NamedTuple):
    """State of LED."""

    x: NDArray  # (R, D), the model that all clients hold after averaging
    y: NDArray  # (R, N, D), the clients' dual variables; their sum is zero


@dataclass(frozen=True, kw_only=True)
class LED(SolverMethod):
    """N_e times phi <- phi - alpha grad f_i(phi) - beta y_i, then x+ = mean phi and y_i += phi_i - x+.

    Parameters
    ----------
    alpha : step size, one or one a run (R,), also of the local steps unless the solver has its own.
    beta : weight of the dual variable, one or one a run (R,).
    solver : N_e steps on f_i(phi) + (beta / alpha) <y_i, phi>.
    """

    name: ClassVar = "led"
    look: ClassVar = ("wine", "solid", ">")
    messages: ClassVar = staticmethod(both_ways)  # phi_i up, their mean down

    alpha: Annotated[float | NDArray, POSITIVE]
    beta: Annotated[float | NDArray, POSITIVE]
    solver: SteppedSolver

    partial_participation: ClassVar = False
    cohorts: ClassVar = Cohorts(
        "all clients in every round: a decentralised method, on one fixed network",
        form=False,
    )
    small: ClassVar = {"alpha": 0.1, "beta": 0.3, "solver": Gradient(steps=3)}

    def init(self, problem: Any, streams: Streams) -> LEDState:
        y = np.zeros((len(streams), problem.n_clients, problem.dim), dtype=problem.dtype)
        return LEDState(y[:, 0].copy(), y)

    def round(self, state: LEDState, problem: Any, ctx: Round) -> tuple[LEDState, Cost]:
        cohort = Cohort(problem, ctx)
        ratio = per_run(np.divide(self.beta, self.alpha), state.y)
        start = np.repeat(state.x[:, None], problem.n_clients, axis=1)
        solver = with_step(self.solver, self.alpha)
        phi = solver.solve(LocalObjective(problem, ratio * state.y), start, cohort.draw(solver))
        x = phi.mean(axis=1)
        return LEDState(x, state.y + phi - x[:, None]), self.cost(cohort)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """alpha as a multiple of the natural one."""
        alpha, beta = natural_parameters(given.L, given.local_steps)
        return cls(alpha=multiple * alpha, beta=beta, solver=Gradient(steps=given.local_steps))


def natural_parameters(L: float | NDArray, steps: int) -> tuple[float | NDArray, float]:
    """alpha = 1 / L and beta = 1 / N_e; the paper's theorem leaves the constants of its bounds open."""
    return 1.0 / np.asarray(L), 1.0 / steps
