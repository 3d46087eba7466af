"""Cohorts of many clients: a round costs what takes part, and comes to the same."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from pairwise import covering
from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.fivegcs import FiveGCS
from replifed.algorithms.local_solvers import Exact, Gradient, Stochastic
from replifed.algorithms.registry import method_class
from replifed.algorithms.scaffold import Scaffold
from replifed.engine.perturbed import simulate_perturbed
from replifed.engine.simulate import simulate
from replifed.errors import ReplifedError
from replifed.library import run
from replifed.network.participation import MANY, FixedSize
from replifed.problems import minimiser
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares, Logistic, loss_named
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
    problem, held = many(clients=5000, features=8), []

    def note(t, rounds):
        held.append(tracemalloc.get_traced_memory())
        tracemalloc.reset_peak()

    tracemalloc.start()
    simulate(algorithm, problem, Streams(0, (1,)), 4, metrics={}, cohort=FixedSize(5), progress=note)
    tracemalloc.stop()
    # Of all clients, 8 features are .32 MB.
    assert held[-1][1] - held[-2][0] < 0.1e6


def sparse_and_dense(l2, density, clients=12, features=30):
    rng = np.random.default_rng(1)
    sizes = rng.integers(2, 6, clients)
    X = rng.standard_normal((sizes.sum(), features)) * (rng.random((sizes.sum(), features)) < density)
    y, owner = rng.choice([-1.0, 1.0], len(X)), np.repeat(np.arange(clients), sizes)
    padded, targets = np.zeros((1, clients, 5, features)), np.ones((1, clients, 5))
    place = np.arange(len(X)) - (np.cumsum(sizes) - sizes)[owner]
    padded[0, owner, place], targets[0, owner, place] = X, y
    weights = rng.dirichlet(np.ones(clients), 1)
    dense = DenseLinearModel(padded, targets, Logistic(), sizes=sizes[None], weights=weights, l2=l2)
    mixed = np.lexsort((owner, place))  # the clients' samples in turn
    X, y, owner = sp.csr_array(X[mixed]), y[mixed], owner[mixed]
    return SparseLinearModel(X, y, Logistic(), owner, weights=weights, l2=l2), dense


# Gram matrices are computed in each round, not at all, or once.
COHORTS = covering(
    product(
        ("fedavg", "fedprox", "fediterht", "fedht"),
        ((1, 1), (1, 2, 3)),
        (None, 3),
        ((0.01, 0.2), (0.0, 0.2), (0.0, 0.6)),
    )
)


@pytest.mark.parametrize("method, replicates, batch, ridge", COHORTS)
def test_cohorts_on_sparse_data_are_those_on_dense_data(method, replicates, batch, ridge):
    l2, density = ridge
    settings = {"step": 0.3, "local_steps": 3, "batch": batch}
    settings |= {"fedprox": {"mu": 0.1}}.get(method, {}) | ({"sparsity": 7} if "ht" in method else {})
    found = [
        simulate(
            method_class(method)(**settings), problem, Streams(0, replicates), 6, cohort=FixedSize(4)
        ).metrics["objective"]
        for problem in sparse_and_dense(l2, density)
    ]
    assert np.ptp(found[0], axis=0).min() > 1e-3
    np.testing.assert_allclose(*found, rtol=1e-10)


def test_sparse_data_take_three_times_their_size_at_most():
    clients, features, nonzeros = 5000, 30_000, 60
    rng = np.random.default_rng(0)
    apart = features // nonzeros * np.arange(nonzeros)
    indices = (apart + rng.integers(features // nonzeros, size=(2 * clients, 1))).ravel().astype(np.int32)
    first = np.arange(0, len(indices) + 1, nonzeros, dtype=np.int32)
    X = sp.csr_array((rng.standard_normal(len(indices)), indices, first), shape=(2 * clients, features))
    y, size = rng.choice([-1.0, 1.0], 2 * clients), X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    algorithm = method_class("fedavg")(step=0.1, local_steps=2, batch=1)

    def measured(X, y, owner):
        tracemalloc.start()
        problem = SparseLinearModel(X, y, Logistic(), owner)
        simulate(algorithm, problem, Streams(0, (1,)), 2, cohort=FixedSize(10))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    measured(X[:40], y[:40], np.repeat(np.arange(20), 2))  # imports what it compiles
    mixed = rng.permutation(np.repeat(np.arange(clients), 2))  # so that they are copied
    assert measured(X, y, mixed) + size < 3 * size  # the caller holds them once


@pytest.mark.parametrize("loss, outputs", [("least_squares", 1), ("logistic", 1), ("softmax", 4)])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_products_with_hessians_find_the_minimum_that_factors_find(loss, outputs, layout, monkeypatch):
    rng, of = np.random.default_rng(3), loss_named(loss, outputs)
    X = rng.standard_normal((2, 3, 40, 60)) * np.exp(rng.standard_normal(60))
    signs = rng.integers(0, outputs, X.shape[:3]) if outputs > 1 else rng.choice([-1.0, 1.0], X.shape[:3])
    problem = DenseLinearModel(X, signs, of, l2=1e-4)
    if layout == "sparse":
        if outputs > 1:
            pytest.skip("sparse data take no softmax")
        rows = sp.csr_array(X[0].reshape(-1, 60))
        problem = SparseLinearModel(rows, signs[0].ravel(), of, np.repeat(np.arange(3), 40), l2=1e-4)
    factored = minimiser.minimiser(problem, 2)
    monkeypatch.setattr(minimiser, "_MOST_FACTORED", 0)
    monkeypatch.delattr(type(problem), "client_hessians")
    found = minimiser.minimiser(problem, 2)
    np.testing.assert_allclose(problem.loss(found), problem.loss(factored), rtol=1e-14)
    np.testing.assert_allclose(found, factored, atol=1e-9 * np.abs(factored).max())


def test_the_minimum_of_twenty_thousand_coordinates():
    rng = np.random.default_rng(4)
    X = sp.random_array((60, 20_000), density=1e-3, format="csr", rng=rng)
    problem = SparseLinearModel(X, rng.standard_normal(60), LeastSquares(), np.arange(60) % 5, l2=1e-3)
    found = minimiser.minimiser(problem, 1)[0]
    # The minimiser is X'a, and a solves a system of 60 samples.
    counts, p = np.bincount(np.arange(60) % 5)[problem.client], problem.weights[0, problem.client]
    kernel = (problem.X @ problem.X.T).toarray() + np.diag(1e-3 * counts / p)
    np.testing.assert_allclose(found, problem.X.T @ np.linalg.solve(kernel, problem.y), atol=1e-10)
    flat = SparseLinearModel(X, problem.y, LeastSquares(), np.arange(60) % 5)
    with pytest.raises(ReplifedError, match="give the problem a ridge"):
        minimiser.minimiser(flat, 1)


@pytest.mark.parametrize("method", ["newton", "fednl", "shed", "giant", "qshed"])
def test_hessians_that_do_not_fit_are_refused_before_the_first_round(method, monkeypatch):
    problem, algorithm = many(clients=3, samples=2, features=12), method_class(method).example()
    of_runs = {2: algorithm, 6: lambda runs, factors: algorithm}  # the second with twins
    run = {2: simulate, 6: simulate_perturbed}
    for runs in run:
        monkeypatch.setattr("replifed.engine.simulate.free", lambda runs=runs: 8 * runs * 3 * 12**2)
        run[runs](of_runs[runs], problem, Streams(0, (1, 2)), 1)
    monkeypatch.setattr("replifed.engine.simulate.free", lambda: 8 * 2 * 3 * 12**2 - 1)
    monkeypatch.setattr(type(algorithm), "init", None)  # it comes too late
    for runs in run:
        said = rf"0\.0 GiB for the Hessians of 3 clients in 12 coordinates, {runs} runs .* 0\.0 GiB are free"
        with pytest.raises(ReplifedError, match=said):
            run[runs](of_runs[runs], problem, Streams(0, (1, 2)), 1)


def test_exact_local_steps_of_a_cohort_need_its_hessians_alone(monkeypatch):
    monkeypatch.setattr("replifed.engine.simulate.free", lambda: 8 * 4 * 3**2)
    algorithm = FedPLT(rho=0.5, solver=Exact())
    simulate(algorithm, many(), Streams(0, (1,)), 1, cohort=FixedSize(4))
    with pytest.raises(ReplifedError, match="the Hessians of 5 clients"):
        simulate(algorithm, many(), Streams(0, (1,)), 1, cohort=FixedSize(5))


@pytest.mark.parametrize(
    "clients, cohort, every", [(MANY, 10, 1), (1200, 400, 3), (1200, 10, 5), (1200, None, 1)]
)
def test_the_objective_of_many_clients_is_recorded_on_a_schedule(clients, cohort, every):
    history = run(method_class("fedavg")(step=0.1, local_steps=1), many(clients), 100, cohort=cohort)
    assert history["round"].tolist() == list(range(0, 101, every)) + ([100] if every == 3 else [])
