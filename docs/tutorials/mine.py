"""FedExP: FedAvg whose server goes further where the clients' changes cancel (Jhunjhunwala et al. 2023)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Method, ServerModel, per_run
from replifed.algorithms.cohort import Cohort
from replifed.problems.base import PerClientModels, Smooth


@dataclass(frozen=True, kw_only=True)
class FedExP(Method):
    """Local steps as in FedAvg; the server multiplies the mean change by a factor of at least one."""

    step: Annotated[float | NDArray, POSITIVE]
    local_steps: Annotated[int, COUNT]

    needs: ClassVar = (Smooth, PerClientModels)

    def round(self, state, problem, ctx):
        cohort, K = Cohort(problem, ctx), self.local_steps
        x = state.x[:, None].repeat(cohort.clients.shape[1], axis=1)  # each client's copy of the model
        start = x
        for _ in range(K):
            x = x - per_run(self.step, x) * cohort.problem.per_client_gradients(x)
        change = cohort.mean(x - start)  # (R, D)
        size = cohort.mean(((x - start) ** 2).sum(axis=2, keepdims=True))  # (R, 1)
        factor = size / (2 * (change**2).sum(axis=1, keepdims=True) + 1e-12)
        return ServerModel(state.x + np.maximum(factor, 1) * change), cohort.cost(K, None)
