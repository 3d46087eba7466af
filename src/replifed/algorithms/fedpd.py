"""Fed-PD: federated primal-dual method (Zhang, Hong, Dhople, Yin and Liu 2021), Oracle I, without skips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Conditions, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, SolverMethod
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways
from replifed.randomness import Streams


class FedPDState(NamedTuple):
    """State of Fed-PD: two vectors per client and the coordinator's model."""

    x: NDArray  # (R, N, D), the clients' models
    dual: NDArray  # (R, N, D), the multipliers lambda_i
    centre: NDArray  # (R, D), x_0 that all clients hold after communicating


@dataclass(frozen=True, kw_only=True)
class FedPD(SolverMethod):
    """Local steps on each client's augmented Lagrangian, then its multiplier, then an average.

    Parameters
    ----------
    eta : inverse weight of the quadratic term, one or one a run (R,).
    solver : N_e steps on f_i(x) + <lambda_i, x - x_0> + |x - x_0|^2 / (2 eta), from the client's last model.
    """

    name: ClassVar = "fedpd"
    label: ClassVar = "Fed-PD"
    look: ClassVar = ("purple", "short", "P")
    theory: ClassVar = "eta = (sqrt 5 - 1) / (4 L), the end of the theorem's range"
    messages: ClassVar = staticmethod(both_ways)  # x_i + eta lambda_i up, x_0 down

    eta: Annotated[float | NDArray, POSITIVE]

    partial_participation: ClassVar = False
    cohorts: ClassVar = Cohorts("all clients in every round, or none", form=False)
    small: ClassVar = {"eta": 0.2, "solver": Gradient(steps=3)}

    def init(self, problem: Any, streams: Streams) -> FedPDState:
        x = np.zeros((len(streams), problem.n_clients, problem.dim), dtype=problem.dtype)
        return FedPDState(x, np.zeros_like(x), x[:, 0].copy())

    def round(self, state: FedPDState, problem: Any, ctx: Round) -> tuple[FedPDState, Cost]:
        cohort, eta = Cohort(problem, ctx), per_run(self.eta, state.x)
        centre = state.centre[:, None]
        objective = LocalObjective(problem, state.dual - centre / eta, 1.0 / np.asarray(self.eta))
        x = self.solver.solve(objective, state.x, cohort.draw(self.solver))
        dual = state.dual + (x - centre) / eta
        return FedPDState(x, dual, (x + eta * dual).mean(axis=1)), self.cost(cohort)

    def observe(self, state: FedPDState) -> dict[str, NDArray]:
        return {"server": state.centre, "clients": state.x}

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """eta as a multiple of 1 / sqrt(mu L)."""
        solver = Gradient(steps=given.local_steps)
        return cls(eta=multiple / np.sqrt(given.mu * given.L), solver=solver)

    @classmethod
    def theory_multiple(cls, given: Conditions) -> NDArray:
        return np.asarray(np.sqrt(given.mu * given.L) * theory_eta(given.L))


def theory_eta(L: float | NDArray) -> float | NDArray:
    """Upper end of the range 0 < eta < (sqrt 5 - 1) / (4 L) of the method's convergence theorem."""
    return (np.sqrt(5.0) - 1.0) / (4.0 * np.asarray(L))
