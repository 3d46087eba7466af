"""Sparse codes of all clients' minibatches in one round of dictionary learning, against scikit-learn."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse
import warnings

import numpy as np
from sklearn.linear_model import Lasso

from replifed.operators.lasso import lasso

ASKED = 20.0
# Clients, minibatch, features, atoms, penalty, seeds side by side.
WORK = {
    "20 clients x 15, p = 30, K = 10": (20, 15, 30, 10, 0.5, 1),
    "10 clients x 15, p = 30, K = 10, 3 seeds side by side": (10, 15, 30, 10, 0.5, 3),
    "20 clients x 50, p = 100, K = 20": (20, 50, 100, 20, 1.0, 1),
}


def measure(name: str, repeats: int) -> list[timing.Row]:
    """Time the codes of one round; the loop's are checked to 1e-10 against ours."""
    clients, batch, p, K, penalty, seeds = WORK[name]
    rng = np.random.default_rng(0)
    D = rng.standard_normal((seeds, p, K))
    h = rng.standard_normal((seeds, clients * batch, K)) * (rng.random((seeds, clients * batch, K)) < 0.2)
    Z = h @ D.transpose(0, 2, 1) + 0.1 * rng.standard_normal((seeds, clients * batch, p))
    D += 0.1 * rng.standard_normal(D.shape)

    def ours():
        return lasso(D.transpose(0, 2, 1) @ D, Z @ D, penalty)

    def loop(tolerance):
        out = np.empty_like(h)
        for seed in range(seeds):
            for place, z in enumerate(Z[seed]):
                model = Lasso(alpha=penalty / p, fit_intercept=False, tol=tolerance, max_iter=10**5)
                out[seed, place] = model.fit(D[seed], z).coef_
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(loop(1e-14), ours(), atol=1e-10)
        exact, rough, fast = timing.medians(lambda: loop(1e-14), lambda: loop(1e-4), ours, repeats=repeats)
    return [
        timing.Row(f"codes, {name}", exact, fast, ASKED),
        timing.Row("the same, loop at scikit-learn's default tolerance of 1e-4", rough, fast, ASKED),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    timing.report([row for name in WORK for row in measure(name, arguments.repeats)])
