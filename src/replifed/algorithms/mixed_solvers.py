"""Composed local solvers: accelerated steps on minibatches, and a different solver for each client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from replifed.algorithms.base import COUNT
from replifed.algorithms.local_solvers import Accelerated, LocalObjective, LocalSolver, Stochastic
from replifed.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class AcceleratedStochastic(Accelerated):
    """Accelerated steps (Fed-PLT eq. (12)) with the gradients of minibatches of size `batch`."""

    batch: Annotated[int, COUNT]

    stochastic: ClassVar[bool] = True

    draw, samples = Stochastic.draw, Stochastic.samples

    def _advance(self, state, objective, drawn, step, beta):
        w, u = state
        ahead = w - step * objective.gradient(w, drawn)
        return ahead + beta * (ahead - u), ahead


@dataclass(frozen=True, kw_only=True)
class Uncoordinated(LocalSolver):
    """A solver, with its number of steps, for each client (Fed-PLT's Remark 1).

    Only deterministic solvers, and only cohorts in which every client computes (masks).
    """

    solvers: tuple[LocalSolver, ...]

    @property
    def steps(self) -> int:  # type: ignore[override]
        return max(solver.steps for solver in self.solvers)

    def samples(self, problem):
        # Clients with fewer steps look at fewer samples, on average over the most steps of any.
        return problem.sizes * np.array([solver.steps for solver in self.solvers]) / self.steps

    def solve(self, objective, start, drawn, counts=None):
        if start.shape[1] != len(self.solvers) or any(solver.stochastic for solver in self.solvers):
            raise ConfigError(f"Uncoordinated.solvers: must be {start.shape[1]} deterministic solvers")
        solved = []
        for client, solver in enumerate(self.solvers):
            problem = objective.problem.with_clients(np.array([[client]]))
            alone = LocalObjective(problem, objective.linear[:, [client]], objective.ridge)
            solved.append(solver.solve(alone, start[:, [client]], None, counts))
        return np.concatenate(solved, axis=1)
