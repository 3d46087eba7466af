"""From samples to clients: clusters once, shards assigned anew for each replicate."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.data.table import load
from replifed.errors import ConfigError, DataError, unknown_name
from replifed.partition.clusters import (
    cluster_table,
    densest,
    equal_clusters,
    kmeans_clusters,
    label_clusters,
)
from replifed.partition.heterogeneity import client_table
from replifed.partition.shards import deal_clients
from replifed.partition.store import Partition, save
from replifed.randomness import generator
from replifed.store.atomic import write_text

if TYPE_CHECKING:
    from pandas import DataFrame

CLUSTERS = ("kmeans", "labels", "equal_kmeans")


def partition(
    paper: str,
    experiment: str,
    settings: Mapping[str, Any],
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    table: str | os.PathLike[str],
) -> None:
    """Split a parsed data set between clients, as the command line does.

    Parameters
    ----------
    paper, experiment : whose partition it is; recorded in the file.
    settings : seed; dataset, the id that the data must have; partition, see `build`; replicates, and
        optionally tuning.replicates, which are partitioned as well.
    data : path of the parsed data set.
    out : path of the partition to write, an ``.npz``.
    table : path of the CSV of all clients to write.
    """
    samples = load(data)
    if samples.meta["id"] != settings["dataset"]:
        raise DataError(
            f"{data} holds {samples.meta['id']}, but {experiment} is to split {settings['dataset']}"
        )
    replicates = [*settings["replicates"], *settings.get("tuning", {}).get("replicates", ())]
    try:
        made, frame = build(samples.X, samples.y, settings["partition"], replicates, settings["seed"])
    except DataError as error:
        raise DataError(f"{paper}/{experiment}, {samples.meta['id']}: {error}") from error
    source = {key: samples.meta[key] for key in ("id", "kind", "stamp", "content_sha256")}
    meta = {**made.meta, "paper": paper, "experiment": experiment, "data": source}
    save(out, Partition(made.cluster, made.clients, meta))
    write_text(table, frame.to_csv(index=False, lineterminator="\n", float_format="%.12g"))


def build(
    X: Any, y: NDArray, settings: Mapping[str, Any], replicates: Iterable[int], seed: int
) -> tuple[Partition, DataFrame]:
    """Split samples `X` (n, d), sparse or not, with integer labels or real targets `y` (n,) between clients.

    Settings are clusters ("kmeans" or "labels"), count (of clusters), parts (shards that each cluster is cut
    into), shards_per_client (of different clusters). Or clusters "equal_kmeans", count, rows, columns,
    choice: the fullest columns of a sparse `X` and its fullest rows, or random ones, are clustered, and each
    cluster is a client, the same in all replicates; samples left out are those of client -1.

    The clusters are the same in all `replicates` (names); shards are cut and assigned anew in each, whatever
    the others are. The table has one row a replicate and client: replicate, and the columns of `client_table`
    or `cluster_table`.
    """
    import pandas as pd

    kind, count = settings["clusters"], settings["count"]
    if kind not in CLUSTERS:
        raise ConfigError(unknown_name("kind of clusters", kind, CLUSTERS))
    replicates = list(dict.fromkeys(replicates))
    if not replicates:
        raise ConfigError("a partition needs at least one replicate")
    meta: dict[str, Any] = {"settings": dict(settings), "seed": seed, "replicates": replicates}
    start = int(generator(seed, 0, None, "clusters").integers(2**31))
    if kind == "equal_kmeans":
        rows, columns = densest(X, settings["rows"], settings["columns"])
        if settings["choice"] == "random":
            drawn = generator(seed, 0, None, "rows").permutation(X.shape[0])
            rows = np.sort(drawn[: settings["rows"]])
        meta["columns"] = columns.tolist()
        chosen = X[rows][:, columns].toarray()
        cluster = np.full(X.shape[0], -1, dtype=np.int32)
        cluster[rows] = equal_clusters(chosen, count, start)
        clients = dict.fromkeys(replicates, cluster)
        tables = dict.fromkeys(replicates, cluster_table(chosen, cluster[rows]))
    else:
        cluster = label_clusters(y, count) if kind == "labels" else kmeans_clusters(X, count, start)
        hand, clients, tables = settings["shards_per_client"], {}, {}
        for replicate in replicates:
            rng = generator(seed, replicate, None, "partition")
            clients[replicate] = deal_clients(cluster, settings["parts"], hand, rng)
            tables[replicate] = client_table(clients[replicate], cluster, y, hand)
    table = pd.concat([one.assign(replicate=name) for name, one in tables.items()], ignore_index=True)
    return Partition(cluster, clients, meta), table[["replicate", *table.columns.drop("replicate")]]
