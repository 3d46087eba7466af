"""FedNova: normalised averaging of unequal local work (Wang, Liu, Liang, Joshi and Poor 2020, eq. (7))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Cohorts, Method, Round, ServerModel, per_run
from replifed.algorithms.cohort import Cohort
from replifed.network.ledger import BITS_PER_VALUE, Cost, dense_bits
from replifed.network.messages import Counted, Sent
from replifed.problems.audited import idle
from replifed.problems.base import PerClientModels, Smooth


@dataclass(frozen=True, kw_only=True)
class FedNova(Method):
    """x+ = x - tau_eff eta sum_i p_i d_i with d_i the mean of client i's tau_i gradients, for plain SGD.

    Parameters
    ----------
    step : local step size eta, one or one a run (R,).
    local_steps : the largest tau_i.
    work : "samples": tau_i is proportional to n_i, as with epochs; "equal": all tau_i are equal, as in
        FedAvg.
    batch : minibatch size; None takes all of a client's samples.
    """

    name: ClassVar = "fednova"
    look: ClassVar = ("sky", "dots", "P")
    cohorts: ClassVar = Cohorts(
        "clients drawn by p_i, with replacement, in an appendix; plain mean",
        "weights p_i and tau_eff of those who came, scaled to sum to one",
    )

    step: Annotated[float | NDArray, POSITIVE]
    local_steps: Annotated[int, COUNT]
    work: Literal["samples", "equal"] = "samples"
    batch: Annotated[int | None, COUNT] = None

    needs: ClassVar = (Smooth, PerClientModels)
    weighted: ClassVar = True
    small: ClassVar = {"step": 0.05, "local_steps": 4}

    def round(self, state: ServerModel, problem, ctx: Round) -> tuple[ServerModel, Cost]:
        K, b, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        tau, p = self._steps(cohort)[..., None], cohort.shares[..., None]
        x_i = x = np.repeat(state.x[:, None], tau.shape[1], axis=1)
        eta = per_run(self.step, x)
        for k, batch in enumerate(cohort.minibatches(K, b)):
            with idle((k >= tau)[..., 0]):
                x_i = x_i - (k < tau) * eta * cohort.problem.per_client_gradients(x_i, batch)
        d_i = (x - x_i) / tau  # eta times the mean of the gradients
        tau_eff = (p * tau).sum(axis=1)
        server = state.x - tau_eff * (p * d_i).sum(axis=1)
        looked = tau[..., 0] * (cohort.sizes if b is None or b >= problem.sizes.max() else b)
        # tau_i goes up, too.
        up, down = cohort.count * (dense_bits(problem.dim) + BITS_PER_VALUE), cohort.message()
        return ServerModel(server), Cost(up, down, iterations=K, sample_gradients=cohort.sum(looked))

    def _steps(self, cohort: Cohort) -> NDArray:
        """tau_i, (R or 1, c)."""
        longest = cohort.whole.sizes.max(axis=1, keepdims=True)
        share = cohort.sizes / longest if self.work == "samples" else np.ones(cohort.sizes.shape)
        return np.maximum(np.round(self.local_steps * share), 1).astype(cohort.whole.dtype)

    @staticmethod
    def messages(r: Counted) -> Sent:
        """A model and tau_i up, a model down; as many steps as the client's samples allow."""
        steps = [max(round(r.a.local_steps * size / r.largest), 1) for size in r.sizes]
        looked = sum(tau * (r.a.batch or size) for tau, size in zip(steps, r.sizes, strict=True))
        return Sent(r.c * (r.dense + 32), r.c * r.dense, looked)
