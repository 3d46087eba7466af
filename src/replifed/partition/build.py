"""Partitions of samples between clients: by clusters cut into shards, which are assigned anew in each
replicate, by rules of the literature, or by the clients that the data name.

Source of the shards: the partition of Tong et al., Algorithms 2022, 15(9), 319, Section 5.2, with 10
clusters, each split evenly into 20 parts; each client gets one part of each of two clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from replifed.data.table import load
from replifed.errors import ConfigError, DataError, unknown_name
from replifed.partition import clusters
from replifed.partition.heterogeneity import client_table, label_groups
from replifed.partition.rules import RULES, split
from replifed.partition.store import Partition, save
from replifed.randomness import generator
from replifed.store.atomic import write_text

if TYPE_CHECKING:
    from pandas import DataFrame

# Maximum number of random assignments. Only clusters with fewer samples than parts need more than one.
_ATTEMPTS = 100


def partition(
    paper: str, experiment: str, settings: Mapping[str, Any], data: Path, out: Path, table: Path
) -> None:
    """Split a parsed data set between clients; writes the partition, an ``.npz``, and a CSV of all clients.

    Settings are seed; dataset, the id that the data must have; partition, see `build`; replicates; and
    optionally tuning.replicates, which get partitions, too.
    """
    samples = load(data)
    if samples.meta["id"] != settings["dataset"]:
        raise DataError(
            f"{data} holds {samples.meta['id']}, but {experiment} is to split {settings['dataset']}"
        )
    replicates = [*settings["replicates"], *settings.get("tuning", {}).get("replicates", ())]
    try:
        built, frame = build(
            samples.X, samples.y, settings["partition"], replicates, settings["seed"], samples.client
        )
    except DataError as error:
        raise DataError(f"{paper}/{experiment}, {samples.meta['id']}: {error}") from error
    if settings["partition"]["clusters"] == "given" and "clients" in samples.meta:
        frame.insert(2, "name", [samples.meta["clients"][number] for number in frame["client"]])
    source = {key: samples.meta[key] for key in ("id", "kind", "stamp", "content_sha256")}
    meta = {**built.meta, "paper": paper, "experiment": experiment, "data": source}
    save(out, Partition(built.cluster, built.clients, meta))
    write_text(table, frame.to_csv(index=False, lineterminator="\n", float_format="%.12g"))


def build(
    X: Any,
    y: NDArray,
    settings: Mapping[str, Any],
    replicates: Sequence[int],
    seed: int,
    given: NDArray | None = None,
) -> tuple[Partition, DataFrame]:
    """Split samples `X` (n, d), sparse or not, with integer labels or real targets `y` (n,) between clients.

    The setting `clusters` selects one of four kinds of partition:

    * "kmeans" or "labels": clusters are cut into shards. Further settings are count (of clusters), parts
      (shards per cluster) and shards_per_client (of different clusters).
    * "equal_kmeans": each cluster is a client, the same in all replicates. Settings are count, rows, columns
      and choice: the densest columns of a sparse `X`, and its densest or random rows, are clustered; other
      samples have client -1.
    * "given": the clients of the data set, `given` (n,), or so many `clients` of them, drawn in each
      replicate; samples of the others have client -1.
    * a name in `rules.RULES`, with the settings of `rules.split`; the clusters are then the labels.

    Clusters are the same in all `replicates` (names); shards are cut and assigned independently in each.
    The table has a row for each replicate and client: replicate, and the columns of `client_table` or
    `cluster_table`.
    """
    import pandas as pd

    criterion, count = settings["clusters"], settings.get("count", 0)
    meta: dict[str, Any] = {"settings": dict(settings), "seed": seed, "replicates": [*replicates]}
    start = int(generator(seed, 0, None, "clusters").integers(2**31))
    if criterion == "equal_kmeans":
        rows, columns = clusters.densest(X, settings["rows"], settings["columns"])
        if settings["choice"] == "random":
            order = generator(seed, 0, None, "rows").permutation(X.shape[0])
            rows = np.sort(order[: settings["rows"]])
        meta["columns"] = columns.tolist()
        dense = X[rows][:, columns].toarray()
        cluster = np.full(X.shape[0], -1, dtype=np.int32)
        cluster[rows] = clusters.equal_clusters(dense, count, start)
        clients = dict.fromkeys(replicates, cluster)
        tables = dict.fromkeys(replicates, clusters.cluster_table(dense, cluster[rows]))
    elif criterion == "given":
        if given is None:
            raise DataError("it does not say which client has which sample; choose another partition")
        cluster = given.astype(np.int32)
        if "clients" not in settings:
            clients = dict.fromkeys(replicates, cluster)
            tables = dict.fromkeys(replicates, client_table(cluster, np.zeros_like(cluster), y, 0))
        else:
            clients, tables = {}, {}
            for replicate in replicates:
                rng = generator(seed, replicate, None, "partition")
                clients[replicate] = client = _some(cluster, settings["clients"], rng)
                kept = client >= 0
                names, number = np.unique(client[kept], return_inverse=True)
                table = client_table(number, np.zeros(kept.sum(), np.int32), y[kept], 0)
                tables[replicate] = table.assign(client=names)
    elif criterion in ("kmeans", "labels"):
        by_label = criterion == "labels"
        cluster = clusters.label_clusters(y, count) if by_label else clusters.kmeans_clusters(X, count, start)
        shards, clients, tables = settings["shards_per_client"], {}, {}
        for replicate in replicates:
            rng = generator(seed, replicate, None, "partition")
            clients[replicate] = assign_clients(cluster, settings["parts"], shards, rng)
            tables[replicate] = client_table(clients[replicate], cluster, y, shards)
    elif criterion in RULES:
        cluster, clients, tables = label_groups(y)[1].astype(np.int32), {}, {}
        for replicate in replicates:
            clients[replicate] = client = split(y, settings, generator(seed, replicate, None, "partition"))
            kept = client >= 0
            tables[replicate] = client_table(client[kept], np.zeros(kept.sum(), np.int32), y[kept], 0)
    else:
        known = ("kmeans", "labels", "equal_kmeans", "given", *RULES)
        raise ConfigError(unknown_name("kind of clusters", criterion, known))
    table = pd.concat([rows.assign(replicate=name) for name, rows in tables.items()], ignore_index=True)
    return Partition(cluster, clients, meta), table[["replicate", *table.columns.drop("replicate")]]


def _some(given: NDArray, count: int, rng: Generator) -> NDArray[np.int32]:
    """Draw clients, and return the client of each sample (n,), -1 for those of the others."""
    names = np.unique(given)
    if count > len(names):
        raise DataError(f"it names {len(names)} clients, not {count}; ask for fewer")
    return np.where(np.isin(given, rng.permutation(names)[:count]), given, -1).astype(np.int32)


def split_shards(cluster: NDArray, parts: int, rng: Generator) -> NDArray[np.int32]:
    """Cut each cluster at random into `parts` shards whose sizes differ by at most one.

    `cluster` (n,) is the cluster of each sample, from 0, and the result (n,) its shard. Shard s belongs to
    cluster ``s // parts``; a cluster of fewer than `parts` samples has empty shards.
    """
    shard = np.empty(len(cluster), dtype=np.int32)
    for c in range(int(cluster.max()) + 1):
        members = rng.permutation(np.flatnonzero(cluster == c))
        shard[members] = c * parts + np.arange(len(members)) % parts
    return shard


def assign_shards(
    cluster: NDArray, size: NDArray, shards_per_client: int, rng: Generator
) -> NDArray[np.int32]:
    """Assign every shard to one client, so that no client has two shards of one cluster, or no sample.

    The shards are shuffled and assigned; then, while a client violates this, one of its shards is swapped
    with a shard of another client, in random order, such that fewer violations remain. Without empty shards
    such a swap always exists; with empty shards it may not, and then another assignment is tried.

    `cluster` (S,) is the cluster of each shard, with equally many shards of each, and `size` (S,) the number
    of samples of a shard.
    Returns the client of each shard (S,), 0 to S / shards_per_client - 1.
    """
    shards, clusters_present = len(cluster), len(np.unique(cluster))
    if shards_per_client > clusters_present:
        raise ConfigError(
            f"a client cannot have shards of {shards_per_client} different clusters out of "
            f"{clusters_present}; ask for fewer shards a client"
        )
    clients = shards // shards_per_client
    filled = np.count_nonzero(size)
    if filled >= clients:
        for _ in range(_ATTEMPTS):
            of_client = rng.permutation(shards).reshape(clients, shards_per_client)
            if _repair(of_client, cluster, size, rng):
                owner = np.empty(shards, dtype=np.int32)
                owner[of_client] = np.arange(clients)[:, None]
                return owner
    raise DataError(
        f"the clusters are too small: {shards - filled} of {shards} shards have no sample, so that not "
        f"all of {clients} clients get one; use fewer parts or other clusters"
    )


def assign_clients(cluster: NDArray, parts: int, shards_per_client: int, rng: Generator) -> NDArray[np.int32]:
    """Cut clusters into shards, assign the shards to clients, and return the client of each sample (n,).

    `cluster` (n,) contains every number from 0 to its maximum. There are
    ``clusters * parts / shards_per_client`` clients.
    """
    shards = (int(np.max(cluster)) + 1) * parts
    shard = split_shards(cluster, parts, rng)
    size = np.bincount(shard, minlength=shards)
    return assign_shards(np.arange(shards) // parts, size, shards_per_client, rng)[shard]


def _repair(of_client: NDArray, cluster: NDArray, size: NDArray, rng: Generator) -> bool:
    """Swap shards between clients, in `of_client` (clients, shards of each), until none has violations.

    Returns False if they cannot all be resolved.
    """

    def violations(shards: NDArray) -> int:
        return len(shards) - len(set(cluster[shards].tolist())) + int(not size[shards].any())

    counts = np.array([violations(shards) for shards in of_client])

    def improved(i: int) -> bool:
        """Swap shards of client i and another client for fewer violations; return False if none helps."""
        for j in rng.permutation(len(of_client)):
            for a, b in np.ndindex(of_client.shape[1], of_client.shape[1]) if j != i else ():
                of_client[i, a], of_client[j, b] = of_client[j, b], of_client[i, a]
                swapped = violations(of_client[i]), violations(of_client[j])
                if sum(swapped) < counts[i] + counts[j]:
                    counts[i], counts[j] = swapped
                    return True
                of_client[i, a], of_client[j, b] = of_client[j, b], of_client[i, a]
        return False

    # Every swap lowers the number of violations, so that this ends.
    while counts.any():
        if not any(improved(int(i)) for i in np.flatnonzero(counts)):
            return False
    return True
