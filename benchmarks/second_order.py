"""SHED, Q-SHED and FedNL rounds: 8 clients x 500 samples x 300 features, dense, and sparse as w8a.

FedNL also on all of w8a, 142 clients x 350 samples, as in its own experiments.
"""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse
from itertools import count
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from replifed.algorithms.base import Round
from replifed.algorithms.fednl import FedNL
from replifed.algorithms.shed import QShed, Shed
from replifed.data.table import load
from replifed.operators.matrices import eigenpairs
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams

N, M, D, MU = 8, 500, 300, 1e-5
FEDNL_N, FEDNL_M = 142, 350
STREAMS = Streams(0, (1,))
BUDGET = np.full((1, N), 32)


def dense():
    """Correlated features, whose Hessians have spectra that fall."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1, N, M, D)) / np.arange(1, D + 1) ** 0.5
    y = np.sign(X @ rng.standard_normal(D) + 0.1 * rng.standard_normal((1, N, M)))
    return DenseLinearModel(X, y, Logistic(), l2=MU)


def w8a(file: Path | None, N: int, M: int):
    """N x M samples of w8a, or of a stand-in with as many non-zeros whose rarer features some never see."""
    rng = np.random.default_rng(0)
    if file is not None:
        table = load(file)
        rows = rng.permutation(len(table.y))[: N * M]
        X, y = sp.csr_array(table.X)[rows], table.y[rows].astype(float)
    else:
        # In how many samples w8a's features occur, by their ranks: some 12 of them in a sample.
        ranks, shares = [1, 6, 31, 101, 151, 201, 251, D], [0.35, 0.22, 0.11, 0.042, 0.023, 3e-3, 1e-3, 2e-4]
        share = np.exp(np.interp(np.arange(1, D + 1), ranks, np.log(shares)))
        X = sp.csr_array((rng.random((N * M, D)) < share).astype(float))
        y = np.where(rng.random(N * M) < 0.03, 1.0, -1.0)
    return SparseLinearModel(X, y, Logistic(), np.repeat(np.arange(N), M), l2=MU)


def shed_rounds(work: str, problem, asked: dict[str, float], repeats: int) -> list[timing.Row]:
    """Rounds with new Hessians, against numpy's eigendecompositions of the same Hessians alone."""
    x = np.full((1, D), 0.01)
    H = problem.client_hessians(x)
    values, _ = np.linalg.eigh(H)
    mine, rows = eigenpairs(H)
    np.testing.assert_allclose(mine, values[..., ::-1], atol=1e-12)
    rebuilt = np.matmul(rows.swapaxes(-1, -2) * mine[..., None, :], rows)
    np.testing.assert_allclose(rebuilt, H, atol=1e-12)
    lines = []
    for name, algorithm in {"SHED": Shed(), "Q-SHED": QShed()}.items():
        state = algorithm.init(problem, STREAMS)._replace(x=x)
        context = Round(0, None, BUDGET, STREAMS.at(0))

        def ours(algorithm=algorithm, state=state, context=context):
            return algorithm.round(state, problem, context)

        slow, fast = timing.medians(lambda: np.linalg.eigh(H), ours, repeats=repeats)
        lines.append(
            timing.Row(
                f"{name} round with new Hessians, {work}; loop is `eigh` alone", slow, fast, asked[name]
            )
        )
    return lines


def fednl_row(problem, asked: float | None, repeats: int) -> timing.Row:
    """FedNL with top-k and option 2, against a loop over the clients: A'A on CSR, argpartition, Cholesky."""
    algorithm, k, N = FedNL(compressor="topk", option=2, line_search=None), D, problem.n_clients
    state = algorithm.init(problem, STREAMS)
    context = Round(3, None, None, STREAMS.at(3))
    for t in range(3):
        state = algorithm.round(state, problem, Round(t, None, None, STREAMS.at(t)))[0]
    M = problem.X.shape[0] // N
    X, y = [sp.csr_array(problem.X[d * M : (d + 1) * M]) for d in range(N)], problem.y.reshape(N, M)
    XT = [sp.csr_array(A.T) for A in X]
    x, learned = state.x[0], state.hessians[0]
    below = np.tril(np.ones((D, D), dtype=bool))

    def loop():
        g, shift, after = np.zeros(D), 0.0, np.empty((N, D, D))
        for d in range(N):
            s = expit(-y[d] * (X[d] @ x))
            g += (-(XT[d] @ (y[d] * s)) / M + MU * x) / N
            weighted = sp.csr_array((X[d].data * np.repeat(s * (1.0 - s) / M, np.diff(X[d].indptr)),
                                     X[d].indices, X[d].indptr), shape=X[d].shape)  # fmt: skip
            difference = (XT[d] @ weighted).toarray()
            difference[np.arange(D), np.arange(D)] += MU
            difference -= learned[d]
            shift += np.linalg.norm(difference) / N
            lower = difference * below
            held = np.flatnonzero(lower)
            magnitude = np.abs(lower.ravel()[held])
            a, b = np.divmod(held[np.argpartition(magnitude, len(held) - k)[-k:]], D)
            after[d] = learned[d]
            after[d, a, b] += difference[a, b]
            after[d, b[a != b], a[a != b]] = after[d, a[a != b], b[a != b]]
        mean = state.mean[0] + shift * np.eye(D)
        return x - cho_solve(cho_factor(mean, overwrite_a=True), g), after

    calls = count()

    def point():
        """One of its own each time, so that nothing is remembered of the last call."""
        return state.x * (1.0 + 1e-13 * next(calls))

    def ours():
        return algorithm.round(state._replace(x=point()), problem, context)[0]

    def floor():
        """The clients' A'A, as compiled as ours, and Cholesky."""
        problem.client_hessians(point())
        return cho_solve(cho_factor(state.mean[0] + np.eye(D), overwrite_a=True), x)

    mine, (new_x, new_learned) = ours(), loop()
    np.testing.assert_allclose(mine.x[0], new_x, atol=1e-10)
    # Which of equal entries are learned, the loop leaves open.
    H = problem.client_hessians(state.x)[0]
    left = [np.linalg.norm(H - each, axis=(1, 2)) for each in (mine.hessians[0], new_learned)]
    np.testing.assert_allclose(*left, rtol=1e-9)
    slow, fast, least = timing.medians(loop, ours, floor, repeats=repeats)
    return timing.Row(f"FedNL round, top-k, {N} clients x {M}", slow, fast, asked, least)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--data", type=Path, help="parsed w8a; a stand-in by default")
    arguments = parser.parse_args()
    sparse = w8a(arguments.data, N, M)
    timing.report(
        [
            *shed_rounds("dense", dense(), {"SHED": 1 / 1.35, "Q-SHED": 0.5}, arguments.repeats),
            *shed_rounds("w8a", sparse, {"SHED": 1 / 1.15, "Q-SHED": 0.5}, arguments.repeats),
            fednl_row(sparse, 3.5, arguments.repeats),
            fednl_row(w8a(arguments.data, FEDNL_N, FEDNL_M), None, arguments.repeats),
        ]
    )
