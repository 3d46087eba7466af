"""From samples to clients: clusters once, shards dealt anew for each replicate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from replifed.errors import ConfigError, unknown_name
from replifed.partition.clusters import kmeans_clusters, label_clusters
from replifed.partition.heterogeneity import client_table
from replifed.partition.shards import deal_clients
from replifed.partition.store import Partition
from replifed.randomness import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from scipy.sparse import csr_matrix

CLUSTERS = ("kmeans", "labels")


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
        into), shards_per_client (of different clusters).
    replicates : iterable of int
        Names of the replicates. The clusters are the same in all; the shards are cut and dealt anew
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
    if settings["clusters"] == "labels":
        cluster = label_clusters(y, settings["count"])
    else:
        start = int(generator(seed, 0, None, "clusters").integers(2**31))
        cluster = kmeans_clusters(X, settings["count"], start)
    hand = settings["shards_per_client"]
    clients: dict[int, NDArray[np.int32]] = {}
    tables = []
    for replicate in dict.fromkeys(replicates):
        rng = generator(seed, replicate, None, "partition")
        clients[replicate] = deal_clients(cluster, settings["parts"], hand, rng)
        table = client_table(clients[replicate], cluster, y, hand)
        table.insert(0, "replicate", replicate)
        tables.append(table)
    if not tables:
        raise ConfigError("a partition needs at least one replicate")
    meta = {"settings": dict(settings), "seed": seed, "replicates": list(clients)}
    return Partition(cluster, clients, meta), pd.concat(tables, ignore_index=True)
