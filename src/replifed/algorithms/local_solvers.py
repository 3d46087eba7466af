"""Local solvers: the steps that a client takes between two communications, on an objective of its own.

A method states its clients' objectives, d_i(w) = f_i(w) + <a_i, w> + b |w|^2 / 2, and a local
solver takes some descent steps on them. All six methods of the Fed-PLT comparison have this form, so each of
them accepts any solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import (
    COUNT,
    NONNEGATIVE,
    POSITIVE,
    Conditions,
    Method,
    Round,
    check_settings,
    per_run,
    usual_settings,
)
from replifed.algorithms.cohort import Cohort
from replifed.errors import ConfigError
from replifed.network.ledger import Cost
from replifed.operators.matrices import solve_each
from replifed.problems.audited import idle
from replifed.problems.base import PerClientModels, Smooth

# Restricting to the runs that still have steps to go copies their data: it pays below this share of runs.
_WORTH_COPYING = 0.75
_NEWTON_STEPS = 50
_NEWTON_TOLERANCE = 1e-13


@dataclass(frozen=True)
class LocalObjective:
    """d_i(w) = f_i(w) + <a_i, w> + b |w|^2 / 2 for every run and client.

    Parameters
    ----------
    problem : problem with `PerClientModels` and `Smooth`, restricted to the clients that take part.
    linear : a, shape (R, N, D).
    ridge : b, one or one a run (R,); may be negative as long as d_i is strongly convex.
    """

    problem: Any
    linear: NDArray
    ridge: float | NDArray = 0.0

    def gradient(self, w: NDArray, batch: NDArray | None = None, clip: float | None = None) -> NDArray:
        """Gradient of every d_i at `w` (R, N, D)."""
        return self.problem.per_client_gradients(w, batch, clip, ridge=self.ridge, linear=self.linear)

    def hessian(self, w: NDArray) -> NDArray:
        """Hessian of every d_i at `w`, shape (R, N, D, D)."""
        H = self.problem.per_client_hessians(w)
        return H + per_run(self.ridge, H) * np.eye(w.shape[-1])

    def mu_L(self, runs: int) -> tuple[NDArray, NDArray]:
        """Smallest strong-convexity and largest smoothness constant of all d_i, each (R or 1, 1, 1)."""
        mu, L = self.problem.common_mu_L()
        if len(mu) > 1:
            mu, L = (np.repeat(constant, runs // len(constant)) for constant in (mu, L))
        ridge = np.reshape(self.ridge, (-1, 1, 1))
        return mu[:, None, None] + ridge, L[:, None, None] + ridge

    def descent(self, w: NDArray, steps: int, step: NDArray, **more: NDArray) -> NDArray:
        """Models after `steps` gradient steps, or Nesterov's, from `w` (R, N, D) on every d_i."""
        return self.problem.per_client_descent(w, steps, step, ridge=self.ridge, linear=self.linear, **more)

    def minibatch_descent(self, w: NDArray, drawn: NDArray, step: NDArray) -> NDArray | None:
        """Models after a step from `w` on each minibatch `drawn` (R or 1, K, N, b); None if not compiled."""
        compiled = getattr(self.problem, "minibatch_steps", None)
        if compiled is None:
            return None
        return compiled(w, list(drawn.swapaxes(0, 1)), step, ridge=self.ridge, linear=self.linear)

    def kept(self, runs: NDArray) -> LocalObjective:
        """Objective of the runs for which `runs` (R,) is true."""
        ridge = self.ridge
        if isinstance(ridge, np.ndarray) and ridge.size > 1:
            ridge = ridge[runs]
        return LocalObjective(self.problem.with_runs(runs), self.linear[runs], ridge)


def proximal(problem: Any, v: NDArray, rho: float | NDArray) -> LocalObjective:
    """d_i(w) = f_i(w) + |w - v_i|^2 / (2 rho), up to a constant; its minimiser is prox_{rho f_i}(v_i)."""
    weight = 1.0 / per_run(rho, v)
    return LocalObjective(problem, -weight * v, 1.0 / np.asarray(rho))


class LocalSolver(ABC):
    """A rule for the descent steps on the clients' objectives.

    Attributes
    ----------
    steps : N_e, the number of local steps.
    stochastic : whether it needs random numbers.
    """

    steps: int
    stochastic: ClassVar[bool] = False

    def draw(self, ctx: Round, problem: Any, steps: int) -> NDArray | None:
        """Random numbers of a round, for all of the problem's clients: (R or 1, steps, N, any)."""
        return None

    def samples(self, problem: Any) -> NDArray:
        """Samples that each client uses in one step, shape (S, N)."""
        return problem.sizes

    @abstractmethod
    def solve(
        self, objective: LocalObjective, start: NDArray, drawn: NDArray | None, counts: NDArray | None = None
    ) -> NDArray:
        """Clients' models (R, N, D) after `steps` steps from `start`; or after counts[r] steps in run r."""


@dataclass(frozen=True, kw_only=True)
class SteppedSolver(LocalSolver):
    """A local solver that repeats one step.

    Parameters
    ----------
    steps : N_e.
    step : step size, one or one a run (R,); by default, the best constant one for the objective's mu and L.
    """

    steps: Annotated[int, COUNT]
    step: Annotated[float | NDArray | None, POSITIVE] = None

    def __post_init__(self) -> None:
        check_settings(self)

    def solve(
        self, objective: LocalObjective, start: NDArray, drawn: NDArray | None, counts: NDArray | None = None
    ) -> NDArray:
        counts = np.full(len(start), self.steps) if counts is None else counts
        constants, state = self._constants(objective, len(start)), self._begin(start)
        done = np.empty_like(start)
        active = np.arange(len(start))  # runs of `start` that `state` still holds
        for k in range(int(counts.max())):
            left = counts[active]
            with idle(left[:, None] <= k):
                state = self._advance(state, objective, None if drawn is None else drawn[:, k], *constants)
            arrived = left == k + 1
            still = left > k + 1
            done[active[arrived]] = state[0][arrived]
            if still.any() and still.mean() <= _WORTH_COPYING:
                runs, objective, active = len(active), objective.kept(still), active[still]
                state = tuple(field[still] for field in state)
                constants = tuple(c[still] if len(c) == runs else c for c in constants)
                drawn = drawn[still] if drawn is not None and len(drawn) == runs else drawn
        return done

    def _constants(self, objective: LocalObjective, runs: int) -> tuple[NDArray, ...]:
        """Step size and other constants of the steps, each of shape (R or 1, 1, 1)."""
        mu, L = objective.mu_L(runs)
        return (2.0 / (mu + L) if self.step is None else np.reshape(self.step, (-1, 1, 1)),)

    def _begin(self, start: NDArray) -> tuple[NDArray, ...]:
        return (start,)

    @abstractmethod
    def _advance(
        self, state: tuple[NDArray, ...], objective: LocalObjective, drawn: Any, step: NDArray, *rest: Any
    ) -> tuple[NDArray, ...]:
        """State after one more step; its first entry is the clients' models."""


def random_steps(ctx: Round, mean: int, runs: int) -> NDArray:
    """Number of local steps until the next average, L ~ Geom(1 / mean), common to all clients; (R,)."""
    L = ctx.streams.draw("local_steps", lambda rng: rng.geometric(1.0 / mean, 1))[:, 0]
    return np.broadcast_to(L, (runs,))


def with_step(solver: SteppedSolver, step: float | NDArray) -> SteppedSolver:
    """`solver` with the step size that a method prescribes, unless it has one."""
    return replace(solver, step=step) if solver.step is None else solver


@dataclass(frozen=True, kw_only=True)
class Gradient(SteppedSolver):
    """Gradient descent (Fed-PLT eq. (11)): w <- w - gamma grad d(w); gamma = 2 / (mu + L) by default."""

    def solve(self, objective, start, drawn, counts=None):
        if counts is not None or type(self)._advance is not Gradient._advance:
            return super().solve(objective, start, drawn, counts)
        (step,) = self._constants(objective, len(start))
        return objective.descent(start, self.steps, step)

    def _advance(self, state, objective, drawn, step):
        (w,) = state
        return (w - step * objective.gradient(w),)


@dataclass(frozen=True, kw_only=True)
class Accelerated(SteppedSolver):
    """Nesterov's gradient with constant momentum (Fed-PLT eq. (12)), restarted each round; the result is w.

    u+ = w - grad d(w) / L,  w+ = u+ + beta (u+ - u),  beta = (sqrt L - sqrt mu) / (sqrt L + sqrt mu).

    Notes
    -----
    mu and L are those of the objective d that the steps minimise. Fed-PLT's paper prints those of f_i,
    without the contribution of the proximal term. `step` stands for 1 / L.
    """

    def _constants(self, objective, runs):
        mu, L = objective.mu_L(runs)
        step = 1.0 / L if self.step is None else np.reshape(self.step, (-1, 1, 1))
        # sqrt(mu / L); a step longer than 1 / mu leaves no momentum.
        root = np.sqrt(np.minimum(mu * step, 1.0))
        return step, (1.0 - root) / (1.0 + root)

    def solve(self, objective, start, drawn, counts=None):
        if counts is not None or type(self)._advance is not Accelerated._advance:
            return super().solve(objective, start, drawn, counts)
        step, beta = self._constants(objective, len(start))
        return objective.descent(start, self.steps, step, momentum=beta)

    def _begin(self, start):
        return start, start

    def _advance(self, state, objective, drawn, step, beta):
        w, u = state
        ahead = w - step * objective.gradient(w)  # u+
        return ahead + beta * (ahead - u), ahead


@dataclass(frozen=True, kw_only=True)
class Stochastic(SteppedSolver):
    """Gradient descent on minibatches of size `batch`, drawn uniformly with replacement.

    Notes
    -----
    The batch's sum is scaled so that its expectation is the full gradient. Fed-PLT's paper scales it by
    1 / q, with q the number of the client's samples; for a mean loss, the unbiased factor is 1 / |B|.
    """

    batch: Annotated[int, COUNT]

    stochastic: ClassVar[bool] = True

    def draw(self, ctx, problem, steps):
        shape = (steps, problem.n_clients, self.batch)
        uniform = ctx.streams.draw("batch", lambda rng: rng.random(shape))
        sizes = problem.sizes
        if 1 < len(sizes) < len(uniform):
            sizes = np.repeat(sizes, len(uniform) // len(sizes), axis=0)
        return (uniform * sizes[:, None, :, None]).astype(np.int64)

    def samples(self, problem):
        return np.full(problem.sizes.shape, self.batch)

    def solve(self, objective, start, drawn, counts=None):
        if counts is None:
            (step,) = self._constants(objective, len(start))
            moved = objective.minibatch_descent(start, drawn, step)
            if moved is not None:
                return moved
        return super().solve(objective, start, drawn, counts)

    def _advance(self, state, objective, drawn, step):
        (w,) = state
        return (w - step * objective.gradient(w, drawn),)


@dataclass(frozen=True, kw_only=True)
class Noisy(SteppedSolver):
    """Noisy gradient descent (Fed-PLT eq. (13)): w <- w - gamma grad d(w) + t, t = sqrt(2 gamma) n.

    Parameters
    ----------
    tau : level of the noise, one or one a run (R,).
    reading : "variance", n ~ N(0, tau I), which the published errors follow; or "deviation",
        n ~ N(0, tau^2 I), as eq. (13) prints.
    clip : the sensitivity L of Assumption 3, not the smoothness: each sample's gradient is scaled down to a
        norm of at most L / 2.
    """

    tau: Annotated[float | NDArray, NONNEGATIVE]
    reading: Literal["variance", "deviation"] = "variance"
    clip: Annotated[float | None, POSITIVE] = None

    stochastic: ClassVar[bool] = True

    def draw(self, ctx, problem, steps):
        shape = (steps, problem.n_clients, problem.dim)
        return ctx.streams.draw("noise", lambda rng: rng.standard_normal(shape))

    def _constants(self, objective, runs):
        (step,) = super()._constants(objective, runs)
        deviation = np.sqrt(self.tau) if self.reading == "variance" else self.tau  # of n
        return step, np.sqrt(2.0 * step) * np.reshape(deviation, (-1, 1, 1))

    def _advance(self, state, objective, drawn, step, scale):
        (w,) = state
        clip = None if self.clip is None else self.clip / 2
        return (w - step * objective.gradient(w, clip=clip) + scale * drawn,)


@dataclass(frozen=True, kw_only=True)
class Exact(LocalSolver):
    """The minimiser of d by Newton's method; with it, Fed-PLT is exact Peaceman-Rachford splitting.

    NaN where a Hessian is singular.
    """

    steps: ClassVar[int] = 1  # type: ignore[misc]
    counts_differ: ClassVar[str] = "it stands for an exact minimiser, however that is computed"

    def solve(self, objective, start, drawn, counts=None):
        w = start
        for _ in range(_NEWTON_STEPS):
            g = objective.gradient(w)
            move = solve_each(objective.hessian(w), g[..., None])[..., 0]
            w = w - move
            # Runs that have diverged, or whose Hessian is singular, do not keep the others from stopping.
            longest, size = (np.abs(a).max(initial=0.0, where=np.isfinite(w)) for a in (move, w))
            if longest <= _NEWTON_TOLERANCE * (1.0 + size):
                break
        return w


@dataclass(frozen=True, kw_only=True)
class SolverMethod(Method):
    """Base of methods with stateful clients and a local solver.

    Parameters
    ----------
    solver : LocalSolver
    """

    solver: LocalSolver

    needs: ClassVar = (Smooth, PerClientModels)
    searched: ClassVar = True

    @property
    def stochastic(self) -> bool:
        return self.solver.stochastic

    def cost(self, cohort: Cohort, exchanges: int = 1, gradients: int = 0) -> Cost:
        """Cost of a round: a model each way per exchange; `gradients` full gradients beside the steps."""
        steps, message, problem = self.solver.steps, cohort.message(exchanges), cohort.whole
        used = steps * cohort.total(self.solver.samples(problem)) + gradients * cohort.total(problem.sizes)
        return Cost(message, message, exchanges, iterations=steps, sample_gradients=used)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """Gradient steps as local solver; the step, if there is one, as a multiple of 1 / L."""
        solver = Gradient(steps=given.local_steps)
        return cls(**usual_settings(cls, multiple, given), solver=solver)


@dataclass(frozen=True, kw_only=True)
class AcceleratedStochastic(Accelerated):
    """Accelerated steps (Fed-PLT eq. (12)) with the gradients of minibatches of size `batch`."""

    batch: Annotated[int, COUNT]

    stochastic: ClassVar[bool] = True

    draw, samples = Stochastic.draw, Stochastic.samples

    def _advance(self, state, objective, drawn, step, beta):
        w, u = state
        ahead = w - step * objective.gradient(w, drawn)
        return ahead + beta * (ahead - u), ahead


@dataclass(frozen=True, kw_only=True)
class Uncoordinated(LocalSolver):
    """A solver, with its number of steps, for each client (Fed-PLT's Remark 1).

    Only deterministic solvers, and only cohorts in which every client computes (masks).
    """

    solvers: tuple[LocalSolver, ...]

    @property
    def steps(self) -> int:  # type: ignore[override]
        return max(solver.steps for solver in self.solvers)

    def samples(self, problem):
        # Clients with fewer steps look at fewer samples, on average over the most steps of any.
        return problem.sizes * np.array([solver.steps for solver in self.solvers]) / self.steps

    def solve(self, objective, start, drawn, counts=None):
        if start.shape[1] != len(self.solvers) or any(solver.stochastic for solver in self.solvers):
            raise ConfigError(f"Uncoordinated.solvers: must be {start.shape[1]} deterministic solvers")
        solved = []
        for client, solver in enumerate(self.solvers):
            problem = objective.problem.with_clients(np.array([[client]]))
            alone = LocalObjective(problem, objective.linear[:, [client]], objective.ridge)
            solved.append(solver.solve(alone, start[:, [client]], None, counts))
        return np.concatenate(solved, axis=1)
