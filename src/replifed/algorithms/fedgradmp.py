"""FedGradMP: federated gradient matching pursuit (Jeong, Needell, Qin, 2023, Algorithms 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import (
    COUNT,
    POSITIVE,
    Cohorts,
    Conditions,
    Guarantee,
    Method,
    Round,
    ServerModel,
    per_run,
)
from replifed.algorithms.cohort import Cohort
from replifed.errors import ConfigError
from replifed.network.ledger import Cost, sparse_bits
from replifed.network.messages import Counted, Sent
from replifed.operators.projections import Projection, Thresholding, onto_ball
from replifed.problems.base import LocalSteps, RestrictedMinimiser, Smooth


@dataclass(frozen=True, kw_only=True)
class FedGradMP(Method):
    """Clients run stochastic gradient matching pursuit; the server averages and prunes.

    With a dictionary Psi other than the standard basis, a model is the vector of x's coefficients in Psi,
    and the problem has the features A_i Psi.

    Parameters
    ----------
    sparsity : tau, a number or one per run, (R,).
    local_steps : K.
    batch : minibatch size b of the gradient that selects the support; None takes all of a client's samples.
    projection : approx and P: exact thresholding (orthonormal atoms) by default.
    solver : solver of the sub-problem: exact (Algorithm 1), or `inner_steps` steps of gradient descent from
        the current iterate, on all samples or on minibatches (Algorithm 2).
    step : step size of "sgd", a number or one per run, (R,); the others need none.
    reuse : whether the first step of "sgd" reuses the gradient that selected the support, so that a local
        iteration costs `inner_steps` gradients, not `inner_steps` + 1.
    radius : R of the optional projection on a ball.

    Notes
    -----
    In the paper's boxes Lambda is empty at first; here it is the support of x_t at the start of each round.
    Algorithm 2 sums p_i x_i over all N clients; here the cohort's weights are scaled to sum to one.
    """

    name: ClassVar = "fedgradmp"
    look: ClassVar = ("black", "solid", "v")
    cohorts: ClassVar = Cohorts(
        "uniform cohort; its sum is over all N in the box, over the cohort in the proof",
        "weights p_i, scaled to sum to one over those who came, then the threshold",
    )

    sparsity: Annotated[int | NDArray, COUNT]
    local_steps: Annotated[int, COUNT]
    batch: Annotated[int | None, COUNT] = None
    projection: Projection = field(default_factory=Thresholding)
    solver: Literal["exact", "gd", "sgd"] = "exact"
    inner_steps: Annotated[int, COUNT] = 1
    step: Annotated[float | NDArray | None, POSITIVE] = None
    reuse: bool = False
    radius: Annotated[float | None, POSITIVE] = None

    needs: ClassVar = (Smooth, LocalSteps, RestrictedMinimiser)
    weighted: ClassVar = True
    searched: ClassVar = False  # its step follows from the data
    guarantee: ClassVar = Guarantee(linear_to_bias=True, unbounded_dissimilarity=True)
    small: ClassVar = {"sparsity": 4, "local_steps": 2}

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.solver == "sgd") != (self.step is not None):
            raise ConfigError(
                f"FedGradMP.step = {self.step!r}: must be {POSITIVE} with solver 'sgd', None with others"
            )

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, tau, approx = self.local_steps, np.asarray(self.sparsity), self.projection
        cohort = Cohort(problem, ctx)
        local = problem.local(state.x, sparsity=int(np.max(tau)), clients=cohort.index)
        # Minibatches of a sub-problem, besides the one that selects the support.
        inner = self.inner_steps - self.reuse if self.solver == "sgd" else 0
        more = cohort.minibatches(K * inner, self.batch, "inner") if inner else []
        batches = cohort.minibatches(K, self.batch)
        u, sizes = self.compiled(local, batches, more) or self.pursue(local, batches, more)
        # Work of sub-problems in sample gradients; "sgd" counts its minibatches instead.
        solved = sum((self._work(cohort, size) for size in sizes), np.zeros(len(state.x)))
        # Lambda_s = approx_tau(sum_i p_i x_i, eta_3), and x_{t+1} = P_{Lambda_s} of that sum
        x = approx.prune(cohort.average(local, u, state.x), tau)
        if self.radius is not None:
            x = onto_ball(x, self.radius, approx)
        message = cohort.count * sparse_bits(self.sparsity, problem.dim)
        # Sub-problems count as the sample gradients that take as many operations.
        work = K * (1 + inner) * cohort.samples(self.batch) + solved
        return ServerModel(x), Cost(message, message, iterations=K, sample_gradients=work)

    def pursue(self, local, batches: list, inner: list) -> tuple[NDArray, list[NDArray]]:
        """Local models after K iterations, and unless the solver is "sgd" the sizes of their supports."""
        tau, approx, J, sizes = np.asarray(self.sparsity), self.projection, len(inner) // self.local_steps, []
        u = local.start  # x_{t,1} = x_t, and Lambda its support
        for k, batch in enumerate(batches):
            r = local.gradient(u, batch)  # r_{t,k} = grad g_{i,j_k}(x_{t,k})
            Gamma = approx.support(r, 2 * tau)  # Gamma = approx_{2 tau}(r, eta_1)
            Gamma |= u != 0  # Gamma_hat = Gamma u Lambda
            # b = argmin f_i over R(A_Gamma_hat)
            b = self._solve(local, u, r, Gamma, inner[k * J : (k + 1) * J])
            u = approx.prune(b, tau)  # Lambda = approx_tau(b, eta_2), x_{t,k+1} = P_Lambda b
            if self.radius is not None:
                u = onto_ball(u, self.radius, approx)  # Pi_R
            if self.solver != "sgd":
                sizes.append(Gamma.sum(axis=-1, dtype=np.int32))
        return u, sizes

    def compiled(self, local, batches: list, inner: list) -> tuple[NDArray, list[NDArray]] | None:
        """`pursue` where local models have it compiled, for orthonormal atoms and "sgd"."""
        fast = getattr(local, "pursue", None)
        approx, as_here = self.projection, type(self)._solve is FedGradMP._solve
        if fast is None or not as_here or self.solver != "sgd" or type(approx) is not Thresholding:
            return None
        own = {"classes": approx.classes, "reuse": self.reuse, "radius": self.radius}
        u = fast(batches, inner, self.step, self.sparsity, **own)
        return None if u is None else (u, [])

    def _solve(self, local, u: NDArray, r: NDArray, support: NDArray, batches: list) -> NDArray:
        """Minimiser of each client's loss on `support`, exactly or by a few steps from `u`."""
        if self.solver == "exact":
            return local.restricted_minima(u, support)
        if self.solver == "gd":
            return local.restricted_descent(u, support, self.inner_steps)
        assert self.step is not None  # as `__post_init__` checks
        step = per_run(self.step, u) * support
        w = u - step * r if self.reuse else u
        for batch in batches:
            w = w - step * local.gradient(w, batch)
        return w

    def _work(self, cohort: Cohort, size: NDArray) -> NDArray:
        """Work of sub-problems on `size` (R, c) coordinates, in gradients of single samples."""
        if self.solver == "gd":
            return cohort.sum(self.inner_steps * cohort.sizes * size / cohort.whole.dim)
        return cohort.sum(cohort.whole.restricted_work(size))

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """Algorithm 2, whose steps follow from the data."""
        # An exact solution of each client's problem on its support costs a hundred times a round.
        K = given.local_steps
        return cls(sparsity=given.sparsity, local_steps=1, solver="gd", inner_steps=K)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """As FedIterHT; sub-problems count as work."""
        return Sent(r.c * r.sparse, r.c * r.sparse)
