"""A singular system ends the run that it belongs to, and no other."""

import numpy as np
import pytest

from replifed.algorithms.fednl import FedNL
from replifed.algorithms.giant import Giant
from replifed.algorithms.local_solvers import Exact, LocalObjective
from replifed.algorithms.newton import DistributedNewton
from replifed.engine.simulate import simulate
from replifed.errors import ReplifedError
from replifed.operators.matrices import apply_inverse, eigenpairs
from replifed.problems import restricted
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares, Logistic
from replifed.problems.minimiser import minimiser
from replifed.problems.surrogates.families import DictionaryLearning
from replifed.randomness import Streams


def problem(*singular, loss=None):
    """One data set each; the features of singular ones are two equal columns of ones."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((len(singular), 2, 4, 2)), rng.choice([-1.0, 1.0], (len(singular), 2, 4))
    X[list(singular)] = 1.0
    return DenseLinearModel(X, y, loss or LeastSquares())


@pytest.mark.parametrize(
    "algorithm",
    [DistributedNewton(), Giant(), FedNL(start="hessian", option=2)],
    ids=lambda a: type(a).__name__,
)
def test_a_singular_hessian_ends_its_run_alone(algorithm):
    together = simulate(algorithm, problem(False, True), Streams(0, (1, 2)), 3)
    alone = simulate(
        algorithm, DenseLinearModel(*first(problem(False, True)), LeastSquares()), Streams(0, (1,)), 3
    )
    assert together.diverged[-1].tolist() == [False, True]
    assert np.array_equal(together.metrics["objective"][:, 0], alone.metrics["objective"][:, 0])


def first(data):
    return data.X[:1], data.y[:1]


def test_a_minimiser_is_lost_with_its_data_set_alone():
    data = problem(False, True)
    found = minimiser(data, 4)
    assert np.isnan(found[2:]).all()
    assert np.array_equal(found[:2], minimiser(DenseLinearModel(*first(data), LeastSquares()), 2))
    with pytest.raises(ReplifedError, match="singular Hessian; give the problem a ridge"):
        minimiser(problem(True), 1)


def test_exact_local_steps_are_lost_run_by_run():
    data, start = problem(False, True), np.zeros((2, 2, 2))
    found = Exact().solve(LocalObjective(data, np.zeros_like(start)), start, None)
    assert np.isnan(found[1]).all()
    assert np.abs(data.per_client_gradients(found)[0]).max() < 1e-12


def test_dictionaries_are_lost_run_by_run():
    surrogate = DictionaryLearning(features=3, atoms=2, lam=0.1, eta=0.5)
    s = np.random.default_rng(0).standard_normal((2, 2 * 2 + 3 * 2))
    s[:, :4] = 1.0, 0.0, 0.0, 1.0
    s[1, :4] = -1.0, 0.0, 0.0, -1.0  # s1 + 2 eta I = 0
    theta = surrogate.T(s)
    assert np.isnan(theta[1]).all()
    np.testing.assert_allclose(theta[0], s[0, 4:] / 2)


def test_matrices_that_are_not_finite_are_lost_alone():
    H = np.stack([np.diag([3.0, 2.0, 1.0]), np.full((3, 3), np.nan), np.full((3, 3), 1e308)])
    H[0, 0, 1] = H[0, 1, 0] = 0.5
    values, vectors = eigenpairs(H)
    assert np.isnan(values[1]).all()
    np.testing.assert_allclose(values[0], np.linalg.eigvalsh(H[0])[::-1])
    np.testing.assert_allclose(vectors[0] @ H[0] @ vectors[0].T, np.diag(values[0]), atol=1e-12)
    assert not np.isfinite(apply_inverse(np.full((3, 3), 1e308), np.ones(3), 1.0)).all()


def test_a_restricted_minimum_is_lost_without_its_neighbours():
    data, support = problem(False, False, loss=Logistic()), np.ones((2, 2, 2), bool)
    start = np.zeros((2, 2, 2))
    start[1, 0] = np.nan
    found = restricted.newton(data, start, support)
    assert not np.isfinite(found[1, 0]).any()
    assert np.isfinite(found[0]).all() and np.isfinite(found[1, 1]).all()
