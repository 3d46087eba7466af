"""Fed-PLT: federated private local training (Bastianello, Liu and Johansson 2024, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms import client_states
from replifed.algorithms.base import NONNEGATIVE, POSITIVE, Cohorts, Conditions, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, SolverMethod, proximal
from replifed.errors import ReplifedError
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways
from replifed.operators.proximal import L1, Penalty, Zero
from replifed.randomness import Streams


class FedPLTState(NamedTuple):
    """State of Fed-PLT: two vectors per client and the coordinator's mean."""

    x: NDArray  # (R, N, D), the clients' models
    z: NDArray  # (R, N, D), their auxiliary variables
    mean: NDArray  # (R, D), of all z, of which the coordinator's model is the proximal map


@dataclass(frozen=True, kw_only=True)
class FedPLT(SolverMethod):
    """Peaceman-Rachford splitting of sum_i f_i(x) + h(x), with local steps for the proximal maps of the f_i.

    Parameters
    ----------
    rho : penalty of the splitting, one or one a run (R,).
    solver : N_e steps on d_i(w) = f_i(w) + |w - v_i|^2 / (2 rho).
    penalty : h.
    start_deviation : standard deviation of the entries of x_{i,0}, one or one a run (R,); z_{i,0} = 0.
        Proposition 4 asks for tau sqrt(2 / mu), with mu the strong-convexity constant of the f_i.
    start : where local steps begin: at x_{i,k}, as Remark 2 demands ("warm"), or at v_{i,k}.
    """

    name: ClassVar = "fedplt"
    label: ClassVar = "Fed-PLT"
    look: ClassVar = ("orange", "solid", "D")
    theory: ClassVar = "rho = 1 / sqrt(mu L), the best rate of exact splitting"
    messages: ClassVar = staticmethod(both_ways)  # z_i up, y down
    cohorts: ClassVar = Cohorts(
        "each client with its own probability, independently; tables: cohorts of half",
        "mean over all z_i; those who stay away keep x_i and z_i",
    )

    rho: Annotated[float | NDArray, POSITIVE]
    penalty: Penalty = field(default_factory=Zero)
    start_deviation: Annotated[float | NDArray, NONNEGATIVE] = 0.0
    start: Literal["warm", "cold"] = "warm"

    small: ClassVar = {"rho": 0.5, "solver": Gradient(steps=3)}

    @property
    def stochastic(self) -> bool:
        return self.solver.stochastic or bool(np.any(self.start_deviation))

    def init(self, problem: Any, streams: Streams) -> FedPLTState:
        x, z = (client_states.zeros(problem, len(streams)) for _ in range(2))
        if np.any(self.start_deviation):
            if isinstance(x, client_states.Drawn):
                raise ReplifedError(
                    "start_deviation draws a start for every client, and here data are made on demand"
                )
            shape = (problem.n_clients, problem.dim)
            drawn = streams.draw("start", lambda rng: rng.standard_normal(shape))
            x += per_run(self.start_deviation, x) * drawn
        return FedPLTState(x, z, client_states.mean(z))

    def _coordinate(self, state: FedPLTState) -> NDArray:
        """Line 5: the coordinator's model y, (R, D)."""
        return self.penalty.prox(state.mean, np.divide(self.rho, state.z.shape[1]))

    def round(self, state: FedPLTState, problem: Any, ctx: Round) -> tuple[FedPLTState, Cost]:
        cohort = Cohort(problem, ctx)  # line 8
        x, known = cohort.take(state.x), cohort.take(state.z)
        v = 2.0 * self._coordinate(state)[:, None] - known  # line 9
        objective = proximal(cohort.problem, v, self.rho)
        w = x if self.start == "warm" else v
        x = self.solver.solve(objective, w, cohort.draw(self.solver))  # lines 10 to 13
        new = 2.0 * x - v  # line 14, z + 2 (x - y), as v is 2 y - z
        # Lines 15 and 16: the others keep x_i and z_i.
        x, z = cohort.put(state.x, x), cohort.put(state.z, new)
        # The mean for line 5 of the next round, of inactive clients' z_i, too.
        mean = cohort.running(state.mean, known, new, lambda: client_states.mean(z), 1 / problem.n_clients)
        return FedPLTState(x, z, mean), self.cost(cohort)

    def observe(self, state: FedPLTState) -> dict[str, NDArray]:
        return {"server": self._coordinate(state), "clients": state.x, "auxiliary": state.z}

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """rho as a multiple of the best one."""
        # Its h is added to the sum of the clients' losses, not to their mean.
        penalty = L1(weight=given.clients * given.l1) if given.l1 else Zero()
        solver = Gradient(steps=given.local_steps)
        return cls(rho=multiple * best_rho(given.mu, given.L), solver=solver, penalty=penalty)


def best_rho(mu: float | NDArray, L: float | NDArray) -> float | NDArray:
    """The rho that minimises zeta, the rate of exact Peaceman-Rachford splitting: 1 / sqrt(mu L)."""
    return 1.0 / np.sqrt(np.multiply(mu, L))
