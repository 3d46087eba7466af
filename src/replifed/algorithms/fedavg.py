"""FedAvg: federated averaging (McMahan et al. 2017, Algorithm 1), the dense reference."""

from __future__ import annotations

from dataclasses import dataclass
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
from replifed.network.ledger import Cost, dense_bits
from replifed.problems.base import LocalSteps, Smooth
from replifed.randomness import Streams


@dataclass(frozen=True, kw_only=True)
class FedAvg:
    """K local gradient steps, weighted average.

    Parameters
    ----------
    step : float or array, shape (R,)
        Local step size eta.
    local_steps : int
        K.
    batch : int or None
        Minibatch size; None takes all of a client's samples.
    """

    step: float | NDArray
    local_steps: int
    batch: int | None = None

    needs: ClassVar = (Smooth, LocalSteps)
    partial_participation: ClassVar = True
    guarantee: ClassVar = Guarantee(linear_to_bias=False, unbounded_dissimilarity=False)

    def __post_init__(self) -> None:
        check_settings(self, {"step": POSITIVE, "local_steps": COUNT, "batch": COUNT})

    @property
    def stochastic(self) -> bool:
        return self.batch is not None

    def init(self, problem, streams: Streams) -> ServerModel:
        return ServerModel(np.zeros((len(streams), problem.dim), dtype=problem.dtype))

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        local = problem.local(state.x, additive=True, clients=cohort.index)
        w = local.start  # ClientUpdate(k, w_t), for all clients k of the cohort at once
        eta = per_run(self.step, w)
        for batch in cohort.minibatches(K, b):
            w = w - eta * local.gradient(w, batch)  # w <- w - eta grad l(w; b)
        x = local.mean(w)  # w_{t+1} = sum_k n_k / n w_{t+1}^k
        message = cohort.size * dense_bits(problem.dim)
        cost = Cost(message, message, iterations=K, sample_gradients=K * cohort.samples(b))
        return ServerModel(x), cost

    def observe(self, state: ServerModel) -> dict[str, NDArray]:
        return {"server": state.x}

    @classmethod
    def example(cls) -> FedAvg:
        """Small settings, for the contract tests."""
        return cls(step=0.05, local_steps=3)
