"""S-Local-GD: local gradient steps with a shift (Gorbunov, Hanzely and Richtarik 2021, S-Local-SVRG)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Cohorts, Conditions, Round, ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import (
    Gradient,
    LocalObjective,
    SolverMethod,
    SteppedSolver,
    random_steps,
)
from replifed.network.ledger import Cost
from replifed.network.messages import Counted, Sent, both_ways


@dataclass(frozen=True, kw_only=True)
class SLocalGD(SolverMethod):
    """Steps along grad f_i(x_i) - grad f_i(y) + grad f(y), each followed by an average with probability p.

    A round consists of the L ~ Geom(p) steps until the next average. The reference point y is the last
    average, so a round has two exchanges: the gradients at y, and the models.

    Parameters
    ----------
    solver : steps on f_i(x) + <grad f(y) - grad f_i(y), x>, from y; their mean number is its `steps`, 1 / p.

    Notes
    -----
    S-Local-SVRG with full gradients. S-Local-SVRG renews y with a separate probability; here y is renewed at
    every average, the case that ProxSkip's authors compare with (not checked against their text). With a
    fixed number of steps the method is FedLin.
    """

    name: ClassVar = "slocalgd"
    label: ClassVar = "S-Local-GD"
    look: ClassVar = ("black", "dash_dot", "^")

    solver: SteppedSolver

    stochastic: ClassVar = True
    partial_participation: ClassVar = False
    cohorts: ClassVar = Cohorts(
        "all clients in every round: the shift is the mean gradient of all",
        form=False,
    )
    small: ClassVar = {"solver": Gradient(steps=3, step=0.05)}

    def round(self, state: ServerModel, problem: Any, ctx: Round) -> tuple[ServerModel, Cost]:
        cohort = Cohort(problem, ctx)
        counts = random_steps(ctx, self.solver.steps, len(state.x))  # L
        y = np.repeat(state.x[:, None], problem.n_clients, axis=1)
        g_i = problem.per_client_gradients(y)
        shift = g_i.mean(axis=1, keepdims=True) - g_i  # first exchange: g_i up, their mean down
        drawn = cohort.draw(self.solver, int(counts.max()))
        x_i = self.solver.solve(LocalObjective(problem, shift), y, drawn, counts)
        used = counts * cohort.total(self.solver.samples(problem)) + cohort.total(problem.sizes)
        message = cohort.message(2)
        return ServerModel(x_i.mean(axis=1)), Cost(message, message, 2, counts, used)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """The local step as a multiple of 1 / L."""
        return cls(solver=Gradient(steps=given.local_steps, step=multiple / given.L))

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Gradient and model, each way; the gradient at the reference takes all samples."""
        return both_ways(r, vectors=2, gradients=1, exchanges=2)
