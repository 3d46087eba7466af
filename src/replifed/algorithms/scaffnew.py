"""Scaffnew: ProxSkip's federated form (Mishchenko, Malinovsky, Stich and Richtarik 2022, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import (
    Gradient,
    LocalObjective,
    SolverMethod,
    SteppedSolver,
    random_steps,
)
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways
from replifed.randomness import Streams


class Shifts(NamedTuple):
    """State of Scaffnew."""

    x: NDArray  # (R, D), the model that all clients hold after one
    h: NDArray  # (R, N, D), the clients' control variates; their sum is zero


@dataclass(frozen=True, kw_only=True)
class Scaffnew(SolverMethod):
    """Steps x_i <- x_i - gamma (grad f_i(x_i) - h_i), each followed by an average with probability p.

    A round consists of the L ~ Geom(p) steps until the next average; L is common to all clients.

    Parameters
    ----------
    step : gamma, one or one a run (R,).
    solver : steps on f_i(x) - <h_i, x>; their mean number is its `steps`, 1 / p.
    """

    name: ClassVar = "scaffnew"
    look: ClassVar = ("blue", "dash_dot", "o")
    theory: ClassVar = "gamma = 1 / L, the end of the range of Theorem 3.5"
    messages: ClassVar = staticmethod(both_ways)  # x_i up, their mean down

    step: Annotated[float | NDArray, POSITIVE]
    solver: SteppedSolver

    stochastic: ClassVar = True
    partial_participation: ClassVar = False
    cohorts: ClassVar = Cohorts(
        "all clients in every round: the control variates sum to zero; TAMUNA has a form for cohorts",
        form=False,
    )
    small: ClassVar = {"step": 0.1, "solver": Gradient(steps=3)}

    def init(self, problem: Any, streams: Streams) -> Shifts:
        h = np.zeros((len(streams), problem.n_clients, problem.dim), dtype=problem.dtype)
        return Shifts(h[:, 0].copy(), h)

    def round(self, state: Shifts, problem: Any, ctx: Round) -> tuple[Shifts, Cost]:
        cohort, solver = Cohort(problem, ctx), replace(self.solver, step=self.step)
        gamma, p = per_run(self.step, state.h), 1.0 / solver.steps
        counts = random_steps(ctx, solver.steps, len(state.x))  # L ~ Geom(p)
        start = np.repeat(state.x[:, None], problem.n_clients, axis=1)
        drawn = cohort.draw(solver, int(counts.max()))
        x_hat = solver.solve(LocalObjective(problem, -state.h), start, drawn, counts)
        x = x_hat.mean(axis=1)
        h = state.h + p / gamma * (x[:, None] - x_hat)
        used, message = counts * cohort.total(solver.samples(problem)), cohort.message()
        return Shifts(x, h), Cost(message, message, iterations=counts, sample_gradients=used)
