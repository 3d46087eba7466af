"""From samples to clients: clusters once, shards assigned anew for each replicate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from replifed.errors import ConfigError, unknown_name
from replifed.partition.clusters import kmeans_clusters, label_clusters
from replifed.partition.equal import cluster_table, densest, equal_clusters
from replifed.partition.heterogeneity import client_table
from replifed.partition.shards import deal_clients
from replifed.partition.store import Partition
from replifed.randomness import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from scipy.sparse import csr_matrix

CLUSTERS = ("kmeans", "labels", "equal_kmeans")


def build(
    X: csr_matrix | NDArray, y: NDArray, settings: Mapping[str, Any], replicates: Iterable[int], seed: int
) -> tuple[Partition, DataFrame]:
    """Split a data set between clients.

    Parameters
    ----------
    X : csr_matrix or array, shape (n, d)
    y : array, shape (n,)
        Integer labels or real targets.
    settings : mapping
        clusters ("kmeans" or "labels"), count (of clusters), parts (shards that each cluster is cut
        into), shards_per_client (of different clusters). Or clusters "equal_kmeans", count, rows, columns:
        the fullest rows and columns of a sparse `X` are clustered, and each cluster is a client, the same
        in all replicates; samples left out are those of client -1.
    replicates : iterable of int
        Names of the replicates. The clusters are the same in all; the shards are cut and assigned anew
        in each, whatever the others are.
    seed : int

    Returns
    -------
    partition : Partition
    table : DataFrame
        One row a replicate and client: replicate, and the columns of `client_table`.
    """
    import pandas as pd

    if settings["clusters"] not in CLUSTERS:
        raise ConfigError(unknown_name("kind of clusters", settings["clusters"], CLUSTERS))
    replicates = list(dict.fromkeys(replicates))
    if not replicates:
        raise ConfigError("a partition needs at least one replicate")
    if settings["clusters"] == "equal_kmeans":
        return _build_equal(X, settings, replicates, seed)
    if settings["clusters"] == "labels":
        cluster = label_clusters(y, settings["count"])
    else:
        start = int(generator(seed, 0, None, "clusters").integers(2**31))
        cluster = kmeans_clusters(X, settings["count"], start)
    hand = settings["shards_per_client"]
    clients: dict[int, NDArray[np.int32]] = {}
    tables = []
    for replicate in replicates:
        rng = generator(seed, replicate, None, "partition")
        clients[replicate] = deal_clients(cluster, settings["parts"], hand, rng)
        table = client_table(clients[replicate], cluster, y, hand)
        table.insert(0, "replicate", replicate)
        tables.append(table)
    meta = {"settings": dict(settings), "seed": seed, "replicates": list(clients)}
    return Partition(cluster, clients, meta), pd.concat(tables, ignore_index=True)


def _build_equal(
    X: csr_matrix, settings: Mapping[str, Any], replicates: list[int], seed: int
) -> tuple[Partition, DataFrame]:
    import pandas as pd

    rows, columns = densest(X, settings["rows"], settings["columns"])
    chosen = X[rows][:, columns].toarray()
    start = int(generator(seed, 0, None, "clusters").integers(2**31))
    labels = equal_clusters(chosen, settings["count"], start)
    cluster = np.full(X.shape[0], -1, dtype=np.int32)
    cluster[rows] = labels
    table = cluster_table(chosen, labels)
    tables = [table.assign(replicate=replicate) for replicate in replicates]
    meta = {
        "settings": dict(settings),
        "seed": seed,
        "replicates": replicates,
        "columns": [int(column) for column in columns],
    }
    frame = pd.concat(tables, ignore_index=True)
    return Partition(cluster, dict.fromkeys(replicates, cluster), meta), frame[["replicate", *table.columns]]
