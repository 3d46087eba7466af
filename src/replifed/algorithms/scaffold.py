"""SCAFFOLD: control variates against client drift (Karimireddy et al. 2020, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms import client_states
from replifed.algorithms.base import POSITIVE, Cohorts, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, SolverMethod, SteppedSolver
from replifed.network.ledger import Cost
from replifed.network.messages import Counted, Sent, both_ways
from replifed.randomness import Streams


class Controls(NamedTuple):
    """State of SCAFFOLD."""

    x: NDArray  # (R, D), the server's model
    c: NDArray  # (R, D), the server's control variate, the mean of the clients'
    c_i: NDArray  # (R, N, D), the clients' control variates


@dataclass(frozen=True, kw_only=True)
class Scaffold(SolverMethod):
    """K steps y_i <- y_i - eta_l (g_i(y_i) - c_i + c); x and c get the mean changes of y_i and c_i.

    Parameters
    ----------
    step : eta_l, one or one a run (R,).
    solver : K steps on f_i(y) + <c - c_i, y>, from x.
    option : new control variate: 1, the gradient of all samples at x; 2, the mean gradient of the steps,
        c_i - c + (x - y_i) / (K eta_l).
    server_step : eta_g.

    Notes
    -----
    The server sends x and c, a client both changes: two vectors each way. (The paper remarks that a client
    that took part in the last round need not receive c; that saving is not counted here.)
    """

    name: ClassVar = "scaffold"
    label: ClassVar = "SCAFFOLD"
    look: ClassVar = ("vermillion", "dots", "s")
    cohorts: ClassVar = Cohorts(
        "uniform cohort S; plain mean; c gets |S| / N of the mean change of c_i",
        "plain mean over those who came; the others keep c_i",
    )

    step: Annotated[float | NDArray, POSITIVE]
    solver: SteppedSolver
    option: Literal["1", "2"] = "2"
    server_step: Annotated[float, POSITIVE] = 1.0

    small: ClassVar = {"step": 0.05, "solver": Gradient(steps=3)}

    def init(self, problem: Any, streams: Streams) -> Controls:
        x = np.zeros((len(streams), problem.dim), dtype=problem.dtype)
        return Controls(x, x.copy(), client_states.zeros(problem, len(streams)))

    def round(self, state: Controls, problem: Any, ctx: Round) -> tuple[Controls, Cost]:
        cohort, solver = Cohort(problem, ctx), replace(self.solver, step=self.step)
        c, c_i = state.c[:, None], cohort.take(state.c_i)
        x = np.repeat(state.x[:, None], c_i.shape[1], axis=1)
        y = solver.solve(LocalObjective(cohort.problem, c - c_i), x, cohort.draw(solver))
        if self.option == "1":
            c_new = cohort.problem.per_client_gradients(x)
        else:
            c_new = c_i - c + (x - y) / (solver.steps * per_run(self.step, x))
        share = per_run(cohort.count / problem.n_clients, state.x)  # |S| / N
        state = Controls(
            state.x + self.server_step * cohort.mean(y - x),
            state.c + share * cohort.mean(c_new - c_i),
            cohort.put(state.c_i, c_new),
        )
        message, extra = cohort.message(2), cohort.total(problem.sizes) if self.option == "1" else 0
        used = solver.steps * cohort.total(solver.samples(problem)) + extra
        return state, Cost(message, message, iterations=solver.steps, sample_gradients=used)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Models and control variates, each way; option 1 takes a gradient of all samples."""
        return both_ways(r, vectors=2, gradients=1 if r.a.option == "1" else 0)
