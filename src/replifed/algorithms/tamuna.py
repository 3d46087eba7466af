"""TAMUNA (Condat, Agarsky, Malinovsky and Richtarik 2023): random local steps, cohorts, sparse messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Cohorts, Conditions, Range, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import (
    Gradient,
    LocalObjective,
    SolverMethod,
    SteppedSolver,
    random_steps,
    with_step,
)
from replifed.errors import ConfigError
from replifed.network.ledger import BITS_PER_VALUE, Cost
from replifed.network.messages import Counted, Sent
from replifed.randomness import Streams


class TAMUNAState(NamedTuple):
    """State of TAMUNA."""

    x: NDArray  # (R, D), the server's model
    h: NDArray  # (R, N, D), the clients' control variates; their sum is zero


@dataclass(frozen=True, kw_only=True)
class TAMUNA(SolverMethod):
    """L ~ Geom(p) steps x_i <- x_i - gamma grad f_i(x_i) + gamma h_i, then an average of sparse messages.

    Parameters
    ----------
    gamma : step size, one or one a run (R,), also of the local steps unless the solver has its own.
    eta : step of the control variates, one or one a run (R,).
    solver : local steps on f_i(w) - <h_i, w>; their mean number is its `steps`, 1 / p. L is common to all
        clients.
    sparsity : s >= 2, the number of participating clients that send each coordinate; all by default.
    """

    name: ClassVar = "tamuna"
    look: ClassVar = ("green", "short", "<")
    theory: ClassVar = "gamma = 2 / (L + mu), and the largest eta"
    cohorts: ClassVar = Cohorts(
        "uniform cohort of c clients; plain mean of the coordinates that are sent",
        "plain mean over those who came; the others keep h_i",
    )

    gamma: Annotated[float | NDArray, POSITIVE]
    eta: Annotated[float | NDArray, POSITIVE]
    solver: SteppedSolver
    sparsity: Annotated[int | None, Range(2, whole=True)] = None

    stochastic: ClassVar = True
    small: ClassVar = {"gamma": 0.1, "eta": 0.1, "solver": Gradient(steps=3)}

    def init(self, problem: Any, streams: Streams) -> TAMUNAState:
        h = np.zeros((len(streams), problem.n_clients, problem.dim), dtype=problem.dtype)
        return TAMUNAState(h[:, 0].copy(), h)

    def round(self, state: TAMUNAState, problem: Any, ctx: Round) -> tuple[TAMUNAState, Cost]:
        cohort = Cohort(problem, ctx)
        counts = random_steps(ctx, self.solver.steps, len(state.x))  # L
        h = cohort.take(state.h)
        solver = with_step(self.solver, self.gamma)
        start = np.repeat(state.x[:, None], h.shape[1], axis=1)
        drawn = cohort.draw(solver, int(counts.max()))
        w = solver.solve(LocalObjective(cohort.problem, -h), start, drawn, counts)
        sent = self._senders(cohort, ctx, problem.dim)
        if sent is None:
            x = cohort.mean(w)
            bits = cohort.message()
        else:
            x = (sent * w).sum(axis=1) / self.sparsity
            bits = self.sparsity * problem.dim * BITS_PER_VALUE
        ratio = per_run(np.divide(self.eta, self.gamma), h)
        change = x[:, None] - w if sent is None else sent * (x[:, None] - w)
        state = TAMUNAState(x, cohort.put(state.h, h + ratio * change))
        # For its h_i a client needs the new average of the coordinates that it sent. If all take part, the
        # next round's model contains it.
        everyone = cohort.mask is None and cohort.size == problem.n_clients
        down = cohort.message() if everyone else cohort.message() + bits
        used = counts * cohort.total(solver.samples(problem))
        return state, Cost(bits, down, iterations=counts, sample_gradients=used)

    def _senders(self, cohort: Cohort, ctx: Round, dim: int) -> NDArray | None:
        """Mask (R or 1, c, D) of the coordinates that each client sends; None if all send all.

        Coordinate j is sent by the s clients at the places from s j on of a circle, on which the clients have
        a random order.
        """
        if self.sparsity is None:
            return None
        if cohort.mask is not None:
            raise ConfigError("TAMUNA.sparsity: messages are made sparse only in cohorts of fixed size")
        c, s = int(cohort.count[0]), self.sparsity
        if s > c:
            raise ConfigError(f"TAMUNA.sparsity = {s}: at most the {c} clients that take part")
        order = ctx.streams.draw("mask", lambda rng: rng.permutation(c))
        return (order[:, :, None] - s * np.arange(dim)) % c < s

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """gamma as a multiple of the theory's."""
        K, N = given.local_steps, given.clients
        gamma, eta = theory_parameters(given.mu, given.L, K, N, max(given.cohort or N, 2))
        return cls(gamma=multiple * gamma, eta=eta, solver=Gradient(steps=K))

    @staticmethod
    def messages(r: Counted) -> Sent:
        """In a cohort each client gets the new mean as well, since it may miss the next round."""
        return Sent(r.c * r.dense, r.c * r.dense * (1 if r.c == r.N else 2), r.K * r.n)


def theory_parameters(
    mu: float | NDArray, L: float | NDArray, steps: int, n_clients: int, sparsity: int
) -> tuple[float | NDArray, float]:
    """gamma = 2 / (L + mu) and eta = p chi with the largest chi, N (s - 1) / (s (N - 1)).

    `sparsity` s is the number of clients that send each coordinate: the cohort, unless messages are sparse.
    """
    chi = n_clients * (sparsity - 1) / (sparsity * (n_clients - 1)) if n_clients > 1 else 1.0
    return 2.0 / np.add(mu, L), chi / steps
