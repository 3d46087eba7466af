"""FedAvg and FedIterHT on digits: softmax, 300 clients x 100 x 784 x 10, cohort 10, 40 local steps of 50."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse
import resource

import numpy as np
from plain import keep_largest

from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.fediterht import FedIterHT
from replifed.engine.simulate import simulate
from replifed.network.participation import FixedSize
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.randomness import Streams

N, M, D, C, COHORT, K, B, TAU = 300, 100, 784, 10, 10, 40, 50, 2000
STEPS = 0.1 / 2.0 ** np.arange(8)
MEMORY = 160 << 20
ASKED = {"FedAvg": 4.5, "FedIterHT": 3.0, "grid": 12.0}


def digits(dtype: str):
    """Images with a fifth of their pixels inked, and labels that depend on them."""
    rng = np.random.default_rng(0)
    X = np.empty((1, N, M, D), dtype=dtype)
    weights = rng.standard_normal((D, C)).astype(dtype)
    y = np.empty((1, N, M), dtype=int)
    for i in range(N):
        X[0, i] = rng.random((M, D)) * (rng.random((M, D)) < 0.2)
        y[0, i] = np.argmax(X[0, i] @ weights, axis=1)
    return X, y


def plain_round(x, clients, batches, steps, tau):
    """One round for each step size, client by client, in the clients' precision; `tau` None is FedAvg."""
    found = []
    for row, step in enumerate(steps):
        total = np.zeros((D, C), x.dtype)
        for i, (features, labels) in enumerate(clients):
            u = x[row].reshape(D, C)
            for batch in batches:
                A = features[batch[i]]
                z = A @ u
                z -= z.max(axis=1, keepdims=True)
                p = np.exp(z)
                p /= p.sum(axis=1, keepdims=True)
                p[np.arange(B), labels[batch[i]]] -= 1
                u = u - float(step) * (A.T @ p) / B
                if tau is not None:
                    u = keep_largest(u.ravel(), tau).reshape(D, C)
            total += u / len(clients)
        found.append(total.ravel() if tau is None else keep_largest(total.ravel(), tau))
    return np.array(found)


def measure(name: str, tau: int | None, steps, asked: float, data, plain, repeats: int) -> timing.Row:
    """Time one round from the model that three rounds lead to."""
    streams = Streams(0, (0,) * len(steps))
    settings = {"step": np.array(steps), "local_steps": K, "batch": B}
    algorithm = FedAvg(**settings) if tau is None else FedIterHT(**settings, sparsity=tau)
    cohort = FixedSize(COHORT)
    state = simulate(algorithm, data, streams, 3, metrics={}, cohort=cohort).state
    now = streams.at(3)
    active, chosen = cohort(now, N)
    context = Round(3, active, None, now, chosen)
    batches = [batch[0] for batch in Cohort(data, context).minibatches(K, B)]
    clients = [(plain[0][0, i], plain[1][0, i]) for i in chosen[0]]
    x = state.x

    def loop():
        return plain_round(x, clients, batches, steps, tau)

    def ours():
        return algorithm.round(state, data, context)[0].x

    difference = np.abs(ours() - loop()).max() / np.abs(x).max()
    # Single precision decides otherwise on few entries near the threshold.
    assert difference < (1e-4 if tau is None else 0.05), difference
    slow, fast = timing.medians(loop, ours, repeats=repeats)
    return timing.Row(name, slow, fast, asked)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    # What the compiler of the inner loops takes, once, is no part of the problem.
    loss_named("softmax", C).derivative(np.zeros((1, 1, M, C), np.float32), np.zeros((1, 1, M), dtype=int))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    X, y = digits("float32")
    data = DenseLinearModel(X, y, loss_named("softmax", C))
    method = FedAvg(step=0.1, local_steps=K, batch=B)
    simulate(method, data, Streams(0, (0,)), 2, metrics={}, cohort=FixedSize(COHORT))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    print(f"memory with data and Gram matrices: {grown / 2**20:.0f} MiB, asked: less than {MEMORY >> 20} MiB")
    plain = X, y
    rows = [
        measure("FedAvg, one step size", None, [0.1], ASKED["FedAvg"], data, plain, arguments.repeats),
        measure(
            "FedIterHT, threshold in every local step",
            TAU,
            [0.1],
            ASKED["FedIterHT"],
            data,
            plain,
            arguments.repeats,
        ),
        measure("FedAvg, grid of 8 step sizes", None, STEPS, ASKED["grid"], data, plain, arguments.repeats),
    ]
    timing.report(rows)
