"""Heterogeneity of a partition's clients, in size and in the distribution of labels.

Samples have integer labels or real targets `y` (n,); targets are grouped into ten bins between their pooled
deciles. `client` and `cluster` are the client and cluster of each sample, integers (n,).
"""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from replifed.randomness import generator

if TYPE_CHECKING:
    from pandas import DataFrame

_BINS = 10


def is_regression(y: NDArray) -> bool:
    """Return True if `y` holds real-valued targets, and False for integer labels."""
    return np.issubdtype(np.asarray(y).dtype, np.floating)


def label_groups(y: NDArray) -> tuple[list[str], NDArray[np.int64]]:
    """Return the labels in order, or "tenth 1" (lowest) to "tenth 10", and their index by sample, (n,)."""
    if not is_regression(y):
        labels, group = np.unique(y, return_inverse=True)
        return [str(label) for label in labels.tolist()], group
    inner = np.quantile(y, np.arange(1, _BINS) / _BINS)
    return [f"tenth {k}" for k in range(1, _BINS + 1)], np.searchsorted(inner, y, side="right")


def group_counts(client: NDArray, group: NDArray) -> NDArray[np.int64]:
    """Return the number of samples of each client and group, (clients, groups)."""
    counts = np.zeros((np.max(client) + 1, np.max(group) + 1), dtype=np.int64)
    np.add.at(counts, (client, group), 1)
    return counts


def pooled_distances(counts: NDArray) -> NDArray[np.float64]:
    """Return the total-variation distance of each client's distribution to the pooled one.

    That is ``1/2 sum_k |p_ik - p_k|``, for `counts` (clients, groups) without zero rows.
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(axis=1) / 2


def client_table(client: NDArray, cluster: NDArray, y: NDArray, shards: int = 2) -> DataFrame:
    """Describe each client of one replicate, with samples of at most `shards` clusters, a row each.

    Columns are client; size; cluster_a, cluster_b, ...: the clusters of its samples in increasing order,
    missing where a shard was empty; label_<label>: its number of samples with that label, or target_mean and
    target_std (of the population).
    """
    import pandas as pd

    in_cluster = group_counts(client, cluster)
    size = in_cluster.sum(axis=1)
    columns: dict[str, object] = {"client": np.arange(len(size)), "size": size}
    present = [[*np.flatnonzero(row).tolist(), *[None] * shards] for row in in_cluster]
    for k in range(shards):
        columns[f"cluster_{ascii_lowercase[k]}"] = pd.array([row[k] for row in present], dtype="Int64")
    if is_regression(y):
        mean = np.bincount(client, weights=y) / size
        columns["target_mean"] = mean
        columns["target_std"] = np.sqrt(np.bincount(client, weights=(y - mean[client]) ** 2) / size)
    else:
        names, group = label_groups(y)
        columns |= {f"label_{name}": n for name, n in zip(names, group_counts(client, group).T, strict=True)}
    return pd.DataFrame(columns)


def summary(client: NDArray, y: NDArray) -> dict[str, float]:
    """Summarise the heterogeneity of the clients of one replicate.

    clients; size_min, size_median, size_max; size_max_over_mean; size_variation: standard deviation over
    mean; effective_clients: ``1 / sum_i (n_i / n)^2``, the number of equally large clients whose mean has the
    same variance; label_distance: mean over clients of `pooled_distances`; label_distance_random: its value
    for shuffled labels, the level of finite clients without heterogeneity.
    """
    size = np.bincount(client)
    group = label_groups(y)[1]
    shuffled = generator(0, 0, None, "heterogeneity").permutation(group)
    return {
        "clients": len(size),
        "size_min": int(size.min()),
        "size_median": float(np.median(size)),
        "size_max": int(size.max()),
        "size_max_over_mean": float(size.max() / size.mean()),
        "size_variation": float(size.std() / size.mean()),
        "effective_clients": float(size.sum() ** 2 / np.sum(size.astype(float) ** 2)),
        "label_distance": float(pooled_distances(group_counts(client, group)).mean()),
        "label_distance_random": float(pooled_distances(group_counts(client, shuffled)).mean()),
    }
