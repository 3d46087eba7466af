"""How unequal the clients of a partition are, in size and in what they hold.

Targets that are real numbers are compared through the ten bins between their pooled deciles.
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
    """Whether `y` holds real-valued targets; parsed tables have integer labels otherwise."""
    return np.issubdtype(np.asarray(y).dtype, np.floating)


def label_groups(y: NDArray) -> tuple[list[str], NDArray[np.int64]]:
    """Name the labels, or the decile bins of real-valued targets, and say which each sample has.

    Parameters
    ----------
    y : array, shape (n,)
        Integer labels or real targets.

    Returns
    -------
    names : list of str, length k
        Labels in increasing order, or "tenth 1" (lowest) to "tenth 10".
    group : array of int, shape (n,)
    """
    y = np.asarray(y)
    if not is_regression(y):
        labels, group = np.unique(y, return_inverse=True)
        return [str(label) for label in labels.tolist()], group
    inner = np.quantile(y, np.arange(1, _BINS) / _BINS)
    return [f"tenth {k}" for k in range(1, _BINS + 1)], np.searchsorted(inner, y, side="right")


def group_counts(client: NDArray, group: NDArray) -> NDArray[np.int64]:
    """Count each client's samples of each group.

    Parameters
    ----------
    client, group : array of int, shape (n,)
        Client and group (label, bin or cluster) of each sample, from 0.

    Returns
    -------
    array of int, shape (clients, groups)
    """
    shape = int(np.max(client)) + 1, int(np.max(group)) + 1
    flat = np.asarray(client, dtype=np.int64) * shape[1] + group
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)


def pooled_distances(counts: NDArray) -> NDArray[np.float64]:
    """Total-variation distance of each client's distribution to the pooled one.

    Parameters
    ----------
    counts : array of int, shape (clients, groups)
        No row may be all zero.

    Returns
    -------
    array, shape (clients,)
        ``1/2 sum_k |p_ik - p_k|``, between 0 and 1.
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(axis=1) / 2


def client_table(client: NDArray, cluster: NDArray, y: NDArray, hand: int = 2) -> DataFrame:
    """Describe each client of one replicate.

    Parameters
    ----------
    client, cluster : array of int, shape (n,)
        Client and cluster of each sample.
    y : array, shape (n,)
        Integer labels or real targets.
    hand : int
        The largest number of clusters that a client draws from.

    Returns
    -------
    DataFrame, one row a client
        client; size; cluster_a, cluster_b, ...: the clusters of its samples in increasing order,
        missing where a shard was empty; label_<label>: its number of samples with that label, or
        target_mean and target_std (of the population).
    """
    import pandas as pd

    in_cluster = group_counts(client, cluster)
    size = in_cluster.sum(axis=1)
    columns: dict[str, object] = {"client": np.arange(len(size)), "size": size}
    clusters = np.full((len(size), hand), -1)
    for i, row in enumerate(in_cluster):
        present = np.flatnonzero(row)
        clusters[i, : len(present)] = present
    for k in range(hand):
        drawn = pd.array(clusters[:, k], dtype="Int64")
        drawn[clusters[:, k] < 0] = pd.NA
        columns[f"cluster_{ascii_lowercase[k]}"] = drawn
    if is_regression(y):
        mean = np.bincount(client, weights=y) / size
        columns["target_mean"] = mean
        columns["target_std"] = np.sqrt(np.bincount(client, weights=(y - mean[client]) ** 2) / size)
    else:
        names, group = label_groups(y)
        columns |= {f"label_{name}": n for name, n in zip(names, group_counts(client, group).T, strict=True)}
    return pd.DataFrame(columns)


def summary(client: NDArray, y: NDArray) -> dict[str, float]:
    """Sum up how unequal the clients of one replicate are.

    Parameters
    ----------
    client : array of int, shape (n,)
    y : array, shape (n,)
        Integer labels or real targets.

    Returns
    -------
    dict
        clients; size_min, size_median, size_max; size_max_over_mean; size_variation: standard deviation
        over mean; effective_clients: ``1 / sum_i (n_i / n)^2``, the number of equal clients that would
        average as well; label_distance: mean over clients of `pooled_distances`;
        label_distance_random: the same after the labels were shuffled, which is what finite clients
        show when there is no heterogeneity at all.
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
