"""Cohorts: sizes, frequencies, and independence of everything but the round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replifed.errors import ConfigError
from replifed.network.participation import MANY, FixedSize, Independent
from replifed.randomness import Streams, generator


@given(size=st.integers(1, 7), t=st.integers(0, 50))
def test_a_fixed_size_is_kept_and_both_forms_agree(size, t):
    cohort = FixedSize(size)(Streams(0, (1, 2, 1)).at(t), 7)
    assert cohort.active.shape == (3, 7)
    assert (cohort.active.sum(axis=1) == size).all()
    assert all(
        np.array_equal(np.flatnonzero(a), c) for a, c in zip(cohort.active, cohort.chosen, strict=True)
    )
    assert np.array_equal(cohort.active[0], cohort.active[2])


def test_every_client_and_pair_is_drawn_equally_often():
    draws = np.concatenate([FixedSize(2)(Streams(0, (1,)).at(t), 5).active for t in range(4000)]).astype(
        float
    )
    together = draws.T @ draws / len(draws)
    # Probabilities 2/5 and 1/10; five standard errors.
    assert np.allclose(np.diag(together), 0.4, atol=5 * (0.24 / 4000) ** 0.5)
    assert np.allclose(together[~np.eye(5, dtype=bool)], 0.1, atol=5 * (0.09 / 4000) ** 0.5)


def test_independent_clients_have_their_own_probabilities():
    p = np.array([0.1, 0.5, 1.0])
    draws = np.concatenate([Independent(p)(Streams(0, (1,)).at(t), 3).active for t in range(4000)]).astype(
        float
    )
    assert np.allclose(draws.mean(axis=0), p, atol=5 * (0.25 / 4000) ** 0.5)
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < 5 / 4000**0.5


@pytest.mark.parametrize(
    "cohort", [FixedSize(0), FixedSize(4), Independent(0.0), Independent(np.array([0.5]))]
)
def test_impossible_cohorts_are_refused(cohort):
    with pytest.raises(ConfigError, match="must be"):
        cohort(Streams(0, (1,)).at(0), 3)


def test_few_clients_are_those_with_the_smallest_keys():
    keys = generator(0, 1, 3, "cohort").random(MANY)
    chosen = FixedSize(20)(Streams(0, (1,)).at(3), MANY).chosen[0]
    assert np.array_equal(chosen, np.sort(np.argsort(keys)[:20]))


@pytest.mark.parametrize("clients", [MANY + 1, 5000])
def test_a_cohort_of_many_clients_is_distinct_sorted_and_part_of_a_larger_one(clients):
    streams, smaller = Streams(0, (1, 2, 1)).at(3), [set()] * 3
    for size in (1, 10, 400, clients // 2, clients // 2 + 1, clients - 1, clients):
        cohort = FixedSize(size)(streams, clients)
        assert (np.diff(cohort.chosen, axis=1) > 0).all() and cohort.chosen.shape == (3, size)
        assert np.array_equal(cohort.chosen, FixedSize(size)(streams, clients).chosen)
        assert np.array_equal(np.argwhere(cohort.active)[:, 1].reshape(3, size), cohort.chosen)
        assert all(few <= set(more) for few, more in zip(smaller, cohort.chosen, strict=True))
        smaller = [set(one) for one in cohort.chosen]
    assert smaller[0] == set(range(clients))


@pytest.mark.parametrize("size", [30, 900])
def test_of_many_clients_each_is_drawn_equally_often(size):
    rounds, clients = 3000 // size * 20, MANY + 1
    drawn = np.zeros(clients)
    for t in range(rounds):
        drawn[FixedSize(size)(Streams(0, (1,)).at(t), clients).chosen[0]] += 1
    expected = rounds * size / clients
    # Pearson's statistic of counts without replacement, whose variance is less by 1 - size / clients.
    statistic = ((drawn - expected) ** 2 / expected).sum() / (1 - size / clients)
    assert abs(statistic - clients) < 4 * np.sqrt(2 * clients)
