"""Clients whose data are made when they are drawn: runs as with all data at hand, states of the drawn."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import replifed as rf
from replifed.algorithms.client_states import Drawn
from replifed.errors import ReplifedError
from replifed.network.participation import Participation

N, M, D = 30, 8, 4
METHODS = {
    "fedavg": {"step": 0.3, "local_steps": 3},
    "scaffold": {"step": 0.3, "solver": rf.Gradient(steps=3)},
    "fedplt": {"rho": 0.7, "solver": rf.Gradient(steps=3)},
    "feddyn": {"alpha": 0.5, "solver": rf.Gradient(steps=3)},
    "feddc": {"step": 0.3, "solver": rf.Stochastic(steps=3, batch=4), "alpha": 0.1},
    "mimelite": {"step": 0.3, "solver": rf.Gradient(steps=3)},
}


def client(i):
    rng = np.random.default_rng(i)
    X = rng.standard_normal((M, D)) + rng.standard_normal(D)
    return X, np.where(X @ (2 + rng.standard_normal(D)) > 0, 1.0, -1.0)


def sometimes_nobody(streams, n_clients):
    active = np.zeros((2, n_clients), bool)
    chosen = np.array([[1, 4, 7], [2, 4, 9]]) + streams.round_
    active[np.arange(2)[:, None], chosen] = [[streams.round_ != 2], [True]]
    return Participation(active, chosen)


@pytest.mark.parametrize("cohort", [5, sometimes_nobody])
@pytest.mark.parametrize("name", METHODS)
def test_a_run_is_as_with_all_data_at_hand(name, cohort):
    method = rf.method(name, **METHODS[name])
    whole = rf.problems.from_clients([client(i) for i in range(N)], l2=0.1)
    drawn = rf.problems.from_function(client, N, M, l2=0.1, watched=N)
    found, expected = (rf.run(method, one, 8, seeds=2, cohort=cohort) for one in (drawn, whole))
    assert list(found) == list(expected)
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-10)
    assert expected["objective"].iloc[8] < expected["objective"].iloc[0]


def test_only_drawn_clients_are_made_and_the_objective_is_of_those_watched():
    made = []
    problem = rf.problems.from_function(lambda i: made.append(i) or client(i), 10**6, M, l2=0.1, watched=20)
    assert len(set(made)) == 20
    rf.run(rf.method("scaffold", **METHODS["scaffold"]), problem, 4, cohort=5)
    assert len(made) == 40 and max(made) > 10**4
    of_watched = rf.problems.from_clients([client(i) for i in sorted(made[:20])], l2=0.1)
    x = np.ones((1, D))
    np.testing.assert_allclose(problem.loss(x), of_watched.loss(x), rtol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_states_of_the_drawn_are_those_of_all(data):
    runs, clients = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 12))
    all_states, drawn = np.zeros((runs, clients, 2)), Drawn((runs, clients, 2), float)
    number, run = iter(range(1, 10**6)), np.arange(runs)[:, None]
    for _ in range(data.draw(st.integers(0, 5))):
        size = data.draw(st.integers(1, clients))
        rows = data.draw(st.sampled_from([1, runs]))
        index = np.array([data.draw(st.permutations(range(clients)))[:size] for _ in range(rows)])
        new = np.array([[[next(number), -next(number)] for _ in range(size)] for _ in range(runs)], float)
        before, earlier = drawn.copy(), all_states.copy()
        all_states[run, index] = new
        drawn.put(index, new)
        lost = np.array(data.draw(st.lists(st.booleans(), min_size=runs, max_size=runs)))
        by = data.draw(st.booleans())
        drawn = drawn.replaced(lost, before if by else None)
        all_states[lost] = earlier[lost] if by else 0
    everyone = np.arange(clients)[None]
    np.testing.assert_array_equal(drawn.take(everyone), all_states)
    np.testing.assert_allclose(drawn.mean(), all_states.mean(axis=1), atol=1e-9)
    np.testing.assert_array_equal(drawn[[-1]].take(everyone), all_states[[-1]])
    assert (len(drawn), drawn.shape) == (runs, all_states.shape)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"clients": 0}, "clients = 0: must be a whole number"),
        ({"samples": 2.5}, "samples = 2.5: must be a whole number"),
        ({"samples": 9}, r"client \d+: features \(8, 4\) and targets \(8,\); expected \(9, 4\)"),
        ({"loss": "softmax"}, "a softmax .* needs their number"),
        ({"client": lambda i: (sp.csr_array(client(i)[0]), client(i)[1])}, "sparse"),
        ({"client": lambda i: 3}, r"client \d+: int of another form"),
    ],
)
def test_what_is_wrong_is_named(wrong, text):
    with pytest.raises(ReplifedError, match=text):
        rf.problems.from_function(**{"client": client, "clients": N, "samples": M} | wrong)


@pytest.mark.parametrize("name", METHODS)
def test_without_a_cohort_it_says_what_to_give(name):
    problem = rf.problems.from_function(client, N, M, l2=0.1)
    with pytest.raises(ReplifedError, match=r"all 30 clients .* give a cohort"):
        rf.run(rf.method(name, **METHODS[name]), problem, 2)


def test_a_start_of_its_own_for_each_client_is_refused():
    problem = rf.problems.from_function(client, N, M, l2=0.1)
    with pytest.raises(ReplifedError, match="start_deviation"):
        rf.run(rf.method("fedplt", **METHODS["fedplt"], start_deviation=1.0), problem, 2, cohort=3)
