"""MimeLite with momentum (Karimireddy, Jaggi, Kale, Mohri, Reddi, Stich and Suresh 2020, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Range, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, LocalObjective, SolverMethod, SteppedSolver
from replifed.network.ledger import Cost
from replifed.network.messages import Counted, Sent, both_ways
from replifed.randomness import Streams


class Mimic(NamedTuple):
    """State of MimeLite."""

    x: NDArray  # (R, D), the server's model
    m: NDArray  # (R, D), the momentum, which no local step changes


@dataclass(frozen=True, kw_only=True)
class MimeLite(SolverMethod):
    """K steps y_i <- y_i - eta ((1 - beta) grad f_i(y_i) + beta m) from x; x is the mean of y_i.

    Then m <- (1 - beta) mean grad f_i(x) + beta m, with gradients of all samples at the old x.

    Parameters
    ----------
    step : eta, one or one a run (R,).
    solver : K steps, from x.
    momentum : beta; with 0 this is FedAvg, but for the gradients that it sends.

    Notes
    -----
    The box as remembered, with the momentum method as its base (U and V of the paper's table). Mime, without
    "Lite", corrects each gradient of a minibatch, too.

    The server sends x and m, a client y_i and its gradient at x: two vectors each way.
    """

    name: ClassVar = "mimelite"
    label: ClassVar = "MimeLite"
    look: ClassVar = ("#999933", "long", "h")  # olive: its panel has all other colours
    cohorts: ClassVar = Cohorts("a sampled cohort S; plain means", "plain means over those who came")

    step: Annotated[float | NDArray, POSITIVE]
    solver: SteppedSolver
    momentum: Annotated[float, Range(0, 1, high_open=True)] = 0.9

    small: ClassVar = {"step": 0.05, "solver": Gradient(steps=3), "momentum": 0.5}

    def init(self, problem: Any, streams: Streams) -> Mimic:
        x = np.zeros((len(streams), problem.dim), dtype=problem.dtype)
        return Mimic(x, x.copy())

    def round(self, state: Mimic, problem: Any, ctx: Round) -> tuple[Mimic, Cost]:
        cohort, beta = Cohort(problem, ctx), self.momentum
        x = np.repeat(state.x[:, None], cohort.clients.shape[1], axis=1)
        # eta ((1 - beta) grad + beta m) = eta (1 - beta) (grad + beta / (1 - beta) m)
        solver = replace(self.solver, step=(1 - beta) * self.step)
        linear = np.broadcast_to(beta / (1 - beta) * state.m[:, None], x.shape)
        y = solver.solve(LocalObjective(cohort.problem, linear), x, cohort.draw(solver))
        gradient = cohort.mean(cohort.problem.per_client_gradients(x))
        came = per_run(cohort.count, state.m) > 0
        m = np.where(came, (1 - beta) * gradient + beta * state.m, state.m)
        used = solver.steps * cohort.total(solver.samples(problem)) + cohort.total(problem.sizes)
        message = cohort.message(2)
        cost = Cost(message, message, iterations=solver.steps, sample_gradients=used)
        return Mimic(state.x + cohort.mean(y - x), m), cost

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Models, and momentum or gradient, each way; the gradient is of all samples."""
        return both_ways(r, vectors=2, gradients=1)
