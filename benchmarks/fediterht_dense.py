"""FedIterHT, least squares on dense data: 100 clients x 100 samples x 1000 features, K = 5, batches of 10."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse

import numpy as np
from plain import fediterht_round

from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.fediterht import FedIterHT
from replifed.engine.simulate import simulate
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares
from replifed.randomness import Streams

N, M, D, K, B, TAU = 100, 100, 1000, 5, 10, 200
ASKED = {"float64": 2.0, "float32": 2.5}


def measure(dtype: str, repeats: int) -> timing.Row:
    """Time one round from the model that ten rounds lead to."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1, N, M, D))
    planted = np.zeros(D)
    planted[rng.choice(D, 100, replace=False)] = rng.standard_normal(100)
    y = X @ planted + 0.1 * rng.standard_normal((1, N, M))

    streams = Streams(0, (0,))
    algorithm = FedIterHT(step=2e-4, sparsity=TAU, local_steps=K, batch=B)
    problem = DenseLinearModel(X.astype(dtype), y.astype(dtype), LeastSquares())
    state = simulate(algorithm, problem, streams, 10).state
    context = Round(10, None, None, streams.at(10))
    batches = [batch[0] for batch in Cohort(problem, context).minibatches(K, B)]

    # In the same precision.
    clients, weights, x = list(zip(problem.X[0], problem.y[0], strict=True)), problem.weights[0], state.x[0]

    def gradient(client, u, chosen):
        features, targets = client
        A = features[chosen]
        return A.T @ (A @ u - targets[chosen]) / B

    def loop():
        return fediterht_round(x, clients, weights, gradient, batches, 2e-4, TAU)

    def ours():
        return algorithm.round(state, problem, context)[0].x[0]

    tolerance = 1e-8 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(ours(), loop(), atol=tolerance * np.abs(x).max())
    assert not np.array_equal(ours(), state.x[0])
    slow, fast = timing.medians(loop, ours, repeats=repeats)
    # All drawn samples have to come from memory once.
    floor = timing.read_seconds(K * N * B * D * np.dtype(dtype).itemsize)
    return timing.Row(f"FedIterHT dense, {dtype}", slow, fast, ASKED[dtype], floor)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=41)
    arguments = parser.parse_args()
    timing.report([measure(dtype, arguments.repeats) for dtype in ASKED])
