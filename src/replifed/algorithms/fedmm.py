"""FedMM: federated majorise-minimise (Dieuleveut et al. 2025, Algorithm 2), and its naive counterpart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Cohorts, Conditions, Method, Range, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.sa_ssmm import step_size
from replifed.errors import ConfigError
from replifed.network.ledger import Cost, dense_bits
from replifed.network.messages import Counted, Sent
from replifed.operators.quantise import block_quantise, message_bits
from replifed.problems.surrogates.base import Surrogate
from replifed.randomness import Streams


class Variates(NamedTuple):
    """State of FedMM, with the surrogate S as x, and of parameter aggregation, with theta as x."""

    x: NDArray  # (R, D), what the server averages
    theta: NDArray  # (R, d), the model: T(S_t), or x itself
    V: NDArray  # (R, D), the server's control variate; sum_i mu_i V_i at all times (Proposition 5)
    V_i: NDArray  # (R, N, D), the clients' control variates
    before: NDArray  # (R, D), x one round ago
    gamma: NDArray  # (R,), the last step; 0 before the first


@dataclass(frozen=True, kw_only=True)
class FedMM(Method):
    """Clients compute surrogates; the server averages, projects and minimises.

    Parameters
    ----------
    beta : gamma_t = min(1, beta / t^decay), one or one a run (R,).
    decay : exponent of t; 0 keeps the step constant.
    alpha : step of the control variates, one or one a run (R,); 0 switches them off. The theory asks for at
        most 1 / (1 + omega), where E|Quant(v) - v|^2 <= omega |v|^2.
    bits : bits per coordinate of a message; None sends it unquantised.
    batch : minibatch size; None takes all of a client's samples.
    participation : probability p that a client takes part, if clients do so independently. A cohort of fixed
        size c implies p = c / N.

    Notes
    -----
    V_{0,i} = 0, as in the paper's experiments. The projection is Euclidean (B_t = I).
    """

    name: ClassVar = "fedmm"
    look: ClassVar = ("green", "solid", "o")
    cohorts: ClassVar = Cohorts(
        "each client with probability p, independently; sum of mu_i Delta_i, divided by p",
        "p is c / N for c who came, or the setting; those who stay away keep V_i",
    )

    beta: Annotated[float | NDArray, POSITIVE]
    decay: Annotated[float, Range(0, 1)] = 0.5
    alpha: Annotated[float | NDArray, Range(0, 1)] = 0.0
    bits: Annotated[int | None, Range(2, 32, whole=True)] = None
    batch: Annotated[int | None, COUNT] = None
    participation: Annotated[float | None, Range(0, 1, low_open=True)] = None

    needs: ClassVar = (Surrogate,)
    weighted: ClassVar = True
    steps_alone: ClassVar = True  # V moves S_hat, as in the box
    searched: ClassVar = False  # its step follows from the data
    in_doubles: ClassVar = True  # as its surrogates
    tuned: ClassVar = "beta"
    small: ClassVar = {"beta": 0.6, "alpha": 0.2}

    @property
    def stochastic(self) -> bool:
        return self.batch is not None or self.bits is not None

    def init(self, problem, streams: Streams) -> Variates:
        x = self.aggregated(problem, problem.project(problem.start(streams)))
        R, D = x.shape
        V_i = np.zeros((R, problem.n_clients, D))
        return Variates(x, self.minimise(problem, x), np.zeros((R, D)), V_i, x, np.zeros(R))

    def round(self, state: Variates, problem, ctx: Round) -> tuple[Variates, Cost]:
        x, theta, V, V_i, _, _ = state  # x is S_hat_t
        cohort = Cohort(problem, ctx).packed()
        p = self._probability(cohort)
        (batch,) = cohort.minibatches(1, self.batch)
        S_i = self.aggregated(problem, problem.oracle(theta, cohort.index, batch))  # S_{t+1,i}
        V_A = cohort.take(V_i)  # V_{t,i} of the active clients A
        Delta_i = S_i - x[:, None] - V_A
        q = self._quantise(Delta_i, ctx)  # Quant(Delta_i)
        if cohort.mask is not None:
            q = np.where(cohort.mask[..., None], q, 0.0)
        V_i = cohort.put(V_i, V_A + per_run(self.alpha, q) * q)  # V_{t+1,i} = V_{t,i} + alpha Quant(Delta_i)
        mean = (cohort.take(problem.weights)[..., None] * q).sum(axis=1)  # sum_A mu_i Quant(Delta_i)
        H = V + mean / p  # H_{t+1}
        gamma = step_size(self.beta, self.decay, ctx.t, len(x))  # gamma_{t+1}
        later = self.project(problem, x + gamma[:, None] * H)  # S_hat_{t+1} = Proj_S(S_hat_t + gamma H)
        V = V + per_run(self.alpha, V) * mean  # V_{t+1}
        state = Variates(later, self.minimise(problem, later), V, V_i, x, gamma)
        return state, self._cost(problem, cohort, x.shape[1])

    # -- what the server averages: surrogates here, parameters in the naive scheme -----------------

    sends_minimiser: ClassVar = True

    def aggregated(self, problem, s: NDArray) -> NDArray:
        """Quantity that the server averages, from a client's surrogate S: S itself."""
        return s

    def project(self, problem, x: NDArray) -> NDArray:
        """Projection of `x` on the set of valid surrogates."""
        return problem.project(x)

    def minimise(self, problem, x: NDArray) -> NDArray:
        """Model theta of the server's `x`: the minimiser of that surrogate."""
        return problem.T(x)

    # -- messages --------------------------------------------------------------------------------

    def _probability(self, cohort: Cohort) -> float | NDArray:
        """Probability p that a client takes part, one or one a run (R, 1)."""
        if cohort.mask is None:
            return cohort.size / cohort.whole.n_clients
        if cohort.named:  # as many as came
            return np.maximum(cohort.count, 1)[:, None] / cohort.whole.n_clients
        if self.participation is None:
            raise ConfigError(
                f"{type(self).__name__}.participation: give it, since clients take part at random"
            )
        return self.participation

    def _quantise(self, delta: NDArray, ctx: Round) -> NDArray:
        if self.bits is None:
            return delta
        dither = ctx.streams.draw("dither", lambda rng: rng.random(delta.shape[1:]))
        return block_quantise(delta, dither, self.bits)

    def _cost(self, problem, cohort: Cohort, D: int) -> Cost:
        up = dense_bits(D) if self.bits is None else message_bits(dim=D, bits=self.bits)
        down = dense_bits(D + problem.parameters * self.sends_minimiser)
        samples = problem.sizes.max() if self.batch is None else min(self.batch, problem.sizes.max())
        return Cost(cohort.count * up, cohort.count * down, 1, 1, cohort.count * samples)

    def observe(self, state: Variates) -> dict[str, NDArray]:
        seen = {"server": state.theta, "surrogate": state.x, "surrogate_before": state.before}
        return seen | {"gamma": state.gamma, "clients": state.V_i, "variate": state.V}

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """The proximal gradient method, whose step follows from the data."""
        return cls(beta=1.0, decay=0.0)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """S_i up, S and theta down."""
        return Sent(r.c * r.dense, r.c * 32 * (r.D + r.d), r.n)


@dataclass(frozen=True, kw_only=True)
class ParameterAggregation(FedMM):
    """The naive scheme: each client minimises its own surrogate, and the server averages parameters (21).

    FedMM's algorithm with T(S_{t+1,i}) in place of S_{t+1,i}, theta in place of S, and no projection.
    """

    name: ClassVar = "parameter_aggregation"
    label: ClassVar = "parameter aggregation (naive)"
    look: ClassVar = ("vermillion", "long", "s")

    sends_minimiser: ClassVar = False  # beside what it averages, which is the minimiser

    def aggregated(self, problem, s: NDArray) -> NDArray:
        return problem.T(s)

    def project(self, problem, x: NDArray) -> NDArray:
        return x

    def minimise(self, problem, x: NDArray) -> NDArray:
        return x

    def observe(self, state: Variates) -> dict[str, NDArray]:
        seen = {"server": state.theta, "server_before": state.before}
        return seen | {"gamma": state.gamma, "clients": state.V_i, "variate": state.V}

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Theta there and back."""
        return Sent(r.c * 32 * r.d, r.c * 32 * r.d, r.n)
