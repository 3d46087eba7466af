"""Communications against the condition number: the problems, the search, and what claims measure of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from replifed.algorithms.local_solvers import Gradient
from replifed.engine.simulate import simulate
from replifed.papers.cross import rates
from replifed.papers.cross.claims import exponent, slowest_fall
from replifed.papers.cross.experiments import run, tune
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares, Logistic
from replifed.randomness import Streams
from replifed.settings import typed

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config/papers/cross.yaml").read_text())["cross"]
SETTINGS = typed(
    "cross",
    {
        **CONFIG["experiments"]["rates_planted"],
        "seed": 1,
        "ridges": [0.1, 0.01],
        "replicates": [1, 2],
        "tuning": {"replicates": [101], "rounds": 400, "multiples": [0.1, 0.3, 1], "refine": 0},
    },
)


@pytest.mark.parametrize("name", CONFIG["experiments"]["rates_planted"]["methods"])
def test_steps_taken_at_once_are_those_taken_one_by_one(name):
    """The random numbers of steps too: on one problem for all runs, and on one a run."""
    made = rates._method(name, np.array([0.3, 0.2, 0.1]), 7)
    plain = replace(made, solver=Gradient(steps=7, step=made.solver.step))
    for replicates, names in (([1], (1, 1, 1)), ([1, 2, 3], (1, 2, 3))):
        fast = rates.problem(SETTINGS, 0.01, replicates, None, None)
        slow = DenseLinearModel(fast.X, fast.y, LeastSquares(), weights=fast.weights, l2=0.01)
        labels = np.where(fast.y > 0, 1.0, -1.0)
        logistic = DenseLinearModel(fast.X, labels, Logistic(), weights=fast.weights, l2=0.01)
        for data, other in ((fast, slow), (logistic, logistic)):
            ends = [
                simulate(method, problem, Streams(3, names), 6).state.x
                for method, problem in ((made, data), (plain, other))
            ]
            np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9, atol=1e-13)


def test_the_planted_problem_is_as_ill_conditioned_as_it_says():
    """The largest curvature of a client is one without the ridge, and the mean has some about the ridge."""
    for l2 in (0.1, 1e-5):
        made = rates.problem(SETTINGS, l2, [1, 2], None, None)
        mu, L = made.common_mu_L()
        np.testing.assert_allclose(L, 1 + l2, rtol=1e-6)
        np.testing.assert_allclose(mu, l2)
        for X in made.X:
            H = np.mean([A.T @ A / len(A) for A in X], axis=0)
            assert np.linalg.eigvalsh(H)[0] < 1e-5


def test_runs_end_at_the_target_with_the_steps_of_their_search():
    found = tune("scaffnew", SETTINGS, None, None)
    assert set(found["search"]) == {"0.1", "0.01"} and found["cost"]["runs"] > 0
    frame = run("scaffnew", SETTINGS, found, None, None)
    assert list(frame["l2"]) == [0.1, 0.1, 0.01, 0.01] and frame["reached"].all()
    assert (frame["local_steps"] == np.round(np.sqrt(frame["kappa"]))).all()
    assert (frame["bits"] == 2 * 4 * 24 * 32 * frame["round"]).all()
    # Its own loop, client by client, with the same numbers of steps: is it there, and not a round earlier?
    one = frame.iloc[2]
    setting = rates._Setting(SETTINGS, 0.01, [1], None, None)
    X, y, x_star = setting.data.X[0], setting.data.y[0], setting.solution[0]
    step, K = one["multiple"] / setting.L[0], int(one["local_steps"])
    x, h, left = np.zeros(24), np.zeros((4, 24)), []
    for t in range(int(one["round"])):
        count = Streams(1, (1,)).at(t).draw("local_steps", lambda rng: rng.geometric(1 / K, 1))[0, 0]
        x_hat = np.repeat(x[None], 4, axis=0)
        for _ in range(count):
            for i in range(4):
                g = X[i].T @ (X[i] @ x_hat[i] - y[i]) / len(y[i]) + 0.01 * x_hat[i]
                x_hat[i] = x_hat[i] - step * (g - h[i])
        x = x_hat.mean(axis=0)
        h = h + (x - x_hat) / (K * step)
        left.append(((x - x_star) ** 2).sum() / (x_star**2).sum())
    assert left[-1] <= SETTINGS.target < min(left[:-1])


def test_a_slope_is_an_exponent_and_a_bound_where_the_target_is_missed():
    kappa = np.array([10.0, 100.0, 1000.0])
    parts = [
        pd.DataFrame({"replicate": seed, "kappa": kappa, "round": seed * kappa**power, "reached": there})
        for seed, power, there in ((1, 0.5, True), (2, 1.0, [True, True, False]))
    ]
    found = exponent(pd.concat(parts))
    np.testing.assert_allclose(found.values, [0.5, 1.0])
    assert found.bounds.tolist() == [0, 1]


def test_a_fall_is_that_of_the_slowest_condition_number():
    frame = pd.DataFrame({"replicate": [1, 2, 1, 2], "ratio": [2.0, 3.0, 1.5, 4.0]})
    assert slowest_fall(frame).values.tolist() == [1.5, 3.0]


def test_psi_falls_as_its_direction_of_least_curvature_does():
    """With equal clients of one curvature Scaffnew is gradient descent: (1 - gamma mu)^2 a step."""
    setting = rates._Setting(SETTINGS, 0.01, [1, 2], None, None)
    X = np.full((2, 3, 1, 1), 0.1)  # curvature 0.01 beside the ridge
    setting.data = rates.Quadratic(
        X, np.ones((2, 3, 1)), LeastSquares(), weights=np.full((2, 3), 1 / 3), l2=0.01
    )
    setting.solution = np.full((2, 1), 0.1 / 0.02)
    setting.L, setting.mu, setting.steps = np.ones(2), np.full(2, 0.02), 8
    found = rates.fall(setting, SETTINGS)
    np.testing.assert_allclose(found["rate"], (1 - 0.02) ** 2, rtol=1e-9)
    np.testing.assert_allclose(found["bound"], 1 - 1 / 64)
