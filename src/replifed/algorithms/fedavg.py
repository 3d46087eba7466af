"""FedAvg: federated averaging (McMahan et al. 2017, Algorithm 1), the dense reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Cohorts, Guarantee, Method, Round, ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_steps import gradient_steps
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways


@dataclass(frozen=True, kw_only=True)
class FedAvg(Method):
    """K local gradient steps, weighted average.

    Parameters
    ----------
    step : local step size eta, one or one a run (R,).
    local_steps : K, the number of local steps. (In the paper's Algorithm 1, clients make E epochs of
        minibatches, and K is the number of clients.)
    batch : minibatch size; None takes all of a client's samples.
    """

    name: ClassVar = "fedavg"
    look: ClassVar[tuple] = ("grey", "dots", "x", 1.2)
    messages: ClassVar = staticmethod(both_ways)  # a model there and back
    cohorts: ClassVar = Cohorts(
        "uniform cohort of max(C N, 1) clients; weights n_k over the cohort's samples",
        "weights p_k, scaled to sum to one over those who came",
    )

    step: Annotated[float | NDArray, POSITIVE]
    local_steps: Annotated[int, COUNT]
    batch: Annotated[int | None, COUNT] = None

    weighted: ClassVar = True
    guarantee: ClassVar = Guarantee(linear_to_bias=False, unbounded_dissimilarity=False)
    small: ClassVar = {"step": 0.05, "local_steps": 3}

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        local = problem.local(state.x, additive=True, clients=cohort.index, draws=cohort.draws(K, b))
        # ClientUpdate(k, w_t), for all clients k of the cohort at once: w <- w - eta grad l(w; b)
        w = gradient_steps(local, cohort.minibatches(K, b), self.step)
        x = cohort.average(local, w, state.x)  # w_{t+1} = sum_k n_k / n w_{t+1}^k
        return ServerModel(x), cohort.cost(K, b)
