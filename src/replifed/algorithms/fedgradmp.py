"""FedGradMP: federated gradient matching pursuit (Jeong, Needell, Qin, 2023, Algorithms 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import (
    COUNT,
    POSITIVE,
    Round,
    ServerModel,
    check_settings,
    per_run,
)
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.guarantees import Guarantee
from replifed.errors import ConfigError
from replifed.network.ledger import Cost, sparse_bits
from replifed.operators.projections import Projection, Thresholding, onto_ball
from replifed.problems.base import LocalSteps, RestrictedMinimiser, Smooth
from replifed.randomness import Streams

SOLVERS = ("exact", "newton", "gd", "sgd")


@dataclass(frozen=True, kw_only=True)
class FedGradMP:
    """Clients run stochastic gradient matching pursuit; the server averages and prunes.

    With atoms other than the standard basis, models are the coefficients of x in the dictionary, and the
    problem is that of the features A_i Psi.

    Parameters
    ----------
    sparsity : int or array, shape (R,)
        tau.
    local_steps : int
        K.
    batch : int or None
        Minibatch size b of the gradient that names the support; None takes all of a client's samples.
    projection : Projection
        approx and P: exact thresholding (orthonormal atoms) by default.
    solver : {"exact", "newton", "gd", "sgd"}
        How the sub-problem is solved: to the end (Algorithm 1), or by so many steps of the method named,
        from the current iterate (Algorithm 2).
    inner_steps : int
        Steps of an inexact solver.
    step : float or array, shape (R,), or None
        Step size of "sgd"; the others need none.
    inner_batch : int or None
        Minibatch size of "sgd"; `batch` by default.
    reuse : bool
        Whether the first step of "sgd" takes the gradient that has named the support, so that a local
        iteration costs `inner_steps` gradients and not one more.
    radius : float or None
        R of the optional projection on a ball.
    """

    sparsity: int | NDArray
    local_steps: int
    batch: int | None = None
    projection: Projection = field(default_factory=Thresholding)
    solver: str = "exact"
    inner_steps: int = 1
    step: float | NDArray | None = None
    inner_batch: int | None = None
    reuse: bool = False
    radius: float | None = None

    needs: ClassVar = (Smooth, LocalSteps, RestrictedMinimiser)
    partial_participation: ClassVar = True
    guarantee: ClassVar = Guarantee(linear_to_bias=True, unbounded_dissimilarity=True)

    def __post_init__(self) -> None:
        check_settings(
            self,
            {
                "sparsity": COUNT,
                "local_steps": COUNT,
                "batch": COUNT,
                "inner_steps": COUNT,
                "step": POSITIVE,
                "inner_batch": COUNT,
                "radius": POSITIVE,
            },
        )
        if self.solver not in SOLVERS:
            raise ConfigError(f"FedGradMP.solver = {self.solver!r}: must be one of {', '.join(SOLVERS)}")
        if (self.solver == "sgd") != (self.step is not None):
            raise ConfigError(
                f"FedGradMP.step = {self.step!r}: must be {POSITIVE} with solver 'sgd', None with others"
            )

    @property
    def stochastic(self) -> bool:
        return self.batch is not None or (self.solver == "sgd" and self.inner_batch is not None)

    def init(self, problem, streams: Streams) -> ServerModel:
        return ServerModel(np.zeros((len(streams), problem.dim), dtype=problem.dtype))

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, tau, approx = self.local_steps, np.asarray(self.sparsity), self.projection
        cohort = Cohort(problem, ctx)
        local = problem.local(state.x, sparsity=int(np.max(tau)), clients=cohort.index)
        inner = self._inner_batches(cohort)
        merged = np.zeros(len(state.x))
        u = local.start  # x_{t,1} = x_t, and Lambda its support
        for k, batch in enumerate(cohort.minibatches(K, self.batch)):
            r = local.gradient(u, batch)  # r_{t,k} = grad g_{i,j_k}(x_{t,k})
            gamma = approx.support(r, 2 * tau)  # Gamma = approx_{2 tau}(r, eta_1)
            gamma |= u != 0  # with Lambda
            b = self._solve(
                local, u, r, gamma, inner[k * self._drawn : (k + 1) * self._drawn]
            )  # b = argmin f_i over span(A_Gamma)
            u = approx.prune(b, tau)  # P_Lambda b, Lambda = approx_tau(b, eta_2)
            if self.radius is not None:
                u = onto_ball(u, self.radius, approx)
            if self.solver != "sgd":
                merged = merged + self._work(problem, cohort, gamma.sum(axis=-1, dtype=np.int32))
        x = approx.prune(local.mean(u), tau)  # over the cohort, not over all N clients
        if self.radius is not None:
            x = onto_ball(x, self.radius, approx)
        return ServerModel(x), self._cost(problem, cohort, merged)

    def _solve(self, local, u: NDArray, r: NDArray, support: NDArray, batches: list) -> NDArray:
        """Minimiser of each client's loss on `support`, exactly or by a few steps from `u`."""
        if self.solver == "exact":
            return local.restricted_minima(u, support)
        if self.solver == "newton":
            return local.restricted_minima(u, support, newton_steps=self.inner_steps)
        if self.solver == "gd":
            return local.restricted_descent(u, support, self.inner_steps)
        assert self.step is not None  # as `__post_init__` checks
        step = per_run(self.step, u) * support
        w = u
        if self.reuse:
            r *= step
            w = np.subtract(w, r, out=r)
        for batch in batches:
            g = local.gradient(w, batch)
            g *= step
            w = np.subtract(w, g, out=g)
        return w

    @property
    def _drawn(self) -> int:
        """Minibatches that the sub-problem takes beside the one that names the support."""
        return self.inner_steps - self.reuse if self.solver == "sgd" else 0

    def _inner_batches(self, cohort: Cohort) -> list:
        steps = self.local_steps * self._drawn
        return cohort.minibatches(steps, self._inner_size, "inner") if steps else []

    @property
    def _inner_size(self) -> int | None:
        return self.batch if self.inner_batch is None else self.inner_batch

    def _work(self, problem, cohort: Cohort, size: NDArray) -> NDArray:
        """Work of a sub-problem on `size` (R, c) coordinates, in gradients of single samples, all clients."""
        if self.solver == "gd":
            return (self.inner_steps * cohort.sizes * size / problem.dim).sum(axis=-1)
        return problem.restricted_work(size).sum(axis=-1)

    def _cost(self, problem, cohort: Cohort, merged: NDArray) -> Cost:
        """Cost of a round; sub-problems count as the sample gradients that take as many operations."""
        K = self.local_steps
        named = K * cohort.samples(self.batch)
        solved = merged
        if self.solver == "sgd":
            solved = K * self._drawn * cohort.samples(self._inner_size)
        message = cohort.size * sparse_bits(self.sparsity, problem.dim)
        return Cost(message, message, iterations=K, sample_gradients=named + solved)

    def observe(self, state: ServerModel) -> dict[str, NDArray]:
        return {"server": state.x}

    @classmethod
    def example(cls) -> FedGradMP:
        """Small settings, for the contract tests."""
        return cls(sparsity=4, local_steps=3)
