"""Cohorts of many clients: a round costs what takes part, and comes to the same."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.fivegcs import FiveGCS
from replifed.algorithms.local_solvers import Gradient, Stochastic
from replifed.algorithms.registry import method_class
from replifed.algorithms.scaffold import Scaffold
from replifed.engine.simulate import simulate
from replifed.network.participation import MANY, FixedSize
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares, Logistic
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams

SOLVER = Gradient(steps=2)


def many(clients=MANY + 200, samples=2, features=3):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1, clients, samples, features)), rng.standard_normal((1, clients, samples))
    return DenseLinearModel(X, y, LeastSquares(), l2=0.5)


@pytest.mark.parametrize(
    "algorithm, running, exact",
    [
        (FedPLT(rho=0.5, solver=SOLVER), "mean", lambda state: state.z.mean(axis=1)),
        (FiveGCS(gamma=0.5, tau=1e-3, solver=SOLVER), "v", lambda state: state.u.sum(axis=1)),
        (Scaffold(step=0.1, solver=SOLVER), "c", lambda state: state.c_i.mean(axis=1)),
    ],
)
def test_a_running_sum_stays_that_of_all_clients(algorithm, running, exact):
    state = simulate(algorithm, many(), Streams(0, (1, 2)), 90, metrics={}, cohort=FixedSize(30)).state
    known = getattr(state, running)
    assert np.abs(known).max() > 1e-3
    np.testing.assert_allclose(known, exact(state), rtol=1e-11, atol=1e-14)


def test_it_is_summed_anew_every_hundredth_round():
    algorithm, problem, streams = FedPLT(rho=0.5, solver=SOLVER), many(), Streams(0, (1,))
    state = simulate(algorithm, problem, streams, 99, metrics={}, cohort=FixedSize(5)).state
    wrong = state._replace(mean=state.mean + 1.0)
    for rounds, kept in ((100, True), (101, False)):
        after = simulate(
            algorithm, problem, streams, rounds, metrics={}, cohort=FixedSize(5), resume=(99, wrong)
        ).state
        assert np.allclose(after.mean - after.z.mean(axis=1), float(kept))


def test_the_state_that_a_run_goes_on_from_is_left_alone():
    algorithm, problem, streams = Scaffold(step=0.1, solver=SOLVER), many(), Streams(0, (1,))
    begun = simulate(algorithm, problem, streams, 3, metrics={}, cohort=FixedSize(5)).state
    kept = [field.copy() for field in begun]
    simulate(algorithm, problem, streams, 6, metrics={}, cohort=FixedSize(5), resume=(3, begun))
    assert all(map(np.array_equal, begun, kept))


def test_a_round_holds_no_copy_of_all_clients():
    algorithm = Scaffold(step=0.1, solver=Stochastic(steps=2, batch=1, step=0.1))
    problem, held = many(clients=20_000, features=8), []

    def note(t, rounds):
        held.append(tracemalloc.get_traced_memory())
        tracemalloc.reset_peak()

    tracemalloc.start()
    simulate(algorithm, problem, Streams(0, (1,)), 4, metrics={}, cohort=FixedSize(5), progress=note)
    tracemalloc.stop()
    # One array a client, of 8 features, is 1.3 MB.
    assert held[-1][1] - held[-2][0] < 0.2e6


def sparse_and_dense(clients=12, features=30):
    rng = np.random.default_rng(1)
    sizes = rng.integers(2, 6, clients)
    X = rng.standard_normal((sizes.sum(), features)) * (rng.random((sizes.sum(), features)) < 0.2)
    y, owner = rng.choice([-1.0, 1.0], len(X)), np.repeat(np.arange(clients), sizes)
    padded, targets = np.zeros((1, clients, 5, features)), np.ones((1, clients, 5))
    place = np.arange(len(X)) - (np.cumsum(sizes) - sizes)[owner]
    padded[0, owner, place], targets[0, owner, place] = X, y
    weights = rng.random((1, clients))
    dense = DenseLinearModel(padded, targets, Logistic(), sizes=sizes[None], weights=weights, l2=0.01)
    mixed = np.lexsort((owner, place))  # the clients' samples in turn
    X, y, owner = sp.csr_array(X[mixed]), y[mixed], owner[mixed]
    return SparseLinearModel(X, y, Logistic(), owner, weights=weights, l2=0.01), dense


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fediterht", "fedht"])
@pytest.mark.parametrize("replicates", [(1, 1), (1, 2, 3)])
@pytest.mark.parametrize("batch", [None, 3])
def test_cohorts_on_sparse_data_are_those_on_dense_data(method, replicates, batch):
    settings = {"step": 0.3, "local_steps": 3, "batch": batch}
    settings |= {"fedprox": {"mu": 0.1}}.get(method, {}) | ({"sparsity": 7} if "ht" in method else {})
    found = [
        simulate(
            method_class(method)(**settings), problem, Streams(0, replicates), 6, cohort=FixedSize(4)
        ).metrics["objective"]
        for problem in sparse_and_dense()
    ]
    assert np.ptp(found[0], axis=0).min() > 1e-3
    np.testing.assert_allclose(*found, rtol=1e-10)


def test_sparse_data_take_three_times_their_size_at_most():
    clients, features, nonzeros = 2000, 20_000, 60
    rng = np.random.default_rng(0)
    columns = [rng.choice(features, nonzeros, replace=False) for _ in range(2 * clients)]
    indices = np.sort(columns, axis=1).ravel().astype(np.int32)
    first = np.arange(0, len(indices) + 1, nonzeros, dtype=np.int32)
    X = sp.csr_array((rng.standard_normal(len(indices)), indices, first), shape=(2 * clients, features))
    y, size = rng.choice([-1.0, 1.0], 2 * clients), X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    algorithm = method_class("fedavg")(step=0.1, local_steps=2, batch=1)

    def run(owner):
        problem = SparseLinearModel(X, y, Logistic(), owner)
        simulate(algorithm, problem, Streams(0, (1,)), 3, cohort=FixedSize(10))

    run(np.repeat(np.arange(clients), 2))  # imports what it compiles
    for owner in (np.repeat(np.arange(clients), 2), rng.permutation(np.repeat(np.arange(clients), 2))):
        tracemalloc.start()
        run(owner)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak + size < 3 * size  # the caller holds them once
