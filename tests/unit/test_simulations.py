"""The paper's synthetic data are distributed as Section 5.1 says; the planted problem has its constants."""

import numpy as np
import pytest

from replifed.papers.fedht import simulations
from replifed.papers.fedht.simulations import planted, simulation
from replifed.randomness import generator

# Few features and samples, many clients: everything is a mean over independent clients.
SETTINGS = {"seed": 0, "loss": "least_squares", "clients": 1500, "samples": 80, "features": 15, "planted": 5}
ALPHA, BETA = 0.25, 0.5


@pytest.fixture(scope="module")
def linear():
    problem = simulation(SETTINGS, (ALPHA, BETA), 1)
    return problem.X[0], problem.y[0]


def close(sample, expected, errors=4.5):
    """Whether the mean over the first axis is `expected` to so many standard errors."""
    error = sample.std(axis=0, ddof=1) / np.sqrt(len(sample))
    np.testing.assert_array_less(np.abs(sample.mean(axis=0) - expected), errors * error)


def test_features_scatter_around_their_clients_mean(linear):
    X, _ = linear
    k = np.arange(1, 16)
    variances = X.var(axis=1, ddof=1)
    close(variances, k**-1.2)
    # Coordinates are uncorrelated.
    centred = X - X.mean(axis=1, keepdims=True)
    close((centred[:, :, :-1] * centred[:, :, 1:]).mean(axis=1), 0.0)


def test_clients_means_scatter_around_a_mean_of_their_own(linear):
    X, _ = linear
    v = X.mean(axis=1)
    noise = np.arange(1, 16) ** -1.2 / 80
    close(v, 0.0)
    # v_i[j] ~ N(B_i, 1) within a client, and B_i ~ N(0, beta), a variance, between clients.
    close(v.var(axis=1, ddof=1), 1 + noise.mean())
    close(v.mean(axis=1) ** 2, BETA + (1 + noise.mean()) / 15)


def test_targets_follow_each_clients_own_model(linear):
    X, y = linear
    # Regress on the planted coordinates and an intercept, which estimates u_i.
    A = np.concatenate([np.ones((*X.shape[:2], 1)), X[:, :, :5]], axis=2)
    inverse = np.linalg.inv(A.swapaxes(1, 2) @ A)
    found = np.einsum("nab,nma,nm->nb", inverse, A, y)
    residual = y - np.einsum("nma,na->nm", A, found)
    # Noise of variance 1, and nothing left for the other coordinates to explain.
    close((residual**2).sum(axis=1) / (80 - 6), 1.0)
    close(np.einsum("nmk,nm->nk", X[:, :, 5:], residual) / 80, 0.0)
    # u_i ~ N(0.1, alpha), a variance; x_i has entries ~ N(u_i, 1), so that they share alpha.
    error = np.einsum("naa->na", inverse)
    close(found, 0.1)
    close((found[:, 0] - 0.1) ** 2 - error[:, 0], ALPHA)
    close((found[:, 1:] - 0.1) ** 2 - error[:, 1:], ALPHA + 1)
    close((found[:, 1] - 0.1) * (found[:, 2] - 0.1) - inverse[:, 1, 2], ALPHA)


def test_clients_weigh_alike(linear):
    problem = simulation({**SETTINGS, "clients": 4}, (1.0, 1.0), 1)
    np.testing.assert_array_equal(problem.weights, np.full((1, 4), 0.25))


def test_labels_mark_the_highest_scores(monkeypatch):
    small = {**SETTINGS, "clients": 6, "positives": 7, "dtype": "float32"}

    def unnamed(seed, replicate, round_, purpose):
        return generator(seed, replicate, round_, "data")

    # With one name for both simulations, the targets of the first are the scores of the second.
    monkeypatch.setattr(simulations, "generator", unnamed)
    score = simulation(small, (0.5, 0.5), 2).y[0]
    problem = simulation({**small, "loss": "logistic"}, (0.5, 0.5), 2)
    y = problem.y[0]
    assert problem.loss_function.name == "logistic"
    assert (problem.X.dtype, problem.y.dtype) == (np.float32, np.float32)
    assert np.array_equal(np.unique(y), [-1, 1])
    assert np.array_equal((y == 1).sum(axis=1), np.full(6, 7))
    for labels, scores in zip(y, score, strict=True):
        assert scores[labels == 1].min() > scores[labels == -1].max()


def test_levels_differ_in_nothing_but_alpha_and_beta():
    small = {**SETTINGS, "clients": 5}
    X = {beta: simulation(small, (0.1, beta), 1).X[0] for beta in (0.0, 0.25, 1.0)}
    # Features move by sqrt(beta) N_i, with one normal number N_i a client.
    shift = X[1.0] - X[0.0]
    np.testing.assert_allclose(shift, np.broadcast_to(shift[:, :1, :1], shift.shape), atol=1e-12)
    np.testing.assert_allclose(X[0.25] - X[0.0], shift / 2, atol=1e-12)
    assert np.std(shift[:, 0, 0]) > 0.1
    # Alpha moves the targets alone.
    np.testing.assert_array_equal(simulation(small, (1.0, 0.25), 1).X[0], X[0.25])
    assert not np.allclose(simulation(small, (0.1, 0.0), 2).X[0], X[0.0])


def test_planted_problem_has_its_condition_number_and_solution():
    settings = {"seed": 3, "clients": 4, "samples": 30, "features": 30, "planted": 6, "condition": 2.5}
    problem, x_star, variance = planted(settings, 1)
    assert np.count_nonzero(x_star) == 6
    assert np.all(np.abs(x_star[x_star != 0]) >= 1)
    # In every client: the theorems' constants are the clients'.
    np.testing.assert_allclose(problem.smoothness(), np.full((1, 4), 2.5), rtol=1e-12)
    np.testing.assert_allclose(problem.strong_convexity(), np.ones((1, 4)), rtol=1e-12)
    assert problem.loss(x_star[None]) == 0
    # Gradients at zero, sample by sample.
    each = (-problem.X.toarray() * problem.y[:, None]).reshape(4, 30, 30)
    spread = each - each.mean(axis=1, keepdims=True)
    assert variance == pytest.approx((spread**2).sum(axis=2).mean())
    assert not problem.client_gradients(x_star[None]).any()
    hessians = problem.client_hessians(x_star[None])[0]
    assert not np.allclose(hessians[0], hessians[1])
    other, other_star, _ = planted(settings, 2)
    assert not np.array_equal(other_star, x_star)
    assert not np.array_equal(other.X.data, problem.X.data)
