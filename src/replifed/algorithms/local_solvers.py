"""What clients do between two communications: a few steps on an objective of their own.

A method states its clients' objectives, d_i(w) = f_i(w) + <a_i, w> + b |w|^2 / 2, and a local
solver takes some steps down on them. All six methods of the Fed-PLT comparison have this form,
so that any solver works within any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Range, Round, check_settings, per_run
from replifed.errors import ConfigError
from replifed.operators.linear_systems import solve_each

# Restricting to the runs that still have steps to go copies their data: it pays below this share of runs.
_WORTH_COPYING = 0.75
_NEWTON_STEPS = 50
_NEWTON_TOLERANCE = 1e-13


@dataclass(frozen=True)
class LocalObjective:
    """d_i(w) = f_i(w) + <a_i, w> + b |w|^2 / 2 for every run and client.

    Parameters
    ----------
    problem : Problem
        With `PerClientModels` and `Smooth`; its clients are those that take part.
    linear : array, shape (R, N, D)
        a.
    ridge : float or array, shape (R,), optional
        b, 0 by default; may be negative as long as d_i is strongly convex.
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

    def mu_L(self, runs: int, *, per_client: bool = False) -> tuple[NDArray, NDArray]:
        """Strong-convexity and smoothness constant of d_i, shape (R or 1, 1, 1).

        These are the least mu and the largest L of all clients; with `per_client` each client's, of shape
        (R or 1, N, 1).
        """
        if per_client:
            mu, L = self.problem.strong_convexity(), self.problem.smoothness()
        else:
            mu, L = (constant[:, None] for constant in self.problem.common_mu_L())
        if len(mu) > 1:
            mu, L = (np.repeat(constant, runs // len(constant), axis=0) for constant in (mu, L))
        ridge = np.reshape(self.ridge, (-1, 1, 1))
        return mu[..., None] + ridge, L[..., None] + ridge

    def descent(self, w: NDArray, steps: int, step: NDArray) -> NDArray:
        """`w` after so many gradient steps on every d_i."""
        return self.problem.per_client_descent(w, steps, step, ridge=self.ridge, linear=self.linear)

    def kept(self, runs: NDArray) -> LocalObjective:
        """The same for the runs where `runs` (R,) is true."""
        ridge = self.ridge
        if isinstance(ridge, np.ndarray) and ridge.size > 1:
            ridge = ridge[runs]
        return LocalObjective(self.problem.with_runs(runs), self.linear[runs], ridge)

    def of_clients(self, clients: NDArray) -> LocalObjective:
        """The same for the clients `clients` (R or 1, c) of each run."""
        linear = np.take_along_axis(self.linear, clients[..., None], axis=1)
        return replace(self, problem=self.problem.with_clients(clients), linear=linear)


def proximal(problem: Any, v: NDArray, rho: float | NDArray) -> LocalObjective:
    """d_i(w) = f_i(w) + |w - v_i|^2 / (2 rho), up to a constant; its minimiser is prox_{rho f_i}(v_i)."""
    weight = 1.0 / per_run(rho, v)
    return LocalObjective(problem, -weight * v, 1.0 / np.asarray(rho))


class Draws(NamedTuple):
    """Random numbers of one round's local steps; None where a solver needs none.

    Attributes
    ----------
    batches : int array, shape (R or 1, steps, N, b)
    noise : array, shape (R or 1, steps, N, D), standard normal
    """

    batches: NDArray | None = None
    noise: NDArray | None = None

    def at(self, step: int) -> tuple[NDArray | None, NDArray | None]:
        """Minibatches and noise of one step."""
        return tuple(None if drawn is None else drawn[:, step] for drawn in self)  # type: ignore[return-value]

    def kept(self, runs: NDArray) -> Draws:
        """Those of the runs where `runs` is true."""
        return Draws(*(None if drawn is None or len(drawn) == 1 else drawn[runs] for drawn in self))

    def of_clients(self, clients: NDArray) -> Draws:
        """Those of the clients `clients` (R or 1, c)."""
        return Draws(
            *(
                None if drawn is None else np.take_along_axis(drawn, clients[:, None, :, None], axis=2)
                for drawn in self
            )
        )


class LocalSolver(Protocol):
    """Some steps down on the clients' objectives.

    Attributes
    ----------
    steps : N_e, the number of local steps.
    stochastic : whether it needs random numbers.
    """

    @property
    def steps(self) -> int: ...

    @property
    def stochastic(self) -> bool: ...

    def draw(self, ctx: Round, problem: Any, steps: int) -> Draws:
        """Random numbers of a round, for all of the problem's clients."""

    def samples(self, problem: Any) -> NDArray:
        """Samples that each client looks at in one step, shape (S, N)."""

    def solve(
        self, objective: LocalObjective, start: NDArray, draws: Draws, counts: NDArray | None = None
    ) -> NDArray:
        """Clients' models (R, N, D) after `steps` steps from `start`; or after counts[r] steps in run r."""


class SteppedSolver(LocalSolver, Protocol):
    """A local solver with a step size; None where it chooses one itself."""

    @property
    def step(self) -> float | NDArray | None: ...


def with_step(solver: SteppedSolver, step: float | NDArray) -> SteppedSolver:
    """`solver` with the step size `step`, for methods that prescribe it."""
    return replace(solver, step=step)  # type: ignore[type-var]


@dataclass(frozen=True, kw_only=True)
class _Stepwise(ABC):
    """What solvers that go step by step share.

    Parameters
    ----------
    steps : int
        N_e.
    step : float or array, shape (R,), optional
        Step size; the best constant one for the objective's mu and L by default.
    constants : {"common", "own"}
        Whether the default step is for the mu and L of all clients together, or for each client's own
        (the uncoordinated choice of Remark 1).
    """

    steps: int
    step: float | NDArray | None = None
    constants: Literal["common", "own"] = "common"

    stochastic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_settings(self, {"steps": COUNT, "step": POSITIVE})
        if self.constants not in ("common", "own"):
            raise ConfigError(
                f"{type(self).__name__}.constants = {self.constants!r}: must be 'common' or 'own'"
            )

    def draw(self, ctx: Round, problem: Any, steps: int) -> Draws:
        return Draws()

    def samples(self, problem: Any) -> NDArray:
        return problem.sizes

    def solve(
        self, objective: LocalObjective, start: NDArray, draws: Draws, counts: NDArray | None = None
    ) -> NDArray:
        step, *rest = self._constants(objective, len(start))
        state = self._begin(start)
        if counts is None:
            for k in range(self.steps):
                state = self._advance(state, objective, draws.at(k), step, *rest)
            return state[0]
        done = np.empty_like(start)
        going = np.arange(len(start))  # runs of `start` that `state` still holds
        for k in range(int(counts.max())):
            state = self._advance(state, objective, draws.at(k), step, *rest)
            left = counts[going]
            arrived = left == k + 1
            done[going[arrived]] = state[0][arrived]
            still = left > k + 1
            if still.any() and still.mean() <= _WORTH_COPYING:
                runs = len(going)
                objective, draws, going = objective.kept(still), draws.kept(still), going[still]
                state = tuple(field[still] for field in state)
                step, *rest = (c[still] if len(c) == runs else c for c in (step, *rest))
        return done

    def _constants(self, objective: LocalObjective, runs: int) -> tuple[NDArray, ...]:
        """The step size and what else is constant, each of shape (R or 1, N or 1, 1)."""
        mu, L = objective.mu_L(runs, per_client=self.constants == "own")
        return (2.0 / (mu + L) if self.step is None else np.reshape(self.step, (-1, 1, 1)),)

    def _begin(self, start: NDArray) -> tuple[NDArray, ...]:
        return (start,)

    @abstractmethod
    def _advance(
        self, state: tuple[NDArray, ...], objective: LocalObjective, drawn: tuple, step: NDArray, *rest: Any
    ) -> tuple[NDArray, ...]:
        """The state one step later; its first entry is the clients' models."""


@dataclass(frozen=True, kw_only=True)
class Gradient(_Stepwise):
    """Gradient descent (Fed-PLT eq. (11)): w <- w - gamma grad d(w); gamma = 2 / (mu + L) by default."""

    def solve(self, objective, start, draws, counts=None):
        if counts is not None:
            return super().solve(objective, start, draws, counts)
        (step,) = self._constants(objective, len(start))
        return objective.descent(start, self.steps, step)

    def _advance(self, state, objective, drawn, step):
        (w,) = state
        g = objective.gradient(w)
        g *= step
        return (np.subtract(w, g, out=g),)


@dataclass(frozen=True, kw_only=True)
class Accelerated(_Stepwise):
    """Nesterov's gradient with constant momentum (eq. (12)), restarted in each round; the result is w.

    u+ = w - grad d(w) / L,  w+ = u+ + beta (u+ - u),  beta = (sqrt L - sqrt mu) / (sqrt L + sqrt mu).

    Notes
    -----
    mu and L are those of the objective d, on which the steps go down. The paper prints those of f_i, which
    lack what the proximal term adds. `step` stands for 1 / L.
    """

    def _constants(self, objective, runs):
        mu, L = objective.mu_L(runs, per_client=self.constants == "own")
        step = 1.0 / L if self.step is None else np.reshape(self.step, (-1, 1, 1))
        # sqrt(mu / L); a step longer than 1 / mu leaves no momentum.
        root = np.sqrt(np.minimum(mu * step, 1.0))
        return step, (1.0 - root) / (1.0 + root)

    def _begin(self, start):
        return start, start

    def _advance(self, state, objective, drawn, step, beta):
        w, u = state
        g = objective.gradient(w)
        g *= step
        ahead = np.subtract(w, g, out=g)  # u+
        w = ahead - u
        w *= beta
        w += ahead
        return w, ahead


@dataclass(frozen=True, kw_only=True)
class Stochastic(_Stepwise):
    """Gradient descent on minibatches, drawn uniformly with replacement.

    Parameters
    ----------
    batch : int
        Size of a minibatch.

    Notes
    -----
    The estimate is scaled so that it is unbiased; the paper prints 1 / q for q samples in all, where it
    takes q / (q |B|) for a mean of q.
    """

    batch: int

    stochastic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, {"batch": COUNT})

    def draw(self, ctx, problem, steps):
        shape = (steps, problem.n_clients, self.batch)
        uniform = ctx.streams.draw("batch", lambda rng: rng.random(shape))
        sizes = problem.sizes
        if 1 < len(sizes) < len(uniform):
            sizes = np.repeat(sizes, len(uniform) // len(sizes), axis=0)
        return Draws(batches=(uniform * sizes[:, None, :, None]).astype(np.int64))

    def samples(self, problem):
        return np.full(problem.sizes.shape, self.batch)

    def _advance(self, state, objective, drawn, step):
        (w,) = state
        return (w - step * objective.gradient(w, drawn[0]),)


@dataclass(frozen=True, kw_only=True)
class Noisy(_Stepwise):
    """Noisy gradient descent (eq. (13)): w <- w - gamma grad d(w) + sqrt(2 gamma) t.

    Parameters
    ----------
    tau : float or array, shape (R,)
        Level of the noise.
    reading : {"variance", "deviation"}
        Whether t ~ N(0, tau I), which the published errors follow, or N(0, tau^2 I), as eq. (13) prints.
    clip : float, optional
        L of Section VI: the gradient of each sample is scaled down to at most L / 2.
    """

    tau: float | NDArray
    reading: Literal["variance", "deviation"] = "variance"
    clip: float | None = None

    stochastic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, {"tau": Range(0), "clip": POSITIVE})
        if self.reading not in ("variance", "deviation"):
            raise ConfigError(f"Noisy.reading = {self.reading!r}: must be 'variance' or 'deviation'")

    def deviation(self) -> float | NDArray:
        """Standard deviation of t."""
        return np.sqrt(self.tau) if self.reading == "variance" else self.tau

    def draw(self, ctx, problem, steps):
        shape = (steps, problem.n_clients, problem.dim)
        return Draws(noise=ctx.streams.draw("noise", lambda rng: rng.standard_normal(shape)))

    def _constants(self, objective, runs):
        (step,) = super()._constants(objective, runs)
        return step, np.sqrt(2.0 * step) * np.reshape(self.deviation(), (-1, 1, 1))

    def _advance(self, state, objective, drawn, step, scale):
        (w,) = state
        clip = None if self.clip is None else self.clip / 2
        return (w - step * objective.gradient(w, clip=clip) + scale * drawn[1],)


@dataclass(frozen=True, kw_only=True)
class Exact:
    """The minimiser of d by Newton's method, with which Fed-PLT is Peaceman-Rachford splitting itself.

    Not a number where a Hessian is singular.
    """

    steps: ClassVar[int] = 1
    stochastic: ClassVar[bool] = False

    def draw(self, ctx, problem, steps):
        return Draws()

    def samples(self, problem):
        return problem.sizes

    def solve(self, objective, start, draws, counts=None):
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
class Uncoordinated:
    """Each client has a solver of its own (Remark 1).

    Parameters
    ----------
    solvers : sequence of LocalSolver
        All with the same number of steps.
    of_client : sequence of int, length N
        Which of them each client uses.
    """

    solvers: Sequence[LocalSolver]
    of_client: Sequence[int]

    def __post_init__(self) -> None:
        used = set(self.of_client)
        if not used or not used <= set(range(len(self.solvers))):
            raise ConfigError(
                f"Uncoordinated.of_client must name solvers 0 to {len(self.solvers) - 1}: {used}"
            )
        if len({solver.steps for solver in self.solvers}) > 1:
            raise ConfigError("Uncoordinated: all solvers must take the same number of steps")

    @property
    def steps(self) -> int:
        return self.solvers[0].steps

    @property
    def stochastic(self) -> bool:
        return any(self.solvers[number].stochastic for number in self.of_client)

    def draw(self, ctx, problem, steps):
        if problem.n_clients != len(self.of_client):
            raise ConfigError(
                f"Uncoordinated names solvers of {len(self.of_client)} clients, not {problem.n_clients}"
            )
        drawn = [solver.draw(ctx, problem, steps) for solver in self.solvers]
        return _Mixed(drawn, np.arange(problem.n_clients)[None])

    def samples(self, problem):
        each = np.stack([solver.samples(problem) for solver in self.solvers])
        return np.take_along_axis(each, np.array(self.of_client)[None, None], axis=0)[0]

    def solve(self, objective, start, draws, counts=None):
        uses = np.array(self.of_client)[draws.names]  # (R or 1, c): the solver of each client in the cohort
        if len(uses) > 1:
            # Cohorts differ by run: every solver for all, then each client's own.
            solved = [
                s.solve(objective, start, d, counts) for s, d in zip(self.solvers, draws.drawn, strict=True)
            ]
            return np.take_along_axis(np.stack(solved), uses[None, :, :, None], axis=0)[0]
        out = np.empty_like(start)
        for number, solver in enumerate(self.solvers):
            mine = np.flatnonzero(uses[0] == number)[None]
            if mine.size:
                part = objective.of_clients(mine)
                out[:, mine[0]] = solver.solve(
                    part, start[:, mine[0]], draws.drawn[number].of_clients(mine), counts
                )
        return out


class _Mixed(NamedTuple):
    """Random numbers of several solvers, and the names of the clients that they are for."""

    drawn: list[Draws]
    names: NDArray

    def of_clients(self, clients: NDArray) -> _Mixed:
        return _Mixed(
            [one.of_clients(clients) for one in self.drawn], np.take_along_axis(self.names, clients, 1)
        )
