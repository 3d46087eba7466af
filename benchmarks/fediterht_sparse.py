"""FedIterHT, logistic regression on sparse text: 100 clients, tau = 200, K = 5, batches of 50."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from plain import fediterht_round, keep_largest_of_nonzeros

from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.fediterht import FedIterHT
from replifed.engine.simulate import simulate
from replifed.partition.build import build
from replifed.problems.losses import Logistic
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams

N, K, B, TAU, STEP = 100, 5, 50, 200, 1.0


def load(path: Path | None) -> tuple[sp.csr_array, np.ndarray]:
    """Features and labels of a parsed data set, or of the stand-in for RCV1."""
    if path is not None:
        from replifed.data.table import load

        table = load(path)
        return sp.csr_array(table.X), table.y.astype(float)
    from replifed.data.catalogue import CATALOGUE
    from replifed.data.surrogates import generate

    X, y = generate(CATALOGUE["rcv1_binary"])
    return sp.csr_array(X), y.astype(float)


def measure(path: Path | None, repeats: int) -> list[timing.Row]:
    """Time one round from the model that three rounds lead to."""
    X, y = load(path)
    # The paper's partition, sorted by client.
    split = {"clusters": "kmeans", "count": 10, "parts": 20, "shards_per_client": 2}
    client = build(X, y, split, [1], 0)[0].clients[1]
    order = np.argsort(client, kind="stable")
    X, y, client = X[order], y[order], client[order]
    streams = Streams(0, (0,))
    algorithm = FedIterHT(step=STEP, sparsity=TAU, local_steps=K, batch=B)
    problem = SparseLinearModel(X, y, Logistic(), client)
    state = simulate(algorithm, problem, streams, 3).state
    context = Round(3, None, None, streams.at(3))
    batches = [batch[0] for batch in Cohort(problem, context).minibatches(K, B)]
    first, weights, x = problem.first[:-1], problem.weights[0], state.x[0]

    def gradient(begin, u, chosen):
        A, labels = X[begin + chosen], y[begin + chosen]
        margin = labels * (A @ u)
        return A.T @ (-labels * 0.5 * (1 - np.tanh(0.5 * margin)) / B)

    def loop():
        return fediterht_round(x, first, weights, gradient, batches, STEP, TAU, keep_largest_of_nonzeros)

    def ours():
        return algorithm.round(state, problem, context)[0].x[0]

    np.testing.assert_allclose(ours(), loop(), atol=1e-8)
    assert not np.array_equal(ours(), x)
    slow, fast = timing.medians(loop, ours, repeats=repeats)
    rows, columns = X.shape
    work = f"FedIterHT sparse, {rows:,} x {columns:,}, {X.nnz / rows:.0f} non-zeros a row"
    return [timing.Row(work, slow, fast, 8.0)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, metavar="FILE", help="parsed data set (.npz)")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    timing.report(measure(arguments.data, arguments.repeats))
