"""FedProx: FedAvg with a proximal term (Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith 2020, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, NONNEGATIVE, POSITIVE, Cohorts, Method, Round, ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_steps import gradient_steps
from replifed.network.ledger import Cost
from replifed.network.messages import both_ways


@dataclass(frozen=True, kw_only=True)
class FedProx(Method):
    """K gradient steps on h_k(w; w_t) = F_k(w) + mu / 2 |w - w_t|^2, then a weighted average.

    Parameters
    ----------
    step : local step size eta, one or one a run (R,).
    local_steps : K. The paper asks for a gamma-inexact minimiser of h_k by any solver.
    mu : weight of the proximal term, one or one a run (R,); with 0 this is FedAvg.
    batch : minibatch size; None takes all of a client's samples.

    Notes
    -----
    The paper's box draws clients with probability p_k and takes their plain mean, as the law
    `network.participation.WithReplacement` does; others are averaged with the weights p_k, as in FedAvg.
    """

    name: ClassVar = "fedprox"
    look: ClassVar = ("blue", "dots", "v")
    messages: ClassVar = staticmethod(both_ways)  # as FedAvg
    cohorts: ClassVar = Cohorts(
        "K devices, drawn by p_k; plain mean",
        "as FedAvg; by-size is the box: draws by n_k, and their plain mean",
    )

    step: Annotated[float | NDArray, POSITIVE]
    local_steps: Annotated[int, COUNT]
    mu: Annotated[float | NDArray, NONNEGATIVE] = 0.1
    batch: Annotated[int | None, COUNT] = None

    weighted: ClassVar = True
    small: ClassVar = {"step": 0.05, "local_steps": 3}

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        local = problem.local(state.x, additive=True, clients=cohort.index, draws=cohort.draws(K, b))
        # w <- w - eta grad h_k(w; w_t), and grad h_k(w; w_t) = grad F_k(w) + mu (w - w_t)
        w = gradient_steps(local, cohort.minibatches(K, b), self.step, pull=self.mu)
        return ServerModel(cohort.average(local, w, state.x)), cohort.cost(K, b)
