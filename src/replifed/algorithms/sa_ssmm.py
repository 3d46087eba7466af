"""SA-SSMM: stochastic-approximation stochastic-surrogate MM (Dieuleveut et al. 2025, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Cohorts, Method, Range, Round
from replifed.algorithms.cohort import Cohort
from replifed.network.ledger import Cost
from replifed.network.messages import Counted, Sent
from replifed.problems.surrogates.base import Surrogate
from replifed.randomness import Streams


class Centralised(NamedTuple):
    """State of SA-SSMM."""

    s: NDArray  # (R, q), the surrogate S_t
    theta: NDArray  # (R, d), T(S_t)
    before: NDArray  # (R, q), S_{t-1}
    gamma: NDArray  # (R,), gamma_t, the last step; 0 before the first


def step_size(beta: float | NDArray, decay: float, t: int, runs: int) -> NDArray:
    """gamma_{t+1} = min(1, beta / (t+1)^decay), shape (runs,)."""
    return np.broadcast_to(np.minimum(1.0, beta / (t + 1) ** decay), (runs,))


@dataclass(frozen=True, kw_only=True)
class SaSsmm(Method):
    """S <- S + gamma_{t+1} (oracle of E sbar(Z, T(S)) - S), at a server that holds all data.

    The oracle is the clients' minibatch means, averaged with the clients' weights. With all samples and
    gamma = 1 this is MM itself: EM for a Jensen surrogate, proximal gradient for a quadratic one.

    Parameters
    ----------
    beta : gamma_t = min(1, beta / t^decay), one or one a run (R,).
    decay : 0 keeps the step; 1 with beta = 1 makes S the plain mean of all oracles.
    batch : minibatch size; None takes all of a client's samples.
    """

    name: ClassVar = "sa_ssmm"
    label: ClassVar = "centralised EM"
    look: ClassVar = ("grey", "solid", "", 3.0)

    beta: Annotated[float | NDArray, POSITIVE]
    decay: Annotated[float, Range(0, 1)] = 0.5
    batch: Annotated[int | None, COUNT] = None

    needs: ClassVar = (Surrogate,)
    partial_participation: ClassVar = False
    cohorts: ClassVar = Cohorts("centralised: there are no clients", form=False)
    weighted: ClassVar = True
    centralised: ClassVar = True  # data and server are in one place
    small: ClassVar = {"beta": 0.6}

    def init(self, problem, streams: Streams) -> Centralised:
        s = problem.project(problem.start(streams))
        return Centralised(s, problem.T(s), s, np.zeros(len(streams)))

    def round(self, state: Centralised, problem, ctx: Round) -> tuple[Centralised, Cost]:
        s, cohort = state.s, Cohort(problem, ctx)
        (batch,) = cohort.minibatches(1, self.batch)
        drawn = problem.oracle(state.theta, None, batch)
        oracle = (problem.weights[..., None] * drawn).sum(axis=1)  # S_{t+1}
        gamma = step_size(self.beta, self.decay, ctx.t, len(s))  # gamma_{t+1}
        moved = s + gamma[:, None] * (oracle - s)  # S_hat_{t+1}
        cost = Cost(0, 0, 0, 1, cohort.samples(self.batch))
        return Centralised(moved, problem.T(moved), s, gamma), cost

    def observe(self, state: Centralised) -> dict[str, NDArray]:
        return {
            "server": state.theta,
            "surrogate": state.s,
            "surrogate_before": state.before,
            "gamma": state.gamma,
        }

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Nothing: the server has all data."""
        return Sent(0, 0, r.n, 0)
