"""FedAc's runs with the authors' numbers, per run: 256 workers, K = 64, T = 4096 steps, a9a or a stand-in."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from replifed.data.table import load
from replifed.papers.fedac.coupled import Logistic, constants_of, draw, objectives

M, K, T, L2 = 256, 64, 4096, 1e-3
# Steps of which a run is calm, so that both must agree; each beside its two twins.
ETAS = np.array([0.001, 0.002, 0.005, 0.01, 0.02])
VARIANTS = ("fedavg", "fedac_1", "fedac_2")


def data(file: Path | None):
    """a9a, or as many samples with 14 non-zeros of 123."""
    if file is not None:
        return load(file)
    rng = np.random.default_rng(0)
    columns = np.concatenate([rng.choice(123, 14, replace=False) for _ in range(32561)])
    X = sp.csr_array((np.ones(len(columns)), columns, np.arange(0, len(columns) + 1, 14)), shape=(32561, 123))
    return SimpleNamespace(X=X, y=np.where(rng.random(32561) < 0.24, 1.0, -1.0))


def loop(X, y, numbers, one):
    """One run, vectorised over the workers: w_ag at the end."""
    eta, gamma, alpha, beta = one
    w = np.repeat(numbers.start[None], M, axis=0)
    v = w
    for t in range(T):
        if t % K == 0:
            w, v = (np.repeat(each.mean(axis=0, keepdims=True), M, axis=0) for each in (w, v))
        md = w / beta + (1 - 1 / beta) * v
        A, b = X[numbers.samples[t]], y[numbers.samples[t]]
        g = (-b * expit(-b * np.einsum("md,md->m", A, md)))[:, None] * A + L2 * md
        w, v = (1 - 1 / alpha) * w + md / alpha - gamma * g, md - eta * g
    return v.mean(axis=0)


def row(table, variant: str, repeats: int) -> timing.Row:
    """The loop on one run, against all steps and their twins side by side, a run of them."""
    problem, numbers = Logistic(table, L2), draw("authors", 0, 1, 123, len(table.y), T, M)
    X, y = problem.table.X.toarray(), problem.arrays[3]
    constants = constants_of(variant, np.repeat(ETAS, 3), L2, K)
    start = np.repeat(numbers.start[None], len(constants.eta), axis=0)
    one = tuple(float(getattr(constants, name)[0]) for name in ("eta", "gamma", "alpha", "beta"))

    def ours():
        return objectives(problem, "local", constants, start, numbers, K, T)

    np.testing.assert_allclose(ours()[-1, 0], problem.loss(loop(X, y, numbers, one)[:, None])[0], rtol=1e-12)
    slow, fast = timing.medians(lambda: loop(X, y, numbers, one), ours, repeats=repeats)
    return timing.Row(
        f"{variant}, a run of {len(constants.eta)} side by side", slow, fast / len(constants.eta), 15
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, help="parsed a9a; a stand-in by default")
    arguments = parser.parse_args()
    table = data(arguments.data)
    timing.report([row(table, variant, arguments.repeats) for variant in VARIANTS])
