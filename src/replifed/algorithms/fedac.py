"""FedAc: federated accelerated stochastic gradient descent (Yuan and Ma 2020, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, NONNEGATIVE, POSITIVE, Cohorts, Method, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.network.ledger import Cost, dense_bits
from replifed.network.messages import Counted, Sent, both_ways
from replifed.problems.base import PerClientModels, Smooth
from replifed.randomness import Streams


class Accelerated(NamedTuple):
    """State of the accelerated methods: two sequences, of which the second is the output."""

    w: NDArray  # (R, D)
    ag: NDArray  # (R, D), w_ag


class Coupling(NamedTuple):
    """Parameters gamma, alpha and beta of the coupled sequences, one value or one per run."""

    gamma: NDArray
    alpha: NDArray
    beta: NDArray


def coupling(variant: str, eta: float | NDArray, mu: float | NDArray, K: int) -> Coupling:
    """Parameters of FedAc-I, FedAc-II, and the naive method, whose gamma does not depend on K."""
    eta, mu = np.asarray(eta, float), np.asarray(mu, float)
    gamma = np.sqrt(eta / mu) if variant == "naive" else np.maximum(eta, np.sqrt(eta / (mu * K)))
    if variant == "2":
        alpha = 3 / (2 * gamma * mu) - 1 / 2
        return Coupling(gamma, alpha, 2 * alpha**2 / (alpha - 1))
    alpha = 1 / (gamma * mu)
    return Coupling(gamma, alpha, alpha + 1)


@dataclass(frozen=True, kw_only=True)
class AcceleratedMethod(Method):
    """Settings, start and accelerated step that FedAc and accelerated minibatch SGD share.

    Parameters
    ----------
    step : eta, one or one a run (R,).
    local_steps : K; one round uses the samples of K steps.
    batch : minibatch size of a client's step; None takes all of its samples.
    mu : strong-convexity constant; by default that of the problem.
    start_deviation : standard deviation of the start, w = w_ag ~ N(0, start_deviation^2 I).
    """

    step: Annotated[float | NDArray, POSITIVE]
    local_steps: Annotated[int, COUNT]
    batch: Annotated[int | None, COUNT] = None
    mu: Annotated[float | None, POSITIVE] = None
    start_deviation: Annotated[float, NONNEGATIVE] = 0.0

    needs: ClassVar = (Smooth, PerClientModels)
    small: ClassVar = {"step": 0.05, "local_steps": 3}

    @property
    def stochastic(self) -> bool:
        return self.batch is not None or self.start_deviation > 0

    def init(self, problem: Any, streams: Streams) -> Accelerated:
        w = np.zeros((len(streams), problem.dim), dtype=problem.dtype)
        if self.start_deviation:
            drawn = streams.draw("start", lambda rng: rng.standard_normal(problem.dim))
            w += self.start_deviation * drawn.astype(w.dtype)
        return Accelerated(w, w.copy())

    def coupled(self, problem: Any, variant: str) -> Coupling:
        """gamma, alpha and beta, (R or 1, 1, 1) each."""
        mu = problem.strong_convexity().min(axis=1) if self.mu is None else self.mu
        values = coupling(
            variant, np.reshape(self.step, (-1, 1, 1)), np.reshape(mu, (-1, 1, 1)), self.local_steps
        )
        return Coupling(*(value.astype(problem.dtype) for value in values))

    def observe(self, state: Accelerated) -> dict[str, NDArray]:
        return {"server": state.ag}


def middle(w: NDArray, ag: NDArray, c: Coupling) -> NDArray:
    """md = w / beta + (1 - 1 / beta) w_ag, where the gradient is taken."""
    return w / c.beta + (1 - 1 / c.beta) * ag


def moved(w: NDArray, md: NDArray, g: NDArray, eta: NDArray, c: Coupling) -> tuple[NDArray, NDArray]:
    """w <- (1 - 1 / alpha) w + md / alpha - gamma g and w_ag <- md - eta g."""
    return (1 - 1 / c.alpha) * w + md / c.alpha - c.gamma * g, md - eta * g


@dataclass(frozen=True, kw_only=True)
class FedAc(AcceleratedMethod):
    """K coupled steps of every client, then averages of both sequences; settings: `AcceleratedMethod`.

    Parameters
    ----------
    variant : "1" (FedAc-I), "2" (FedAc-II), or "naive", which accelerates as if K were 1.
    """

    name: ClassVar = "fedac"
    look: ClassVar = ("purple", "solid", "o")
    cohorts: ClassVar = Cohorts(
        "all M workers in every round; nothing on cohorts",
        "plain means of both sequences over those who came",
        form=False,
    )

    variant: Literal["1", "2", "naive"] = "1"

    def round(self, state: Accelerated, problem: Any, ctx: Round) -> tuple[Accelerated, Cost]:
        K, b, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        c, N = self.coupled(problem, self.variant), cohort.clients.shape[1]
        w, ag = (np.repeat(one[:, None], N, axis=1) for one in state)
        eta = per_run(self.step, w)
        for batch in cohort.minibatches(K, b):
            md = middle(w, ag, c)
            g = cohort.problem.per_client_gradients(md, batch)
            w, ag = moved(w, md, g, eta, c)
        both = 2 * dense_bits(problem.dim)  # w and w_ag go up and down
        return Accelerated(cohort.mean(w), cohort.mean(ag)), cohort.cost(K, b, up=both, down=both)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Both sequences, each way."""
        return both_ways(r, vectors=2)
