"""FedMM: federated majorise-minimise (Dieuleveut et al. 2025, Algorithm 2), and its naive counterpart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Method, Range, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.sa_ssmm import step_size
from replifed.errors import ConfigError
from replifed.network.ledger import Cost, dense_bits
from replifed.operators.block_quantiser import block_quantise, message_bits
from replifed.problems.surrogates.base import Surrogate
from replifed.randomness import Streams


class Variates(NamedTuple):
    """State of FedMM, where x is the surrogate S, and of parameter aggregation, where it is theta.

    Attributes
    ----------
    x : array, shape (R, D), what the server averages.
    theta : array, shape (R, d), the model: T(S_t), or x itself.
    V : array, shape (R, D), the server's control variate; sum_i mu_i V_i at all times (Proposition 5).
    V_i : array, shape (R, N, D), the clients' control variates.
    before : array, shape (R, D), x one round ago.
    gamma : array, shape (R,), the last step; 0 before the first.
    """

    x: NDArray
    theta: NDArray
    V: NDArray
    V_i: NDArray
    before: NDArray
    gamma: NDArray


@dataclass(frozen=True, kw_only=True)
class _ControlVariates(Method):
    """What both methods share: everything but the space in which clients answer.

    Parameters
    ----------
    beta : gamma_t = min(1, beta / t^decay), one or one a run (R,).
    decay : 0 keeps the step.
    alpha : step of the control variates, one or one a run (R,); 0 leaves them out. In theory at most
        1 / (1 + omega).
    bits : bits a coordinate of the messages; None sends them whole.
    batch : samples of each client in a minibatch; None takes all.
    participation : probability p that a client takes part, where clients do so independently. Where the
        cohort has a fixed size it is known from that.
    """

    beta: Annotated[float | NDArray, POSITIVE]
    decay: Annotated[float, Range(0, 1)] = 0.5
    alpha: Annotated[float | NDArray, Range(0, 1)] = 0.0
    bits: Annotated[int | None, Range(2, 32, whole=True)] = None
    batch: Annotated[int | None, COUNT] = None
    participation: Annotated[float | None, Range(0, 1, low_open=True)] = None

    needs: ClassVar = (Surrogate,)
    small: ClassVar = {"beta": 0.6, "alpha": 0.2}

    @property
    def stochastic(self) -> bool:
        return self.batch is not None or self.bits is not None

    def _probability(self, cohort: Cohort, n_clients: int) -> float:
        """p, how likely a client is to take part."""
        if cohort.mask is None:
            return cohort.size / n_clients
        if self.participation is None:
            raise ConfigError(
                f"{type(self).__name__}.participation: needed where clients take part at random"
            )
        return self.participation

    def _aggregate(
        self,
        state: Variates,
        problem,
        ctx: Round,
        answer: Callable[[NDArray | None, NDArray | None], NDArray],
    ) -> tuple[NDArray, NDArray, NDArray, NDArray, Cohort]:
        """Lines 3 to 13 of Algorithm 2: answers of the active clients -> (x + gamma H, V, V_i, gamma)."""
        x, V, V_i = state.x, state.V, state.V_i
        R, N, _ = V_i.shape
        cohort = Cohort(problem, ctx).packed()
        p = self._probability(cohort, N)
        (batch,) = cohort.minibatches(1, self.batch)
        control = cohort.take(V_i)
        q = self._quantise(answer(cohort.index, batch) - x[:, None] - control, ctx)
        if cohort.mask is not None:
            q = np.where(cohort.mask[..., None], q, 0.0)
        moved = cohort.put(V_i, control + per_run(self.alpha, q) * q)
        mean = (cohort.take(problem.weights)[..., None] * q).sum(axis=1)
        H = V + mean / p
        gamma = step_size(self.beta, self.decay, ctx.t, R)
        return x + gamma[:, None] * H, V + per_run(self.alpha, V) * mean, moved, gamma, cohort

    def _quantise(self, delta: NDArray, ctx: Round) -> NDArray:
        if self.bits is None:
            return delta
        dither = ctx.streams.draw("dither", lambda rng: rng.random(delta.shape[1:]))
        return block_quantise(delta, dither, self.bits)

    def _cost(self, problem, cohort: Cohort, down: int, D: int) -> Cost:
        up = dense_bits(D) if self.bits is None else message_bits(dim=D, bits=self.bits)
        samples = problem.sizes.max() if self.batch is None else min(self.batch, problem.sizes.max())
        return Cost(cohort.count * up, cohort.count * dense_bits(down), 1, 1, cohort.count * samples)


@dataclass(frozen=True, kw_only=True)
class FedMM(_ControlVariates):
    """Clients answer with surrogates; the server averages, projects and minimises.

    Notes
    -----
    V_{0,i} = 0, as in the paper's experiments. The projection is Euclidean (B_t = I).
    """

    def init(self, problem, streams: Streams) -> Variates:
        s = problem.project(problem.start(streams))
        R, q = s.shape
        return Variates(
            s, problem.T(s), np.zeros((R, q)), np.zeros((R, problem.n_clients, q)), s, np.zeros(R)
        )

    def round(self, state: Variates, problem, ctx: Round) -> tuple[Variates, Cost]:
        def surrogate(chosen: NDArray | None, batch: NDArray | None) -> NDArray:
            return problem.oracle(state.theta, chosen, batch)  # S_{t+1,i}

        half, V, V_i, gamma, cohort = self._aggregate(state, problem, ctx, surrogate)
        s = problem.project(half)
        cost = self._cost(problem, cohort, problem.dim + problem.parameters, problem.dim)
        return Variates(s, problem.T(s), V, V_i, state.x, gamma), cost

    def observe(self, state: Variates) -> dict[str, NDArray]:
        return {
            "server": state.theta,
            "surrogate": state.x,
            "surrogate_before": state.before,
            "gamma": state.gamma,
            "clients": state.V_i,
            "variate": state.V,
        }


@dataclass(frozen=True, kw_only=True)
class ParameterAggregation(_ControlVariates):
    """The naive scheme: each client minimises its own surrogate, and the server averages parameters (21).

    The same lines as FedMM's with T(S_{t+1,i}) and theta in place of S_{t+1,i} and S, and no projection.
    """

    def init(self, problem, streams: Streams) -> Variates:
        theta = problem.T(problem.project(problem.start(streams)))
        R, d = theta.shape
        return Variates(
            theta, theta, np.zeros((R, d)), np.zeros((R, problem.n_clients, d)), theta, np.zeros(R)
        )

    def round(self, state: Variates, problem, ctx: Round) -> tuple[Variates, Cost]:
        def minimiser(chosen: NDArray | None, batch: NDArray | None) -> NDArray:
            return problem.T(problem.oracle(state.theta, chosen, batch))

        theta, V, V_i, gamma, cohort = self._aggregate(state, problem, ctx, minimiser)
        cost = self._cost(problem, cohort, problem.parameters, problem.parameters)
        return Variates(theta, theta, V, V_i, state.x, gamma), cost

    def observe(self, state: Variates) -> dict[str, NDArray]:
        return {
            "server": state.theta,
            "server_before": state.before,
            "gamma": state.gamma,
            "clients": state.V_i,
            "variate": state.V,
        }
