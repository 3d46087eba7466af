"""FedAdam on federated transport (Reddi et al. 2021): averaged gradients of both networks, Adam on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, NONNEGATIVE, POSITIVE, Cohorts, Method, Range, Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.fedmm_ot import (
    AdamState,
    adam,
    conjugate_gradient,
    identity_networks,
    no_moments,
    potential_gradient,
)
from replifed.network.ledger import Cost, dense_bits
from replifed.network.messages import Counted, Sent
from replifed.problems.transport import Transport
from replifed.randomness import Streams


class Pair(NamedTuple):
    """State of FedAdam."""

    parameters: NDArray  # (R, 2 D), both networks, the potential first
    mean: NDArray  # Adam's moments
    square: NDArray
    steps: NDArray


@dataclass(frozen=True, kw_only=True)
class FedAdam(Method):
    """One client step a round on (omega, theta), with FedMM-OT's two losses; the average feeds Adam.

    Parameters
    ----------
    step : Adam's step at the server, one or one a run (R,). Clients have none: Adam would cancel its scale.
    batch, server_batch : samples of P and of Q in a client's minibatches.
    start_steps : steps that train both networks to the identity beforehand.
    cycle : lambda, the weight of the cycle term.
    """

    name: ClassVar = "fedadam"
    look: ClassVar = ("wine", "dots", "s")
    cohorts: ClassVar = Cohorts(
        "uniform cohort; plain mean of the changes",
        "plain mean of the gradients; cohorts of a fixed size only",
    )

    step: Annotated[float | NDArray, POSITIVE]
    batch: Annotated[int, COUNT]
    server_batch: Annotated[int, COUNT]
    start_steps: Annotated[int, Range(0, whole=True)] = 500
    cycle: Annotated[float, NONNEGATIVE] = 0.0

    needs: ClassVar = (Transport,)
    small: ClassVar = {"step": 1e-3, "batch": 6, "server_batch": 9, "start_steps": 8}

    def init(self, problem, streams: Streams) -> Pair:
        start = identity_networks(problem.net, streams, problem.dtype, self.start_steps)
        parameters = np.concatenate([start, start], axis=1)
        return Pair(parameters, *no_moments(len(parameters), parameters.shape[1], problem.dtype))

    def round(self, state: Pair, problem, ctx: Round) -> tuple[Pair, Cost]:
        net, cohort = problem.net, Cohort(problem, ctx)
        D, c = net.parameters, cohort.size
        omega, theta = state.parameters[:, :D], state.parameters[:, D:]
        (batch,) = cohort.minibatches(1, self.batch)
        x = problem.sources(cohort.clients, batch)
        public = ctx.streams.draw(
            "targets", lambda rng: rng.integers(problem.n_targets, size=self.server_batch)
        )
        y = problem.targets(public)
        up = potential_gradient(net, omega, theta, x, y, self.cycle).mean(axis=1)
        gradient = np.concatenate([up, conjugate_gradient(net, omega, theta, y, self.cycle)], axis=1)
        moments, change = adam(AdamState(state.mean, state.square, state.steps), gradient, self.step)
        moved = state.parameters + change
        both = [net.clamped(moved[:, :D]), net.clamped(moved[:, D:])]
        message = c * dense_bits(2 * D)
        cost = Cost(message, message, 1, 1, c * (x.shape[2] + 2 * self.server_batch))
        return Pair(np.concatenate(both, axis=1), *moments), cost

    def observe(self, state: Pair) -> dict[str, NDArray]:
        D = state.parameters.shape[1] // 2
        return {"server": state.parameters[:, :D], "conjugate": state.parameters[:, D:]}

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Both networks' gradients up, both networks down."""
        return Sent(2 * r.c * r.dense, 2 * r.c * r.dense, r.n + 2 * r.c * r.a.server_batch)
