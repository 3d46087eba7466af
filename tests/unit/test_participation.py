"""Laws of who takes part, against their probabilities; weights of averages, by exact enumeration."""

from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replifed.errors import ConfigError
from replifed.network.participation import (
    MANY,
    Asked,
    Averaged,
    Cyclic,
    FixedSize,
    Independent,
    Markov,
    WithReplacement,
    shares,
)
from replifed.randomness import Streams, generator

ROUNDS = 4000


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


def drawn(law, n_clients, rounds=ROUNDS):
    """Who took part in each round of one run, (T, N)."""
    return np.concatenate([law(Streams(0, (1,)).at(t), n_clients).active for t in range(rounds)]).astype(
        float
    )


def within(share, p, n=ROUNDS):
    """Check frequencies against probabilities by five standard errors."""
    p = np.asarray(p)
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


# -- Laws --------------------------------------------------------------------------------------------


def test_draws_with_replacement_have_their_probabilities():
    q, K = np.array([0.05, 0.15, 0.3, 0.5]), 3
    active = drawn(WithReplacement(K, q), 4)
    out = (1 - q) ** K
    within(active.mean(axis=0), 1 - out)
    pair = 1 - out[:, None] - out + (1 - q[:, None] - q) ** K
    together = active.T @ active / ROUNDS
    off = ~np.eye(4, dtype=bool)
    within(together[off], pair[off])


class Given:
    """Streams whose uniform numbers are given."""

    def __init__(self, uniform):
        self._uniform = np.asarray(uniform)[None]

    def __len__(self):
        return 1

    def draw(self, purpose, sample):
        return self._uniform


def test_the_plain_mean_of_draws_is_unbiased_and_has_its_variance():
    """Scheme I, over all K-tuples of draws: mean sum p_i w_i, variance of one draw over K."""
    p, w, K = np.array([0.1, 0.2, 0.3, 0.4]), np.array([3.0, -1.0, 2.0, 7.0]), 3
    middle = np.cumsum(p) - p / 2
    means, chances = [], []
    for draws in product(range(4), repeat=K):
        _, chosen, share, rest = WithReplacement(K, p)(Given(middle[list(draws)]), 4)
        assert rest == 0 and share.sum() == pytest.approx(1)
        means.append(share[0] @ w[chosen[0]])
        assert means[-1] == pytest.approx(w[list(draws)].mean())
        chances.append(p[list(draws)].prod())
    mean = np.dot(chances, means)
    assert mean == pytest.approx(p @ w, abs=1e-14)
    assert np.dot(chances, np.square(means)) - mean**2 == pytest.approx((p @ w**2 - (p @ w) ** 2) / K)


@given(data=st.data(), N=st.integers(2, 6))
def test_averages_over_all_cohorts_are_those_of_their_schemes(data, N):
    K = data.draw(st.integers(1, N))
    p = np.array(data.draw(st.lists(st.floats(0.1, 1), min_size=N, max_size=N)))
    p, w, old = p / p.sum(), np.linspace(-1, 2, N) ** 2, 5.0
    cohorts = list(combinations(range(N), K))

    def mean(average, weights=p, models=w):
        values, totals = [], []
        for cohort in cohorts:
            came = np.ones((1, K), bool)
            share, rest = shares(average, weights[None, list(cohort)], came, N)
            values.append(share[0] @ models[list(cohort)] + rest[0] * old)
            totals.append(share.sum())
        return np.mean(values), np.mean(totals)

    assert mean("scaled") == (pytest.approx(p @ w), pytest.approx(1))  # scheme II: both on average
    assert mean("completed")[0] == pytest.approx(old + K / N * (p @ w - old))  # original
    value, total = mean("own")
    assert total == pytest.approx(1) and w.min() - 1e-12 <= value <= w.max() + 1e-12
    equal = np.full(N, 1 / N)
    assert mean("own", equal, N * p * w)[0] == pytest.approx(p @ w)  # transformed scheme II


@pytest.mark.parametrize("on, off", [(2, 2), (10, 5), (1, 1), (1.5, 6)])
def test_markov_clients_are_there_as_their_chain_says(on, off):
    active = drawn(Markov(on, off), 40)
    p, stay = on / (on + off), 1 - 1 / on - 1 / off
    # Rounds are correlated: the variance of a mean grows by (1 + stay) / (1 - stay).
    within(active.mean(), p, active.size * (1 - stay) / (1 + stay) if stay > -1 else 40)
    was, then = active[:-1].astype(bool), active[1:]
    within(then[was].mean(), 1 - 1 / on, was.sum())
    within(then[~was].mean(), 1 / off, (~was).sum())
    if stay > -1:  # pairs, of which rounds are correlated, too
        within((active[:, 0] * active[:, 1]).mean(), p**2, ROUNDS / (3 * max(on, off)))


def test_markov_states_do_not_depend_on_what_was_asked_before():
    streams = Streams(3, (1, 2))
    law, late = Markov(3, 2, 4), Markov(3, 2, 4)(streams.at(30), 9)
    for t in (0, 1, 7, 30, 2, 30):
        other = law(streams.at(t), 9)
    assert np.array_equal(late.active, other.active) and np.array_equal(late.chosen, other.chosen)
    alone = Markov(3, 2, 4)(Streams(3, (2,)).at(30), 9)
    assert np.array_equal(alone.active[0], late.active[1]) and np.array_equal(alone.chosen[0], late.chosen[1])


def test_cyclic_groups_are_there_in_turn():
    law = Cyclic(3)
    active = np.concatenate([law(Streams(0, (1,)).at(t), 8).active for t in range(6)])
    assert (active[:3].sum(axis=0) == 1).all() and np.array_equal(active[:3], active[3:])
    assert sorted(active[:3].sum(axis=1)) == [2, 3, 3]
    groups = {tuple(Cyclic(3)(Streams(0, (run,)).at(0), 8).active[0]) for run in range(20)}
    assert len(groups) > 5
    few = drawn(Cyclic(2, 3), 10)
    assert (few.sum(axis=1) == 3).all()
    within(few[::2].mean(axis=0)[few[::2].any(axis=0)], 3 / 5, ROUNDS / 2)


def test_where_all_are_there_the_cohort_is_that_of_a_fixed_size():
    for t in range(5):
        streams = Streams(0, (1, 2)).at(t)
        assert np.array_equal(Cyclic(1, 4)(streams, 9).chosen, FixedSize(4)(streams, 9).chosen)
        assert np.array_equal(Markov(1e9, 1, 4)(streams, 9).chosen, FixedSize(4)(streams, 9).chosen)


LAWS = [
    WithReplacement(3, np.full(7, 1 / 7)),
    Markov(2, 3),
    Markov(1, 4, 3),
    Cyclic(3),
    Cyclic(4, 1),
    Averaged(FixedSize(3), "scaled", np.full((1, 7), 1 / 7)),
    Averaged(Markov(1, 2, 3), "completed", np.full((1, 7), 1 / 7)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_those_who_compute_are_distinct_sorted_and_as_many_in_every_round(law):
    widths = set()
    for t in range(30):
        active, chosen, *weights = law(Streams(0, (1, 2, 1)).at(t), 7)
        assert active.shape == (3, 7) and (np.diff(chosen, axis=1) > 0).all()
        assert not active.sum() - np.take_along_axis(active, chosen, axis=1).sum()
        widths.add(chosen.shape)
        if weights:
            share, rest = weights
            came = np.take_along_axis(active, chosen, axis=1)
            assert share.shape == chosen.shape and not share[~came].any()
            nobody = ~active.any(axis=1)
            assert np.array_equal(rest[nobody], np.ones(nobody.sum()))
    assert len(widths) == 1


def test_of_many_clients_those_that_are_there_are_drawn():
    law = Markov(1.25, 5, 20)
    for t in range(3):
        active, chosen = law(Streams(0, (1,)).at(t), 3 * MANY)
        assert active.sum() == 20 and np.array_equal(np.flatnonzero(active[0]), chosen[0])
        assert law.there(Streams(0, (1,)).at(t), 3 * MANY)[0, chosen].all()


# -- Words -------------------------------------------------------------------------------------------

PROBLEM = SimpleNamespace(n_clients=20, sizes=np.arange(1, 21)[None], weights=np.full((1, 20), 0.05))


def test_words_make_laws():
    assert Asked().law(PROBLEM) is None
    assert Asked(10).law(PROBLEM) == FixedSize(10) == Asked("10").law(PROBLEM) == Asked("50%").law(PROBLEM)
    assert Asked("1%").law(PROBLEM) == FixedSize(1)
    assert Asked(None, "markov:20,5").law(PROBLEM) == Markov(20, 5)
    assert Asked(3, "cyclic:4").law(PROBLEM) == Cyclic(4, 3)
    by_size = Asked(2, "by-size").law(PROBLEM)
    np.testing.assert_allclose(by_size.probabilities[0], np.arange(1, 21) / 210)
    assert Asked(2, average="scaled").law(PROBLEM).law == FixedSize(2)


@pytest.mark.parametrize(
    "asked, says",
    [
        (Asked(0), "cohort = 0: must be from 1 to 20 clients, or a share such as 10%"),
        (Asked(21), "cohort = 21: must be from 1 to 20"),
        (Asked(True), "cohort = True: must be"),
        (Asked("0%"), "cohort = '0%': must be"),
        (Asked("101%"), "cohort = '101%': must be"),
        (Asked("1.5"), "cohort = '1.5': must be"),
        (Asked(None, "markov:1"), "availability = markov:1: must be one of uniform"),
        (Asked(None, "markov:0.5,2"), "markov:0.5,2: must be mean numbers of rounds, 1 or more"),
        (Asked(None, "cyclic:0"), "availability = cyclic:0: must be"),
        (Asked(None, "cyclic:21"), "cyclic:21: must be between 1 and 20 groups"),
        (Asked(None, "by-size"), "by-size draws a cohort"),
        (Asked(None, "weekly"), "availability = weekly: must be"),
        (Asked(2, average="mean"), "average = 'mean': must be one of own"),
        (Asked(None, average="scaled"), "average = scaled: it is of cohorts"),
        (Asked(2, "by-size", "scaled"), "by-size has its plain mean"),
    ],
)
def test_what_no_problem_can_have_is_refused_in_one_line(asked, says):
    with pytest.raises(ConfigError) as refusal:
        asked.check(20)
    assert str(refusal.value).startswith(says) or says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_words_say_who_takes_part():
    assert Asked().in_words() == ""
    assert "10% of the clients, drawn uniformly" in Asked("10%").in_words()
    assert "1 client, drawn" in Asked(1).in_words()
    assert "4 groups in turn, drawn uniformly; 2 clients at most" in Asked(2, "cyclic:4").in_words()
    assert "rounds there are 20 on average, and away 5." in Asked(None, "markov:20,5").in_words()
    assert "the old model has the rest" in Asked(2, average="completed").in_words()
