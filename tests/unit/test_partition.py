"""Partitions: every sample once, different clusters, even shards, nothing left to chance."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from replifed.errors import ConfigError, DataError
from replifed.partition import store
from replifed.partition.build import assign_clients, assign_shards, build, split_shards
from replifed.partition.build import partition as partition_command
from replifed.partition.clusters import kmeans_clusters, label_clusters
from replifed.partition.heterogeneity import (
    client_table,
    group_counts,
    label_groups,
    pooled_distances,
    summary,
)
from replifed.store import FORMAT

PLAN = {"clusters": "kmeans", "count": 4, "parts": 6, "shards_per_client": 2}


def blobs(n=240, d=12, count=4, seed=0):
    """Sparse, non-negative samples in `count` well separated groups, and the groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(count, size=n)
    X = sp.random(n, d, 0.3, format="csr", random_state=seed)
    X = X + sp.csr_matrix((np.full(n, 9.0), (np.arange(n), group)), shape=(n, d))
    return X.tocsr(), group


@st.composite
def plans(draw):
    """Cluster sizes, parts and shards per client that divide evenly, the clusters large enough."""
    count = draw(st.integers(2, 6))
    hand = draw(st.integers(2, min(3, count)))
    parts = draw(st.integers(1, 5)) * hand
    sizes = draw(st.lists(st.integers(parts, 4 * parts), min_size=count, max_size=count))
    return sizes, parts, hand, draw(st.integers(0, 2**32))


@settings(max_examples=60, deadline=None)
@given(plans())
def test_every_sample_has_one_client_and_every_client_different_clusters(plan):
    sizes, parts, hand, seed = plan
    cluster = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    client = assign_clients(cluster, parts, hand, np.random.default_rng(seed))
    clients = len(sizes) * parts // hand
    assert client.shape == cluster.shape
    assert np.array_equal(np.unique(client), np.arange(clients))
    held = group_counts(client, cluster)
    assert held.sum() == len(cluster)
    # As many different clusters as shards: no two shards of one cluster, none lost.
    assert np.all((held > 0).sum(axis=1) == hand)
    for column in held.T:
        assert np.count_nonzero(column) == parts
        assert np.ptp(column[column > 0]) <= 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=2, max_size=5),
    st.integers(1, 4).map(lambda k: 2 * k),
    st.integers(),
)
def test_small_clusters_are_dealt_without_an_empty_client_or_refused(sizes, parts, seed):
    rng = np.random.default_rng(abs(seed))
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    clients = len(sizes) * parts // 2
    try:
        client = assign_clients(cluster, parts, 2, rng)
    except DataError as error:
        assert "too small" in str(error)
        assert min(sizes) < parts
    else:
        assert np.bincount(client, minlength=clients).all()


def test_a_single_sample_cluster_leaves_empty_shards_but_no_empty_client():
    cluster = np.array([0] + [1] * 40 + [2] * 40)
    for seed in range(20):
        client = assign_clients(cluster, 4, 2, np.random.default_rng(seed))
        assert np.bincount(client, minlength=6).all()
        assert np.count_nonzero(group_counts(client, cluster)[:, 0]) == 1


def test_too_few_samples_are_refused_in_one_line():
    with pytest.raises(DataError, match="clusters are too small: 34 of 40 shards") as caught:
        assign_clients(np.array([0, 0, 0, 1, 1, 1]), 20, 2, np.random.default_rng(0))
    assert "\n" not in str(caught.value)


def test_an_impossible_hand_is_refused():
    cluster = np.repeat([0, 1], 3)
    with pytest.raises(ConfigError, match="different clusters"):
        assign_shards(cluster, np.ones(6, dtype=int), 3, np.random.default_rng(0))


def test_shards_are_random_within_their_cluster():
    cluster = np.zeros(1000, dtype=int)
    shard = split_shards(cluster, 10, np.random.default_rng(1))
    assert np.array_equal(np.bincount(shard), np.full(10, 100))
    assert len(np.unique(shard[:100])) == 10


def test_kmeans_finds_the_groups_and_orders_them_by_size():
    X, group = blobs()
    found = kmeans_clusters(X, 4, seed=3)
    assert len({*zip(group.tolist(), found.tolist(), strict=True)}) == 4
    sizes = np.bincount(found)
    assert np.array_equal(sizes, np.sort(sizes)[::-1])
    assert np.array_equal(found, kmeans_clusters(X, 4, seed=3))
    assert np.array_equal(found, kmeans_clusters(X.toarray(), 4, seed=3))


def test_kmeans_leaves_the_data_alone_and_never_makes_a_sparse_matrix_dense(monkeypatch):
    X, _ = blobs(n=600, d=50)
    before = X.copy()
    original = sp.csr_matrix.toarray

    def guarded(self, *args, **kwargs):
        # k-means++ unpacks single rows: its starting centres.
        assert self.shape[0] <= 4, "a sparse matrix was made dense"
        return original(self, *args, **kwargs)

    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_matrix):
        monkeypatch.setattr(kind, "toarray", guarded)
        monkeypatch.setattr(kind, "todense", guarded)
    build(X, np.zeros(600, dtype=int), PLAN, [1], seed=1)
    assert abs(X - before).max() == 0


def test_kmeans_takes_pixels():
    X = np.repeat(np.array([[0, 255], [255, 0]], dtype=np.uint8), 5, axis=0)
    assert len(np.unique(kmeans_clusters(X, 2, seed=0))) == 2


@pytest.mark.parametrize(
    "count, message", [(5, "4 samples cannot form 5"), (3, "found 2 clusters instead of 3")]
)
def test_kmeans_refuses_too_few_samples(count, message):
    X = sp.csr_matrix(np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]))
    with pytest.raises(DataError, match=message):
        kmeans_clusters(X, count, seed=0)


def test_label_clusters():
    assert label_clusters(np.array([3, -1, 3, 7]), 3).tolist() == [1, 0, 1, 2]
    with pytest.raises(DataError, match="2 labels, but the partition has 10"):
        label_clusters(np.array([0, 1]), 10)
    with pytest.raises(DataError, match="real-valued"):
        label_clusters(np.array([0.5, 1.0]), 2)


def test_equal_seeds_give_equal_partitions_and_other_seeds_others():
    X, y = blobs()
    first, table = build(X, y, PLAN, [1, 2], seed=5)
    second, again = build(X, y, PLAN, [1, 2], seed=5)
    other, _ = build(X, y, PLAN, [1, 2], seed=6)
    assert first.meta == second.meta
    assert table.equals(again)
    assert first.meta["content_sha256"] != other.meta["content_sha256"]
    assert not np.array_equal(first.clients[1], first.clients[2])


def test_more_replicates_change_nobody_else_s():
    X, y = blobs()
    few, _ = build(X, y, PLAN, [1, 2], seed=5)
    many, _ = build(X, y, PLAN, [101, 2, 7, 1], seed=5)
    assert list(many.clients) == [101, 2, 7, 1]
    assert np.array_equal(few.cluster, many.cluster)
    for name in (1, 2):
        assert np.array_equal(few.clients[name], many.clients[name])


def test_the_table_describes_every_client():
    client = np.array([0, 0, 0, 1, 1])
    cluster = np.array([2, 0, 2, 1, 1])
    table = client_table(client, cluster, np.array([5, 5, -1, -1, -1]))
    assert table["size"].tolist() == [3, 2]
    assert table["label_-1"].tolist() == [1, 2] and table["label_5"].tolist() == [2, 0]
    assert table["cluster_a"].tolist() == [0, 1]
    assert table["cluster_b"][0] == 2 and table["cluster_b"].isna()[1]
    targets = np.array([1.0, 2, 6, -1, 1])
    table = client_table(client, cluster, targets)
    assert np.allclose(table["target_mean"], [3, 0])
    assert np.allclose(table["target_std"], [targets[:3].std(), 1])


def test_distances_to_the_pooled_distribution():
    counts = np.array([[10, 0], [0, 10]])
    assert pooled_distances(counts).tolist() == [0.5, 0.5]
    # Two of ten equally frequent labels, equally often: 2 (1/2 - 1/10) / 2 + 8 (1/10) / 2.
    pairs = np.kron(np.eye(5, dtype=int), np.ones((1, 2), dtype=int)) * 30
    assert np.allclose(pooled_distances(pairs), 0.8)
    assert np.allclose(pooled_distances(np.ones((4, 3), dtype=int)), 0)


def test_summary_of_equal_and_unequal_clients():
    y = np.tile([0, 1], 60)
    even = summary(np.repeat(np.arange(6), 20), y)
    assert even["clients"] == 6 and even["size_min"] == even["size_max"] == even["size_median"] == 20
    assert even["effective_clients"] == pytest.approx(6)
    assert even["size_variation"] == 0 and even["size_max_over_mean"] == 1
    assert even["label_distance"] == 0 < even["label_distance_random"]
    uneven = summary(np.repeat([0, 1], [90, 30]), y)
    assert uneven["effective_clients"] == pytest.approx(1 / (0.75**2 + 0.25**2))
    assert uneven["size_max_over_mean"] == pytest.approx(1.5)


def test_targets_are_grouped_by_deciles():
    names, group = label_groups(np.random.default_rng(0).standard_normal(1000))
    assert names[0] == "tenth 1" and names[-1] == "tenth 10"
    assert np.array_equal(np.bincount(group), np.full(10, 100))
    # Targets with many ties still fall into some bin each.
    assert label_groups(np.zeros(7))[1].tolist() == [9] * 7


@pytest.fixture
def partition():
    X, y = blobs()
    return build(X, y, PLAN, [1, 2, 101], seed=5)[0]


def test_a_saved_partition_comes_back(tmp_path, partition):
    store.save(tmp_path / "p.npz", partition)
    back = store.load(tmp_path / "p.npz", samples=240)
    assert np.array_equal(back.cluster, partition.cluster)
    assert list(back.clients) == [1, 2, 101]
    assert all(np.array_equal(back.clients[name], partition.clients[name]) for name in (1, 2, 101))
    assert back.meta == partition.meta == json.loads(json.dumps(partition.meta))


def test_load_says_what_is_wrong(tmp_path, partition):
    path = tmp_path / "p.npz"
    with pytest.raises(DataError, match="does not exist"):
        store.load(path)
    store.save(path, partition)
    with pytest.raises(DataError, match="splits 240 samples, but the data set has 241"):
        store.load(path, samples=241)
    for bad in (path.read_bytes()[:400], b"", b"hello"):
        path.write_bytes(bad)
        with pytest.raises(DataError, match="damaged"):
            store.load(path)
    np.savez(path, nothing=np.zeros(3))
    with pytest.raises(DataError, match="not a partition"):
        store.load(path)
    altered = partition.clients[1].copy()
    altered[0] += 1
    meta = np.frombuffer(json.dumps(partition.meta | {"format": FORMAT}).encode(), dtype=np.uint8)
    np.savez(path, cluster=partition.cluster, client_1=altered, meta=meta)
    with pytest.raises(DataError, match="was altered"):
        store.load(path)


def test_the_command_writes_a_partition_and_a_table(tmp_path):
    from replifed.data.table import Table, save

    X, y = blobs()
    meta = {"id": "toy", "kind": "surrogate", "stamp": "SURROGATE DATA", "content_sha256": "0" * 64}
    save(tmp_path / "toy.npz", Table(X, y, meta))
    chosen = {
        "seed": 1,
        "dataset": "toy",
        "partition": PLAN,
        "replicates": [1],
        "tuning": {"replicates": [101]},
    }
    out, table = tmp_path / "p.npz", tmp_path / "p.csv"
    partition_command("paper", "toy", chosen, tmp_path / "toy.npz", out, table)
    made = store.load(out, samples=240)
    assert list(made.clients) == [1, 101]
    assert made.meta["data"]["kind"] == "surrogate"
    header, *lines = table.read_text().splitlines()
    assert header.startswith("replicate,client,size,cluster_a,cluster_b,label_0")
    assert len(lines) == 2 * 12
    before = out.read_bytes(), table.read_bytes()
    partition_command("paper", "toy", chosen, tmp_path / "toy.npz", out, table)
    assert before == (out.read_bytes(), table.read_bytes())
    with pytest.raises(DataError, match="holds toy, but other is to split mnist"):
        partition_command("paper", "other", {**chosen, "dataset": "mnist"}, tmp_path / "toy.npz", out, table)
    chosen["partition"] = {**PLAN, "count": 300, "parts": 2}
    with pytest.raises(DataError, match="paper/toy, toy: 240 samples cannot form 300 clusters"):
        partition_command("paper", "toy", chosen, tmp_path / "toy.npz", out, table)
