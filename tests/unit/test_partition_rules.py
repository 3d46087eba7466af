"""Partitions by rules of the literature: their laws, their sizes, and what is refused."""

import numpy as np
import pytest

from replifed.errors import DataError
from replifed.partition.build import build
from replifed.partition.heterogeneity import group_counts
from replifed.partition.rules import split

RNG = np.random.default_rng
Y = np.where(RNG(0).random(40_000) < 0.3, 1, -1)  # 3 of 10 samples have the label 1


def of(clusters, clients, y=Y, spread=0.0, seed=1, **more):
    """Client of each sample."""
    return split(y, {"clusters": clusters, "clients": clients, "spread": spread, **more}, RNG(seed))


RULES = {"iid": {}, "dirichlet": {"alpha": 0.3}, "shards": {"shards_per_client": 2}}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("samples", "total"), [(None, 1003), (30, 510), (100, 1003)])
def test_sizes_are_equal_and_as_many_samples_are_held_as_were_asked_for(rule, samples, total):
    more = {} if samples is None else {"samples": samples}
    client = of(rule, 17, Y[:1003], **RULES[rule], **more)
    sizes = np.bincount(client[client >= 0], minlength=17)
    assert sizes.sum() == total and len(sizes) == 17
    assert np.ptp(sizes) <= (2 if rule == "shards" else 1)  # a shard is rounded by itself
    assert not np.array_equal(client, of(rule, 17, Y[:1003], **RULES[rule], **more, seed=2))


def test_shares_of_labels_have_the_moments_of_a_dirichlet_multinomial():
    """Mean p, variance p (1 - p) (m + a) / (m (1 + a)) with a = alpha K, of a label's share of m samples."""
    alpha, m, p = 0.3, 25, np.mean(Y == 1)
    client = of("dirichlet", 400, alpha=alpha, samples=m)
    held = client >= 0
    shares = np.bincount(client[held], weights=Y[held] == 1) / m
    a = 2 * alpha
    assert shares.mean() == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / (1 + a) / 400))
    assert shares.var() == pytest.approx(p * (1 - p) * (m + a) / (m * (1 + a)), rel=0.15)


@pytest.mark.parametrize(("alpha", "least", "most"), [(1e-9, 0.999, 1.0), (1e9, 0.5, 0.8), (1e308, 0.5, 0.8)])
def test_dirichlet_goes_from_one_label_a_client_to_independent_samples(alpha, least, most):
    client = of("dirichlet", 50, alpha=alpha, samples=300)
    held = client >= 0
    of_labels = group_counts(client[held], (Y[held] > 0).astype(int))
    assert least <= (of_labels.max(axis=1) / of_labels.sum(axis=1)).mean() <= most


def test_a_label_that_runs_out_is_made_up_for_by_the_others():
    y = np.repeat([0, 1, 2], [900, 90, 10])
    client = of("dirichlet", 20, y, alpha=0.05)  # all 1000 samples are dealt
    assert np.bincount(client).tolist() == [50] * 20


def test_shards_are_of_neighbouring_labels():
    y = RNG(3).permutation(np.repeat(np.arange(10), 100))
    client = of("shards", 10, y, shards_per_client=2)
    of_labels = group_counts(client, y)
    assert (np.count_nonzero(of_labels, axis=1) <= 2).all()  # shards of 50 are halves of labels
    assert (of_labels % 50 == 0).all()


def test_sizes_are_log_normal_where_that_is_asked_for():
    client = of("iid", 300, spread=0.5)
    sizes = np.bincount(client)
    assert sizes.sum() == len(Y)
    assert np.log(sizes).std() == pytest.approx(0.5, rel=0.12)


@pytest.mark.parametrize("rule", RULES)
def test_tenths_of_targets_stand_for_labels(rule):
    y = RNG(4).normal(size=2000)
    client = of(rule, 10, y, **{**RULES[rule], "alpha": 0.05})
    means = np.bincount(client, weights=y) / np.bincount(client)
    assert (means.std() > 0.3) == (rule != "iid")


@pytest.mark.parametrize(
    ("rule", "n", "clients", "spread", "says"),
    [
        ("iid", 60, 61, 0.0, "60 samples cannot be split between 61 clients; ask for fewer"),
        ("dirichlet", 60, 61, 0.0, "60 samples cannot be split between 61 clients"),
        ("iid", 60, 50, 3.0, r"of 50 clients would get none of 60 samples; ask for fewer clients, or"),
        ("shards", 60, 31, 0.0, "31 clients of 2 shards need more than 60 samples"),
    ],
)
def test_a_client_without_samples_is_refused_in_one_line(rule, n, clients, spread, says):
    with pytest.raises(DataError, match=says) as refusal:
        of(rule, clients, Y[:n], spread, **RULES[rule])
    assert "\n" not in str(refusal.value)


def test_a_partition_by_a_rule_describes_each_client_and_leaves_out_samples_of_none():
    settings = {"clusters": "dirichlet", "alpha": 0.3, "clients": 8, "spread": 0.4, "samples": 20}
    made, table = build(None, Y[:500], settings, [1, 2], seed=7)
    assert table.columns.tolist() == ["replicate", "client", "size", "label_-1", "label_1"]
    assert table.groupby("replicate")["size"].sum().tolist() == [160, 160]
    assert (table["label_-1"] + table["label_1"] == table["size"]).all()
    assert np.count_nonzero(made.clients[1] < 0) == 340
    again, _ = build(None, Y[:500], settings, [2], seed=7)  # a repetition draws by its own name
    assert np.array_equal(again.clients[2], made.clients[2])
    assert not np.array_equal(made.clients[1], made.clients[2])
