"""Common part of Newton-type methods: x_{t+1} = x_t - eta_t H_t^{-1} g_t with a distributed line search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import (
    COUNT,
    NONNEGATIVE,
    Cohorts,
    Conditions,
    Method,
    Range,
    Round,
    ServerModel,
    check_settings,
)
from replifed.network.ledger import BITS_PER_VALUE, Cost
from replifed.network.messages import Counted, Sent
from replifed.operators.matrices import solve_each
from replifed.problems.base import Hessian, Ray, Smooth
from replifed.randomness import Streams

# In a comparison these methods stop at gradients of this length, where the gap is below 1e-15.
SOLVED = 1e-9
_UNIT = Range(0, 1, low_open=True, high_open=True)
# Near the minimiser the required decrease is below the rounding error of the objective.
_ROUNDING = 16 * np.finfo(float).eps


@dataclass(frozen=True, kw_only=True)
class Armijo:
    """First of the steps 1, r, r^2, ... with f(x + eta p) <= f(x) + c eta g'p.

    Parameters
    ----------
    c : required share of the linear decrease.
    shrink : r.
    trials : maximum number of steps; the last is taken if none is accepted.

    Notes
    -----
    GIANT's rule is c = 0.1, r = 1/4, 10 trials. The direction p is sent to the clients like a model. Each
    client sends f_i(x) and, for every step, f_i(x + eta p) - f_i(x), and receives a scalar that tells it
    whether to go on: `messages` in all. A difference has less rounding error than two losses.
    """

    c: Annotated[float, _UNIT] = 1e-4
    shrink: Annotated[float, _UNIT] = 0.5
    trials: Annotated[int, COUNT] = 60

    def __post_init__(self) -> None:
        check_settings(self)

    def step(
        self,
        problem: Any,
        x: NDArray,
        g: NDArray,
        p: NDArray,
        sent: Callable[[NDArray], NDArray] = lambda exact: exact,
    ) -> tuple[NDArray, NDArray]:
        """Search along p from x, where the gradient is g; `sent` returns an array as received.

        Returns the steps eta (R,), and the number of trials (R,).
        """
        losses = problem.along(x, p)
        weights = problem.weights
        slope = np.einsum("rd,rd->r", g, p)
        here = losses(np.zeros(len(x)))
        f = (weights * here).sum(axis=-1)
        eta, trials = np.ones(len(x)), np.ones(len(x), dtype=np.int64)
        # A run without a finite direction has diverged.
        accepted = ~np.isfinite(slope)
        for _ in range(self.trials - 1):
            change = (weights * sent(losses(eta) - here)).sum(axis=-1)
            accepted |= change <= self.c * eta * slope + _ROUNDING * np.abs(f)
            if accepted.all():
                break
            eta = np.where(accepted, eta, eta * self.shrink)
            trials += ~accepted
        return eta, trials

    @staticmethod
    def messages(trials: NDArray) -> tuple[NDArray, NDArray]:
        """Scalars that one client sends and receives in a search of `trials` steps."""
        return 1 + trials, trials


class Direction(NamedTuple):
    """Outcome of a round before its line search: direction, messages and work."""

    state: Any  # next state, whose x is set after the line search
    p: NDArray  # (R, n), the search direction
    sent: NDArray | float = 0  # bits of all clients, besides their gradients; a number or (R,)
    hessians: int = 0  # Hessians computed, over all clients
    exchanges: int = 1  # round trips, each of which begins with n numbers from the server


def second_order(r: Counted, extra: Any = 0, exchanges: int = 1) -> Sent:
    """Count all clients' gradients of 16 bits a coordinate, what is extra, and the line search's scalars."""
    up = r.c * (16 * r.D + 32 * (1 + r.trials)) + extra
    return Sent(up, r.c * (exchanges * r.dense + 32 * r.trials), r.n, exchanges)


@dataclass(frozen=True, kw_only=True)
class NewtonType(Method, ABC):
    """Settings of every Newton-type method.

    Parameters
    ----------
    line_search : None takes eta = 1.
    epsilon : a run stops, and costs nothing more, once the norm of its gradient is below it.
    b_max : bits of a coordinate of a gradient or a vector that a client sends at full quality.
        Eigenvalues, other scalars and the server's messages take 32 bits.
    single_precision : whether unquantised numbers are rounded to 32-bit floats and cost 32 bits each, as in
        first-order methods; otherwise they are not rounded and cost b_max bits, as in the papers.
    """

    line_search: Armijo | None = field(default_factory=Armijo)
    epsilon: Annotated[float, NONNEGATIVE] = 0.0
    # The fraction of a double has 52 bits.
    b_max: Annotated[int, Range(1, 52, whole=True)] = 16
    single_precision: bool = False

    needs: ClassVar[tuple[type, ...]] = (Smooth, Hessian, Ray)
    weighted: ClassVar = True
    partial_participation: ClassVar = False
    cohorts: ClassVar = Cohorts(
        "all clients in every round: directions and line search are of all",
        form=False,
    )
    searched: ClassVar = False
    in_doubles: ClassVar = True  # floats of 32 bits are too short for linear systems

    @property
    def value_bits(self) -> int:
        """Bits of a coordinate that is sent unquantised."""
        return BITS_PER_VALUE if self.single_precision else self.b_max

    def sent(self, exact: NDArray) -> NDArray:
        """Array as the receiver gets it without quantisation."""
        return exact.astype(np.float32).astype(float) if self.single_precision else exact

    def init(self, problem, streams: Streams) -> Any:
        return ServerModel(np.zeros((len(streams), problem.dim)))

    def budget(self, ctx: Round, problem, runs: int) -> NDArray:
        """Bits per coordinate that each client may send, (R, N); without a channel, all that it needs."""
        if ctx.budget is None:
            return np.full((runs, problem.n_clients), problem.dim * max(self.b_max, self.value_bits))
        return np.broadcast_to(ctx.budget, (runs, problem.n_clients))

    @abstractmethod
    def direction(self, state, g: NDArray, problem, ctx: Round) -> Direction:
        """Return the method's search direction, from the gradient g (R, n) at the server's model."""

    def round(self, state, problem, ctx: Round) -> tuple[Any, Cost]:
        """Move the runs that have not converged along p, by the step of the line search."""
        if self.single_precision:
            g = (problem.weights[..., None] * self.sent(problem.client_gradients(state.x))).sum(axis=1)
        else:
            g = problem.gradient(state.x)
        active = ~(np.linalg.norm(g, axis=-1) < self.epsilon)
        if not active.any():
            return state, Cost(0, 0, exchanges=0)
        direction = self.direction(state, g, problem, ctx)
        x, p = state.x, self.sent(direction.p)
        eta = np.ones(len(x))
        up: NDArray | int = 0
        down: NDArray | int = 0
        if self.line_search is not None:
            eta, trials = self.line_search.step(problem, x, g, p, self.sent)
            up, down = self.line_search.messages(trials)
        N, n = problem.n_clients, problem.dim
        cost = Cost(
            bits_up=N * n * self.value_bits + direction.sent + N * BITS_PER_VALUE * up,
            bits_down=N * BITS_PER_VALUE * (n * direction.exchanges + down),
            iterations=1,
            exchanges=direction.exchanges,
            sample_gradients=np.broadcast_to(problem.sizes.sum(axis=1), len(x)),
            hessians=direction.hessians,
            line_search_messages=N * (up + down),
        )
        x_next = x + eta[:, None] * p
        if not active.all():
            x_next = np.where(active[:, None], x_next, x)
            cost = Cost(*(np.where(active, amount, 0) for amount in cost))
        return direction.state._replace(x=x_next), cost

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """Without a number to tune: the step is searched in each round."""
        return cls(epsilon=SOLVED, single_precision=True)


def solve_runs(H: NDArray, g: NDArray, shift: NDArray | None = None) -> NDArray:
    """(H + shift I)^{-1} g run by run, (R, n), of symmetric H, for `shift` (R,), none by default.

    NaN for runs that have diverged, or whose matrix is singular. Reads one triangle of definite matrices.
    """
    solution = np.empty(g.shape)
    for run in range(len(g)):
        solution[run] = _solve(H[run], g[run], 0.0 if shift is None else shift[run])
    return solution


def _solve(H: NDArray, g: NDArray, shift: float) -> NDArray:
    shifted = H.copy()
    diagonal = np.einsum("ii->i", shifted)
    diagonal += shift
    if not 0.0 < diagonal.min() <= diagonal.max() < np.inf:
        return np.full(g.shape, np.nan)
    from scipy.linalg.lapack import dposv

    # Cholesky takes half the time and works in place, but an estimate need not be definite.
    _, solution, info = dposv(shifted.T, g, lower=1, overwrite_a=True)
    # With a finite diagonal, any other entry that is not finite makes Cholesky or its solution fail.
    if info == 0:
        return solution if np.isfinite(solution).all() else np.full(g.shape, np.nan)
    if not (np.isfinite(H).all() and np.isfinite(g).all()):
        return np.full(g.shape, np.nan)
    return solve_each(H + shift * np.eye(len(g)), g[:, None])[:, 0]


def averaged(weights: NDArray, matrices: NDArray) -> NDArray:
    """sum_i p_i H_i over the clients: (S, N) and (R, N, n, n) give (R, n, n)."""
    runs, clients, n, _ = matrices.shape
    p = np.broadcast_to(weights, (runs, clients))[:, None]
    return np.matmul(p, matrices.reshape(runs, clients, n * n)).reshape(runs, n, n)
