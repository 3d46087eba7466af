"""FedMM-OT: a federated transport map by aggregation of potentials (Dieuleveut et al. 2025, Algorithm 3).

The loss (33) has no lower bound if both networks minimise it jointly, unless lambda, the weight of its cycle
term, is large. So the gradient in the potential's omega holds the conjugate's map grad psi fixed, as in the
solver that the paper cites. In that solver the conjugate's theta learns from the cycle term alone; here it
maximises, as in saddle-point solvers: it descends E_Q [f(grad psi(Y)) - <Y, grad psi(Y)>], whose minimum is
-E_Q f*. Both objectives include the cycle term lambda E_Q |grad f(grad psi(Y)) - Y|^2; lambda is the setting
`cycle`, zero by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, NONNEGATIVE, POSITIVE, Cohorts, Method, Range, Round, per_run
from replifed.algorithms.cohort import Cohort
from replifed.network.ledger import Cost, dense_bits
from replifed.network.messages import Counted, Sent
from replifed.problems.transport import ICNN, Transport
from replifed.randomness import Streams


class AdamState(NamedTuple):
    """Moments of Adam (R, D), and the number of steps taken (R,)."""

    mean: NDArray
    square: NDArray
    steps: NDArray


def adam(
    state: AdamState,
    gradient: NDArray,
    step: float | NDArray,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> tuple[AdamState, NDArray]:
    """One step of Adam (Kingma, Ba 2015) along the `gradient` (R, D), with one step size or one a run (R,).

    Returns the next state, and the change of the parameters (R, D).
    """
    one, two = betas
    mean = one * state.mean + (1 - one) * gradient
    square = two * state.square + (1 - two) * gradient**2
    steps = state.steps + 1
    bias = np.sqrt(1 - two**steps) / (1 - one**steps)
    change = -per_run(step, mean) * bias[:, None].astype(mean.dtype) * mean / (np.sqrt(square) + eps)
    return AdamState(mean, square, steps), change


def no_moments(runs: int, dim: int, dtype: np.dtype) -> AdamState:
    """Adam's state before the first step: moments (runs, dim) and step counts (runs,), all zero."""
    zeros = np.zeros((runs, dim), dtype=dtype)
    return AdamState(zeros, zeros, np.zeros(runs))


def identity_networks(net: ICNN, streams: Streams, dtype: np.dtype, steps: int) -> NDArray:
    """Parameters of a network whose gradient is close to the identity on 3 N(0, I), shape (R, D).

    Random parameters are trained by `steps` steps of Adam on minibatches of 256.
    """
    R = len(streams)
    flat = streams.draw("start", lambda rng: rng.standard_normal(net.parameters))
    flat = np.broadcast_to(net.initial(flat.astype(dtype)), (R, net.parameters)).copy()
    moments = no_moments(R, net.parameters, dtype)
    for t in range(steps):
        x = streams.at(t).draw("identity", lambda rng: 3 * rng.standard_normal((256, net.dim))).astype(dtype)
        at_x = net.at(flat, x)
        gradient, _ = at_x.derivative(v=2 * (at_x.push() - x) / x.shape[-2])
        # A step that shrinks to its hundredth: the last ones take out the noise.
        moments, change = adam(moments, gradient, 1e-2 * 0.01 ** (t / steps))
        flat = net.clamped(flat + change)
    return flat


def potential_gradient(
    net: ICNN, omega: NDArray, theta: NDArray, x: NDArray, y: NDArray, cycle: float = 0.0
) -> NDArray:
    """d/d omega of mean f(x) - mean f(z) + cycle mean |grad f(z) - y|^2 for each client.

    z = grad psi(y) is held fixed.

    Parameters
    ----------
    omega, theta : array, shape (R, D)
    x : array, shape (R or 1, c, b, dim)
    y : array, shape (R, b', dim)

    Returns
    -------
    array, shape (R, c, D)
    """
    z = net.push(theta, y)
    c = np.full((len(x), x.shape[-2]), 1 / x.shape[-2], x.dtype)
    # Client by client: what one of them needs fits the cache.
    up = np.stack([net.derivative(omega, x[:, i], c=c) for i in range(x.shape[1])], axis=1)
    at_z = net.at(omega, z)
    away = 2 * cycle * (at_z.push() - y) / z.shape[-2] if cycle else None
    down, _ = at_z.derivative(c=np.full(z.shape[:-1], -1 / z.shape[-2], z.dtype), v=away)
    return up + down[:, None]


def conjugate_gradient(net: ICNN, omega: NDArray, theta: NDArray, y: NDArray, cycle: float = 0.0) -> NDArray:
    """d/d theta of mean f(z) - <y, z> + cycle mean |grad f(z) - y|^2 with z = grad psi(y), shape (R, D)."""
    at_y = net.at(theta, y)
    at_z = net.at(omega, at_y.push())
    slope = at_z.push() - y
    if cycle:
        by_z = at_z.derivative(v=slope, at_points=True)[1]
        assert by_z is not None  # at_points asks for it
        slope = slope + 2 * cycle * by_z
    return at_y.derivative(v=slope / y.shape[-2])[0]


class Potentials(NamedTuple):
    """State of FedMM-OT.

    Attributes
    ----------
    omega, theta : array, shape (R, D), parameters of the potential f and of the conjugate's psi.
    V, V_i : array, shape (R, D) and (R, N, D), control variates of server and clients.
    mean, square, steps : Adam's moments for theta.
    """

    omega: NDArray
    theta: NDArray
    V: NDArray
    V_i: NDArray
    mean: NDArray
    square: NDArray
    steps: NDArray


@dataclass(frozen=True, kw_only=True)
class FedMMOT(Method):
    """A client's surrogate is its potential, one gradient step from the server's; the server averages
    potentials and minimises over the conjugate on public data.

    Parameters
    ----------
    step : the clients' gradient step, one or one a run (R,).
    gamma : the server's step towards the average.
    alpha : step of the control variates.
    server_step : Adam's step for the conjugate.
    server_steps : Adam steps on the conjugate in each round; ten in the paper.
    batch, server_batch : samples of a client's minibatch of P, and of a minibatch of Q.
    start_steps : steps that train both networks to the identity beforehand.
    cycle : lambda, the weight of the cycle term.
    """

    name: ClassVar = "fedmm_ot"
    label: ClassVar = "FedMM-OT"
    look: ClassVar = ("green", "wide", "o")
    cohorts: ClassVar = Cohorts(
        "each client with probability p, independently; sum of mu_i Delta_i, divided by p",
        "p is c / N; cohorts of a fixed size only",
    )

    step: Annotated[float | NDArray, POSITIVE]
    gamma: Annotated[float, Range(0, 1, low_open=True)] = 1.0
    alpha: Annotated[float, Range(0, 1)] = 0.0
    server_step: Annotated[float, POSITIVE] = 1e-3
    server_steps: Annotated[int, COUNT] = 10
    batch: Annotated[int, COUNT]
    server_batch: Annotated[int, COUNT]
    start_steps: Annotated[int, Range(0, whole=True)] = 500
    cycle: Annotated[float, NONNEGATIVE] = 0.0

    needs: ClassVar = (Transport,)
    small: ClassVar = {
        "step": 0.02,
        "alpha": 0.4,
        "server_steps": 3,
        "batch": 6,
        "server_batch": 9,
        "start_steps": 8,
    }

    def init(self, problem, streams: Streams) -> Potentials:
        start = identity_networks(problem.net, streams, problem.dtype, self.start_steps)
        R, D = start.shape
        zeros = np.zeros((R, D), dtype=problem.dtype)
        moments = no_moments(R, D, problem.dtype)
        V_i = np.zeros((R, problem.n_clients, D), dtype=problem.dtype)
        return Potentials(start, start, zeros, V_i, *moments)

    def round(self, state: Potentials, problem, ctx: Round) -> tuple[Potentials, Cost]:
        net, N, cohort = problem.net, problem.n_clients, Cohort(problem, ctx)
        omega, theta, c = state.omega, state.theta, cohort.size
        (batch,) = cohort.minibatches(1, self.batch)
        x = problem.sources(cohort.clients, batch)
        public = ctx.streams.draw(
            "targets",
            lambda rng: rng.integers(problem.n_targets, size=(self.server_steps + 1, self.server_batch)),
        )

        # Clients: omega_i = omega - step * gradient of L_i; answer with omega_i - omega - V_i.
        gradient = potential_gradient(net, omega, theta, x, problem.targets(public[:, 0]), self.cycle)
        control = cohort.take(state.V_i)
        delta = -per_run(self.step, gradient) * gradient - control
        V_i = cohort.put(state.V_i, control + per_run(self.alpha, delta) * delta)

        # Server: average, then Adam on the conjugate.
        mean = (1 / N * delta).sum(axis=1)  # sum_A mu_i Delta_i with mu_i = 1 / N
        omega = net.clamped(omega + self.gamma * (state.V + N / c * mean))  # p = c / N
        V = state.V + self.alpha * mean
        moments = AdamState(state.mean, state.square, state.steps)
        for k in range(self.server_steps):
            y = problem.targets(public[:, k + 1])
            gradient = conjugate_gradient(net, omega, theta, y, self.cycle)
            moments, change = adam(moments, gradient, self.server_step)
            theta = net.clamped(theta + change)
        samples = c * (x.shape[2] + self.server_batch) + self.server_steps * self.server_batch
        cost = Cost(c * dense_bits(net.parameters), c * dense_bits(2 * net.parameters), 1, 1, samples)
        return Potentials(omega, theta, V, V_i, *moments), cost

    def observe(self, state: Potentials) -> dict[str, NDArray]:
        seen = {"server": state.omega, "conjugate": state.theta}
        return seen | {"clients": state.V_i, "variate": state.V}

    @staticmethod
    def messages(r: Counted) -> Sent:
        """A potential up, both networks down; clients and server share public targets."""
        looked = r.n + (r.c + r.a.server_steps) * r.a.server_batch
        return Sent(r.c * r.dense, 2 * r.c * r.dense, looked)
