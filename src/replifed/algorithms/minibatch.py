"""Minibatch SGD, plain and accelerated: one step on the samples of FedAvg's K steps (Yuan and Ma 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Cohorts, Method, Round, ServerModel, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.fedac import Accelerated, AcceleratedMethod, middle, moved
from replifed.network.ledger import Cost
from replifed.network.messages import Counted, Sent
from replifed.problems.base import PerClientModels, Smooth


def mean_gradient(cohort: Cohort, x: NDArray, K: int, b: int | None) -> NDArray:
    """Mean gradient at x (R, D) over the clients' K minibatches of size b, (R, D)."""
    everywhere = np.repeat(x[:, None], cohort.clients.shape[1], axis=1)
    batches = cohort.minibatches(K, b)
    batch = None if batches[0] is None else np.concatenate(batches, axis=-1)
    return cohort.mean(cohort.problem.per_client_gradients(everywhere, batch))


def cost(cohort: Cohort, K: int, b: int | None) -> Cost:
    """Cost of one step: a gradient up, a model down; a full gradient is computed once, not K times."""
    return cohort.cost(1, b)._replace(sample_gradients=(K if b is not None else 1) * cohort.samples(b))


def one_gradient(r: Counted) -> Sent:
    """Count a gradient up and a model down; the samples of all local steps, if not all samples."""
    return Sent(r.c * r.dense, r.c * r.dense, r.n * (r.a.local_steps if r.a.batch else 1))


@dataclass(frozen=True, kw_only=True)
class MinibatchSGD(Method):
    """x <- x - eta g with the mean gradient of N K b samples.

    Parameters
    ----------
    step : eta, one or one a run (R,).
    local_steps : K.
    batch : b; None takes all samples, which is gradient descent.
    """

    name: ClassVar = "mb_sgd"
    label: ClassVar = "minibatch SGD"
    look: ClassVar = ("black", "long", "<")
    theory: ClassVar = "step 1 / L, gradient descent on an L-smooth function"
    messages: ClassVar = staticmethod(one_gradient)
    cohorts: ClassVar = Cohorts(
        "FedSGD of McMahan et al. 2017: uniform cohort",
        "plain mean of the gradients of those who came",
    )

    step: Annotated[float | NDArray, POSITIVE]
    local_steps: Annotated[int, COUNT]
    batch: Annotated[int | None, COUNT] = None

    needs: ClassVar = (Smooth, PerClientModels)
    small: ClassVar = {"step": 0.05, "local_steps": 3}

    def round(self, state: ServerModel, problem: Any, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        g = mean_gradient(cohort, state.x, K, b)
        return ServerModel(state.x - per_run(self.step, g) * g), cost(cohort, K, b)


@dataclass(frozen=True, kw_only=True)
class MinibatchAcSGD(AcceleratedMethod):
    """Minibatch SGD with the accelerated step of naive FedAc; settings: `AcceleratedMethod`."""

    name: ClassVar = "mb_ac_sgd"
    label: ClassVar = "accelerated minibatch SGD"
    look: ClassVar = ("green", "long", "^")
    messages: ClassVar = staticmethod(one_gradient)
    cohorts: ClassVar = Cohorts(
        "all M workers in every round; nothing on cohorts",
        "plain mean of the gradients of those who came",
        form=False,
    )

    def round(self, state: Accelerated, problem: Any, ctx: Round) -> tuple[Accelerated, Cost]:
        K, b, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        c = self.coupled(problem, "naive")
        w, ag = (one[:, None] for one in state)
        md = middle(w, ag, c)
        g = mean_gradient(cohort, md[:, 0], K, b)[:, None]
        w, ag = moved(w, md, g, per_run(self.step, w), c)
        return Accelerated(w[:, 0], ag[:, 0]), cost(cohort, K, b)
