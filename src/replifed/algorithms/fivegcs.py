"""5GCS (Grudzien, Malinovsky and Richtarik 2023): a primal-dual method with client sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Conditions, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, SolverMethod
from replifed.network.ledger import Cost
from replifed.network.messages import Counted, Sent, both_ways
from replifed.randomness import Streams


class FiveGCSState(NamedTuple):
    """State of 5GCS."""

    x: NDArray  # (R, D), the server's model
    u: NDArray  # (R, N, D), the clients' dual variables
    v: NDArray  # (R, D), the sum of u


@dataclass(frozen=True, kw_only=True)
class FiveGCS(SolverMethod):
    """Local steps on proximal problems of the cohort, whose gradients are the dual variables.

    The mean of the M losses is split into sum_m F_m + (mu / 2) |x|^2 with F_m = (f_m - (mu / 2) |x|^2) / M,
    mu the smallest strong-convexity constant.

    Parameters
    ----------
    gamma, tau : primal and dual step size, one or one a run (R,).
    solver : N_e steps on M (F_m(y) + (tau / 2) |y - x_hat - u_m / tau|^2), from x_hat.
    """

    name: ClassVar = "fivegcs"
    label: ClassVar = "5GCS"
    look: ClassVar = ("vermillion", "dash_dot", "*")
    theory: ClassVar = "gamma and tau of the theorem for strongly convex losses"
    cohorts: ClassVar = Cohorts(
        "uniform cohort of C clients; the change of v times M / C",
        "C is the number of those who came; the others keep u_m",
    )

    gamma: Annotated[float | NDArray, POSITIVE]
    tau: Annotated[float | NDArray, POSITIVE]

    equal_clients_differ: ClassVar = (
        "F_m = (f_m - mu / 2 |x|^2) / M shrinks with M, so the same tau weighs more with more clients"
    )
    small: ClassVar = {"gamma": 0.5, "tau": 0.3, "solver": Gradient(steps=3)}

    def init(self, problem: Any, streams: Streams) -> FiveGCSState:
        u = np.zeros((len(streams), problem.n_clients, problem.dim), dtype=problem.dtype)
        return FiveGCSState(u[:, 0].copy(), u, u[:, 0].copy())

    def round(self, state: FiveGCSState, problem: Any, ctx: Round) -> tuple[FiveGCSState, Cost]:
        cohort, M = Cohort(problem, ctx), problem.n_clients
        mu, _ = problem.common_mu_L()
        mu = np.repeat(mu, len(state.x) // len(mu)).astype(state.x.dtype)
        gamma, tau = per_run(self.gamma, state.x), per_run(self.tau, state.u)
        x_hat = (state.x - gamma * state.v) / (1.0 + gamma * mu[:, None])
        u = cohort.take(state.u)
        centre = np.repeat(x_hat[:, None], u.shape[1], axis=1)
        # Times M, the local problem is f_m(y) - <M (tau x_hat + u_m), y> + (M tau - mu) |y|^2 / 2.
        objective = LocalObjective(cohort.problem, -M * (tau * centre + u), M * np.asarray(self.tau) - mu)
        y = self.solver.solve(objective, centre, cohort.draw(self.solver))
        new = (cohort.problem.per_client_gradients(y) - mu[:, None, None] * y) / M  # grad F_m(y)
        duals = cohort.put(state.u, new)
        v = cohort.running(state.v, u, new, lambda: duals.sum(axis=1))
        share = per_run(np.maximum(cohort.count, 1) / M, state.x)  # C / M
        state = FiveGCSState(x_hat - gamma / share * (v - state.v), duals, v)
        return state, self.cost(cohort, gradients=1)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """gamma as a multiple of the theory's, tau as one divided by it."""
        gamma, tau = theory_parameters(given.mu, given.L, given.clients, given.cohort or given.clients)
        solver = Gradient(steps=given.local_steps)
        return cls(gamma=multiple * gamma, tau=tau / multiple, solver=solver)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Also the gradient at the end of the local steps, which is the dual variable."""
        return both_ways(r, gradients=1)


def theory_parameters(
    mu: float | NDArray, L: float | NDArray, n_clients: int, cohort: int
) -> tuple[NDArray, NDArray]:
    """gamma = sqrt(C / (L mu M)) / 16 and tau = (8 / M) sqrt(L mu M / C), for M clients and cohorts of C."""
    root = np.sqrt(np.multiply(mu, L) * n_clients / cohort)
    return 1.0 / (16.0 * root), 8.0 / n_clients * root
