"""Distributed Newton: every client sends its whole Hessian in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import NDArray

from replifed.algorithms.base import Round, ServerModel
from replifed.algorithms.newton_type import Direction, NewtonType, averaged, second_order, solve_runs
from replifed.network.messages import Counted, Sent
from replifed.operators.matrices import packed_size


@dataclass(frozen=True, kw_only=True)
class DistributedNewton(NewtonType):
    """x <- x - eta H^{-1} g with the exact H = sum_i p_i hess f_i(x), sent in full whatever the channel."""

    name: ClassVar = "newton"
    label: ClassVar = "distributed Newton"
    look: ClassVar = ("black", "short", "v")

    def direction(self, state: ServerModel, g: NDArray, problem, ctx: Round) -> Direction:
        N = problem.n_clients
        H = averaged(problem.weights, self.sent(problem.client_hessians(state.x)))
        p = -solve_runs(H, g)
        sent = N * packed_size(problem.dim) * self.value_bits
        return Direction(state, p, sent, hessians=N)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """A triangle of the Hessian, beside the gradient."""
        return second_order(r, r.c * 16 * r.D * (r.D + 1) // 2)
