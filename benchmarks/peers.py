"""The same rounds in JAX, jitted as an expert would write them; wants the optional extra `peers`."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse
import os
from importlib.util import find_spec

import numpy as np

# One thread, as ours.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

ASKED = {
    "FedAvg softmax; loop: JAX in the span of the samples": 1.0,
    "FedIterHT dense, float64; loop: JAX": None,
    "Fed-PLT, each repeat its own data; loop: JAX, vmap": 1.5,
}


def fedavg(repeats: int) -> list[float]:
    """A round of `fedavg_softmax.py` with Gram matrices, which both have computed beforehand."""
    import fedavg_softmax as work
    import jax
    import jax.numpy as jnp

    from replifed.algorithms.base import Round
    from replifed.algorithms.cohort import Cohort
    from replifed.algorithms.fedavg import FedAvg, ServerModel
    from replifed.problems.dense import DenseLinearModel
    from replifed.problems.losses import loss_named
    from replifed.randomness import Streams

    X, y = work.digits("float32")
    data = DenseLinearModel(X, y, loss_named("softmax", work.C))
    now, method = Streams(0, (0,)).at(3), FedAvg(step=0.1, local_steps=work.K, batch=work.B)
    active, chosen = work.FixedSize(work.COHORT)(now, work.N)
    context, x = Round(3, active, None, now, chosen), np.zeros((1, work.D * work.C), np.float32)
    A, labels = jnp.asarray(X[0]), jnp.asarray(y[0])
    gram = jnp.einsum("nmd,nkd->nmk", A, A)

    @jax.jit
    def round_(x, clients, batches):
        def client(i, batch):
            known, G = A[i] @ x, gram[i]

            def step(a, drawn):
                z = known[drawn] + G[drawn] @ a
                p = jax.nn.softmax(z) - jax.nn.one_hot(labels[i, drawn], work.C, dtype=x.dtype)
                return a.at[drawn].add(-0.1 / work.B * p), None

            a, _ = jax.lax.scan(step, jnp.zeros_like(known), batch)
            return A[i].T @ a

        return x + jnp.mean(jax.vmap(client)(clients, batches), axis=0)

    def theirs():
        batches = np.stack(Cohort(data, context).minibatches(work.K, work.B))[:, 0].swapaxes(0, 1)
        return np.asarray(round_(x.reshape(work.D, work.C), chosen[0], batches)).reshape(1, -1)

    def ours():
        return method.round(ServerModel(x), data, context)[0].x

    np.testing.assert_allclose(theirs(), ours(), atol=1e-5 * np.abs(ours()).max())
    return timing.medians(theirs, ours, repeats=repeats)


def fediterht(repeats: int) -> list[float]:
    """A round of `fediterht_dense.py` in double precision."""
    import fediterht_dense as work
    import jax
    import jax.numpy as jnp

    from replifed.algorithms.base import Round, ServerModel
    from replifed.algorithms.cohort import Cohort
    from replifed.problems.dense import DenseLinearModel

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1, work.N, work.M, work.D)), rng.standard_normal((1, work.N, work.M))
    data = DenseLinearModel(X, y, work.LeastSquares())
    method = work.FedIterHT(step=2e-4, sparsity=work.TAU, local_steps=work.K, batch=work.B)
    context = Round(0, None, None, work.Streams(0, (0,)).at(0))
    x = np.asarray(rng.standard_normal((1, work.D)) * (np.arange(work.D) < work.TAU))
    A, targets = jnp.asarray(X[0]), jnp.asarray(y[0])

    def keep(v):
        _, held = jax.lax.top_k(jnp.abs(v), work.TAU)
        return jnp.zeros_like(v).at[held].set(v[held])

    @jax.jit
    def round_(x, batches):
        def client(A, b, batch):
            def step(u, drawn):
                rows = A[drawn]
                return keep(u - 2e-4 / work.B * (rows.T @ (rows @ u - b[drawn]))), None

            return jax.lax.scan(step, x, batch)[0]

        return keep(jnp.mean(jax.vmap(client)(A, targets, batches), axis=0))

    def theirs():
        batches = np.stack(Cohort(data, context).minibatches(work.K, work.B))[:, 0].swapaxes(0, 1)
        return np.asarray(round_(x[0], batches))

    def ours():
        return method.round(ServerModel(x), data, context)[0].x[0]

    np.testing.assert_allclose(theirs(), ours(), atol=1e-10)
    return timing.medians(theirs, ours, repeats=repeats)


def fedplt(repeats: int) -> list[float]:
    """A round of `fedplt.py`, each repeat with its own data."""
    import fedplt as work
    import jax
    import jax.numpy as jnp

    problem, algorithm, state, context, gamma = work.prepared(work.R)
    A, b = jnp.asarray(problem.X), jnp.asarray(problem.y)

    @jax.jit
    @jax.vmap
    def round_(A, b, x, z, gamma):
        mean = z.mean(axis=0)

        def client(A, b, w, v):
            def step(w, _):
                g = -A.T @ (b * jax.nn.sigmoid(-b * (A @ w))) + work.RIDGE * w
                return w - gamma * (g + (w - v) / work.RHO), None

            return jax.lax.scan(step, w, None, length=work.K)[0]

        w = jax.vmap(client)(A, b, x, 2 * mean - z)
        return w, z + 2 * (w - mean)

    def theirs():
        return [np.asarray(one) for one in round_(A, b, state.x, state.z, gamma)]

    def ours():
        return algorithm.round(state, problem, context)[0][:2]

    for mine, other in zip(ours(), theirs(), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-10)
    return timing.medians(theirs, ours, repeats=repeats)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    if find_spec("jax") is None:
        for name in ASKED:
            print(f"{name}: not installed (pip install 'replifed[peers]')")
    else:
        import jax

        jax.config.update("jax_enable_x64", True)
        measured = [program(arguments.repeats) for program in (fedavg, fediterht, fedplt)]
        timing.report(
            [
                timing.Row(name, *times, asked)
                for (name, asked), times in zip(ASKED.items(), measured, strict=True)
            ]
        )
