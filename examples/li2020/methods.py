"""FedAvg as the paper has it: steps that shorten, minibatches without repeats, the authors' devices."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from replifed.algorithms.base import ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_steps import gradient_steps
from replifed.algorithms.registry import method_class
from replifed.network.participation import Averaged, FixedSize, WithReplacement
from replifed.randomness import Streams


def law(scheme: str, K: int, problem: Any) -> Any:
    """Who takes part in a scheme, and with which weight, in the words of the library's laws."""
    p = np.asarray(problem.weights, float)
    return {
        "full": None,
        "I": WithReplacement(K, p / p.sum()),
        "II": Averaged(FixedSize(K), "scaled", p),
        "original": Averaged(FixedSize(K), "completed", p),
        "transformed": FixedSize(K),
    }[scheme]


@dataclass(frozen=True)
class AuthorsDevices(Streams):
    """Streams in which the devices of round r come from numpy's RandomState(r), as in the authors' code."""

    def draw(self, purpose, sample):
        if purpose != "cohort":
            return super().draw(purpose, sample)
        return sample(np.random.RandomState(self.round_))[None]


@dataclass(frozen=True, kw_only=True)
class LocalSGD(method_class("fedavg")):
    """FedAvg with a step that shortens.

    Parameters
    ----------
    rule : factor of the step, of the round, from 0: one number, or one for each of the local steps.
    tilted : whether device k takes N p_k times the step, ridge included, for plain means (transformed II).
    spread : the start is uniform between -spread and spread, in place of 0.
    """

    rule: Any = None
    tilted: bool = False
    spread: float = 0.0

    def init(self, problem, streams):
        drawn = streams.draw("start", lambda rng: rng.uniform(-self.spread, self.spread, problem.dim))
        return ServerModel(np.repeat(drawn, len(streams) // len(drawn), axis=0).astype(problem.dtype))

    def round(self, state, problem, ctx):
        K, size, cohort = self.local_steps, self.batch, Cohort(problem, ctx)
        local = problem.local(state.x, additive=True, clients=cohort.index, draws=cohort.draws(K, size))
        batches, eta = cohort.minibatches(K, size, replace=False), self.step * self.rule(ctx.t)
        tilt = problem.n_clients * cohort.take(problem.weights) if self.tilted else np.ones((1, 1))
        w = local.start
        if np.ndim(eta) == 0 and not self.tilted:
            w = gradient_steps(local, batches, eta)
        else:
            own = tilt.reshape(*tilt.shape, *(1,) * (w.ndim - 2))
            for length, batch in zip(np.broadcast_to(eta, K), batches, strict=True):
                w = w - (length * own).astype(w.dtype) * local.gradient(w, batch)
        x = (
            local.mean(w, np.full_like(tilt, 1 / tilt.shape[1]))
            if self.tilted
            else cohort.average(local, w, state.x)
        )
        return ServerModel(x), cohort.cost(K, size)
