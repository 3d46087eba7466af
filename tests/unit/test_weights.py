"""Weights of clients: every method minimises F = sum_i p_i f_i, and equal weights change nothing."""

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import yaml

import replifed as rf
from replifed.algorithms.registry import method_class
from replifed.errors import ReplifedError
from replifed.network.fading import Constant
from replifed.network.participation import weighted_view
from replifed.papers.cross.experiments import run
from replifed.papers.cross.methods import algorithm
from replifed.parts import typed
from replifed.problems.minimiser import minimiser
from replifed.settings import comparison

CROSS = yaml.safe_load((Path(__file__).parents[2] / "config/papers/cross.yaml").read_text())["cross"]
SETTINGS = CROSS["experiments"]["a9a"]
METHODS = [*SETTINGS["methods"], "fedmid", "feddualavg", "fedht", "fediterht", "distributed_iht"]
RNG = np.random.default_rng(5)
SIZES = (20, 60, 120)
CLIENTS = [
    (X := RNG.normal(size=(n, 4)) + RNG.normal(size=4), np.sign(X @ RNG.normal(size=4) + RNG.normal(size=n)))
    for n in SIZES
]
WEIGHTS = [0.02, 0.08, 0.9]


def problem(weights=None):
    return rf.problems.from_clients(CLIENTS, l2=0.1, weights=weights)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_ends_at_the_minimiser_of_the_weighted_sum(name):
    weighted = problem(WEIGHTS)
    given = weighted_view(method_class(name), weighted)
    settings = typed("cross", {**SETTINGS, "local_steps": 1, "kept_share": 1.0})
    made = algorithm(name, np.array([1.0]), given, settings)
    history = rf.run(made, weighted, rounds=200, record_every=200, channel=Constant(SETTINGS["bits"]))
    least, plain = weighted.loss(minimiser(weighted, 1))[0], weighted.loss(minimiser(problem(), 1))[0]
    assert history["objective"].iloc[-1] - least < 1e-2 * (plain - least)


@pytest.mark.parametrize("name", METHODS)
def test_equal_weights_are_left_as_they_are(name):
    for weights in (None, [1 / 3] * 3):
        equal = problem(weights)
        assert weighted_view(method_class(name), equal) is equal


def test_a_problem_with_equal_weights_has_the_same_objective_and_constants_of_its_own():
    weighted = problem(WEIGHTS)
    equal = weighted.with_equal_weights()
    x = RNG.normal(size=(2, 4))
    np.testing.assert_allclose(equal.loss(x), weighted.loss(x))
    np.testing.assert_allclose(equal.gradient(x), weighted.gradient(x))
    np.testing.assert_allclose(
        equal.per_client_gradients(np.repeat(x[:, None], 3, 1)).mean(1), equal.gradient(x)
    )
    share = 3 * np.array(WEIGHTS)
    np.testing.assert_allclose(equal.smoothness() - 0.1, share * (weighted.smoothness() - 0.1))
    np.testing.assert_array_equal(equal.strong_convexity(), weighted.strong_convexity())


@dataclass(frozen=True)
class Plain(method_class("fedavg")):
    """A method of one's own that does not say what it does with weights."""

    weighted = False


def test_plain_means_on_sparse_data_whose_weights_differ_are_refused():
    data = [(sp.csr_array(X), y) for X, y in CLIENTS]
    sparse = rf.problems.from_clients(data, l2=0.1, weights=WEIGHTS)
    with pytest.raises(
        ReplifedError, match="Plain takes plain means, and the weights of this Sparse"
    ) as refusal:
        rf.run(Plain(step=0.1, local_steps=1), sparse, rounds=1)
    assert "\n" not in str(refusal.value)
    rf.run(rf.method("fedavg", step=0.1, local_steps=1), sparse, rounds=1)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([500, 5, 1], "weights sum to 506: must sum to 1"),
        ([1, 1, 1], "weights sum to 3"),
        ([0.2, 0.2, 0.2], "weights sum to 0.6"),
        ([0.5, 0, 0.5], "client 1 has weight 0"),
        ([0.5, -0.5, 1], "weights hold -0.5"),
        ([0.5, 0.5], "2 weights for 3 clients"),
        (["a", "b", "c"], "weights are no numbers"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_weights_that_are_no_shares_are_refused(weights, says, form):
    with pytest.raises(ReplifedError, match=says):
        rf.problems.from_clients([(form(X), y) for X, y in CLIENTS], weights=weights)


@pytest.mark.parametrize("method", ["fedavg", "fedlin", "scaffnew", "newton"])
def test_own_data_weigh_clients_by_samples_all_of_which_count(method):
    table = SimpleNamespace(
        X=sp.csr_array(np.vstack([X for X, _ in CLIENTS])), y=np.hstack([y for _, y in CLIENTS])
    )
    split = SimpleNamespace(clients={1: np.repeat([0, 1, 2], SIZES)})
    own = {**SETTINGS, "seed": 1, "replicates": [1], "rounds": 200, "local_steps": 1, "ridge": 0.1}
    own = {key: value for key, value in own.items() if key != "samples"} | {"weights": "samples"}
    history = run(method, typed("cross", own), {"search": {"step": 0.5}}, table, split)
    assert set(history["samples"]) == {sum(SIZES)}
    assert history["gap"].iloc[-1] < 1e-4
    pooled = rf.problems.from_clients([(table.X.toarray(), table.y)], l2=0.1)
    assert history["objective"].min() == pytest.approx(pooled.loss(minimiser(pooled, 1))[0], rel=1e-6)


def test_what_plain_means_get_is_not_what_metrics_see():
    weighted = problem(WEIGHTS)
    seen = []
    rf.run(
        replace(method_class("fedlin").example()),
        weighted,
        rounds=1,
        metrics={"objective": lambda given, _: seen.append(given) or given.loss(np.zeros((1, 4)))},
    )
    assert all(given is weighted for given in seen) and seen


def test_weights_and_samples_of_own_data_are_those_of_its_experiment():
    of_data = {"loss": "logistic", "clients": 3, "partition": "given"}
    own = {"mine": {**of_data, "weights": "samples"}, "few": {**of_data, "samples": 50}}
    made = comparison.problems({"cross": CROSS, "datasets": own})
    mine, few = (typed("cross", {**made[name], "seed": 1}) for name in own)
    assert (mine.weights, mine.samples, few.weights, few.samples) == ("samples", None, "equal", 50)
