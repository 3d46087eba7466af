"""FedDC: local drift decoupling and correction (Gao, Fu, Li, Chen, Xu and Xu 2022)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, SolverMethod, SteppedSolver
from replifed.network.ledger import Cost
from replifed.network.messages import Counted, Sent, both_ways
from replifed.randomness import Streams


class Drifts(NamedTuple):
    """State of FedDC."""

    x: NDArray  # (R, D), the server's model w
    h: NDArray  # (R, N, D), the clients' drifts
    g: NDArray  # (R, D), the mean of the clients' g_i
    g_i: NDArray  # (R, N, D), the clients' gradients of the last round that they took part in


@dataclass(frozen=True, kw_only=True)
class FedDC(SolverMethod):
    """K steps on f_i(y) + alpha / 2 |y + h_i - w|^2 + <g - g_i, y>; then h_i gets y_i - w.

    The new w is the mean of y_i over the cohort plus the mean of h_i over all clients.

    Parameters
    ----------
    step : eta, one or one a run (R,).
    solver : K steps on that objective, from w.
    alpha : weight of the drift's term; the authors' examples take .005, .01 and .1.

    Notes
    -----
    As the authors' code has it (gaoliang13/FedDC on GitHub), for clients of one size: g_i is there a mean
    gradient of the steps, g_i - g + (w - y_i) / (K eta), like SCAFFOLD's control variate. The paper, as
    remembered, writes it as the last round's change of the client's model, divided by K eta.

    The server sends w and g, a client y_i and the change of g_i: two vectors each way. The change of h_i is
    y_i - w, which the server knows.
    """

    name: ClassVar = "feddc"
    label: ClassVar = "FedDC"
    look: ClassVar = ("wine", "wide", "h")
    cohorts: ClassVar = Cohorts(
        "each client with a probability, independently; plain mean of models and drifts",
        "plain mean of y_i over those who came, of h_i over all; the others keep h_i and g_i",
    )

    step: Annotated[float | NDArray, POSITIVE]
    solver: SteppedSolver
    alpha: Annotated[float, POSITIVE] = 0.01

    small: ClassVar = {"step": 0.05, "solver": Gradient(steps=3), "alpha": 0.3}

    def init(self, problem: Any, streams: Streams) -> Drifts:
        h = np.zeros((len(streams), problem.n_clients, problem.dim), dtype=problem.dtype)
        return Drifts(h[:, 0].copy(), h, h[:, 0].copy(), h.copy())

    def round(self, state: Drifts, problem: Any, ctx: Round) -> tuple[Drifts, Cost]:
        cohort, solver = Cohort(problem, ctx), replace(self.solver, step=self.step)
        h, g_i, g = cohort.take(state.h), cohort.take(state.g_i), state.g[:, None]
        x = np.repeat(state.x[:, None], h.shape[1], axis=1)
        objective = LocalObjective(cohort.problem, self.alpha * (h - x) + g - g_i, self.alpha)
        y = solver.solve(objective, x, cohort.draw(solver))
        g_new = g_i - g + (x - y) / (solver.steps * per_run(self.step, x))
        drifts = cohort.put(state.h, h + y - x)
        share = per_run(cohort.count / problem.n_clients, state.x)
        # w <- 1 / |S| sum_S y_i + 1 / N sum_i h_i
        came = state.x + cohort.mean(y - x)
        state = Drifts(
            np.where(share > 0, came + drifts.mean(axis=1), state.x),
            drifts,
            state.g + share * cohort.mean(g_new - g_i),
            cohort.put(state.g_i, g_new),
        )
        message, used = cohort.message(2), solver.steps * cohort.total(solver.samples(problem))
        return state, Cost(message, message, iterations=solver.steps, sample_gradients=used)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Models, and mean gradients of the steps, each way."""
        return both_ways(r, vectors=2)
