"""FedGradMP: the run of the paper's Figure 9, 30 clients x 100 x 1000, tau = 10, K = 3, 4 rounds."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse

import numpy as np
from plain import keep_largest
from scipy.linalg import cho_factor, cho_solve

from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.fedgradmp import FedGradMP
from replifed.papers.fedgradmp.problems import regression
from replifed.papers.fedgradmp.settings import Regression
from replifed.randomness import Streams

SETTINGS = {"seed": 1, "clients": 30, "samples": 100, "features": 1000, "planted": 10, "decay": 1.1}
ROUNDS, K, B, TAU = 4, 3, 40, 10


def plain_run(clients, batches):
    """Algorithm 1 client by client, with the normal equations on the merged support, by Cholesky."""
    n = clients[0][0].shape[1]
    x = np.zeros(n)
    for t in range(ROUNDS):
        total = np.zeros(n)
        for i, (A, y) in enumerate(clients):
            u = x
            for k in range(K):
                chosen = A[batches[t][k][i]]
                r = chosen.T @ (chosen @ u - y[batches[t][k][i]]) / B
                merged = np.union1d(np.flatnonzero(keep_largest(r, 2 * TAU)), np.flatnonzero(u))
                w = np.zeros(n)
                G = A[:, merged]
                w[merged] = cho_solve(cho_factor(G.T @ G), G.T @ y)
                u = keep_largest(w, TAU)
            total += u / len(clients)
        x = keep_largest(total, TAU)
    return x


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    data, solution = regression(Regression.of_job(SETTINGS), 1.0, 0.0, 1)
    streams = Streams(1, (1,))
    contexts = [Round(t, None, None, streams.at(t)) for t in range(ROUNDS)]
    batches = [[batch[0] for batch in Cohort(data, ctx).minibatches(K, B)] for ctx in contexts]
    clients = list(zip(data.X[0], data.y[0], strict=True))
    method = FedGradMP(sparsity=TAU, local_steps=K, batch=B)

    def ours():
        state = method.init(data, streams)
        for ctx in contexts:
            state = method.round(state, data, ctx)[0]
        return state.x[0]

    def loop():
        return plain_run(clients, batches)

    np.testing.assert_allclose(ours(), loop(), atol=1e-12)
    np.testing.assert_allclose(ours(), solution, atol=1e-12)
    slow, fast = timing.medians(loop, ours, repeats=arguments.repeats)
    timing.report([timing.Row("FedGradMP, Figure 9's run", slow, fast, 3.5)])
