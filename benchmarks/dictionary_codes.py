"""Sparse codes of all clients' minibatches in one round of dictionary learning, against scikit-learn."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse

import numpy as np
from sklearn.decomposition import sparse_encode

from replifed.operators.lasso import lasso

ASKED = 4.0
# Clients, minibatch, features, atoms, penalty, seeds side by side.
WORK = {
    "20 clients x 15, p = 30, K = 10": (20, 15, 30, 10, 0.5, 1),
    "10 clients x 15, p = 30, K = 10, 3 seeds side by side": (10, 15, 30, 10, 0.5, 3),
    "20 clients x 50, p = 100, K = 20": (20, 50, 100, 20, 1.0, 1),
}


def measure(name: str, repeats: int) -> timing.Row:
    """Time the codes of one round; the loop's are checked to 1e-10 against ours."""
    clients, batch, p, K, penalty, seeds = WORK[name]
    rng = np.random.default_rng(0)
    D = rng.standard_normal((seeds, p, K))
    h = rng.standard_normal((seeds, clients * batch, K)) * (rng.random((seeds, clients * batch, K)) < 0.2)
    Z = h @ D.transpose(0, 2, 1) + 0.1 * rng.standard_normal((seeds, clients * batch, p))
    D += 0.1 * rng.standard_normal(D.shape)

    def ours():
        return lasso(D.transpose(0, 2, 1) @ D, Z @ D, penalty)

    def loop():
        out = np.empty_like(h)
        for atoms, z, found in zip(D, Z, out, strict=True):
            given = {"gram": atoms.T @ atoms, "cov": atoms.T @ z.T}
            found[:] = sparse_encode(
                z, atoms.T, algorithm="lasso_lars", alpha=penalty, max_iter=10**4, **given
            )
        return out

    np.testing.assert_allclose(loop(), ours(), atol=1e-10)
    slow, fast = timing.medians(loop, ours, repeats=repeats)
    return timing.Row(f"codes, {name}", slow, fast, ASKED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    timing.report([measure(name, arguments.repeats) for name in WORK])
