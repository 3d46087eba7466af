"""A round of Fed-PLT: 100 repeats, 10 clients with 20 samples of 16 features, 10 local steps."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse
from collections.abc import Callable
from unittest.mock import patch

import numpy as np

from replifed.algorithms import client_states
from replifed.algorithms.base import Round
from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.local_solvers import Gradient
from replifed.algorithms.splitting_theory import best_step
from replifed.engine.simulate import simulate
from replifed.kernels import descent_in_lanes
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic
from replifed.randomness import Streams

R, N, M, D, K, RHO, RIDGE = 100, 10, 20, 16, 10, 0.3, 0.5
ASKED = {"each repeat its own data": 38.0, "repeats share their data": 90.0}


def loop_round(X, y, x, z, gamma):
    """One round, repeat by repeat and agent by agent; numpy inside an agent."""
    x, z = x.copy(), z.copy()
    for r in range(R):
        mean = z[r].mean(axis=0)
        for i in range(N):
            A, b = X[r % len(X), i], y[r % len(X), i]
            w, v = x[r, i], 2.0 * mean - z[r, i]
            for _ in range(K):
                g = -A.T @ (b / (1.0 + np.exp(b * (A @ w)))) + RIDGE * w
                w = w - gamma[r] * (g + (w - v) / RHO)
            x[r, i] = w
            z[r, i] = z[r, i] + 2.0 * (w - mean)
    return x, z


def prepared(sets: int):
    """A problem with R repeats on so many data sets, the method, where five rounds lead to, and the step."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((sets, N, M, D)), rng.choice([-1.0, 1.0], (sets, N, M))
    problem = DenseLinearModel(X, y, Logistic(), l2=RIDGE, summed=True)
    low, high = problem.common_mu_L()
    gamma = np.repeat(best_step(low, high, RHO), R // sets)
    algorithm = FedPLT(rho=RHO, solver=Gradient(steps=K), start_deviation=1.0)
    streams = Streams(0, tuple(range(R)))
    state = simulate(algorithm, problem, streams, 5, metrics={}).state
    return problem, algorithm, state, Round(5, None, None, streams.at(5)), gamma


def indispensable(ours: Callable[[], tuple]) -> Callable[[], None]:
    """Of a round: its compiled steps alone, and the mean over the clients, a product."""
    steps = descent_in_lanes.descend_in_lanes
    with patch.object(descent_in_lanes, "descend_in_lanes", wraps=steps) as called:
        _, z = ours()

    def floor() -> None:
        steps(*called.call_args.args)
        client_states.mean(z)

    return floor


def measure(work: str, repeats: int) -> timing.Row:
    """Time one round from where five rounds lead to."""
    problem, algorithm, state, context, gamma = prepared(R if work.startswith("each") else 1)
    X, y = problem.X, problem.y

    def loop():
        return loop_round(X, y, state.x, state.z, gamma)

    def ours():
        return algorithm.round(state, problem, context)[0][:2]

    for mine, plain in zip(ours(), loop(), strict=True):
        np.testing.assert_allclose(mine, plain, atol=1e-10)
    slow, fast, least = timing.medians(loop, ours, indispensable(ours), repeats=repeats)
    return timing.Row(f"Fed-PLT, 100 repeats, {work}", slow, fast, ASKED[work], least)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    timing.report([measure(work, arguments.repeats) for work in ASKED])
