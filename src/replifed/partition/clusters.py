"""Clusters of samples: by k-means or by label, to be cut into shards; or of equal size, one per client."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from replifed.errors import DataError
from replifed.partition.heterogeneity import is_regression

if TYPE_CHECKING:
    from pandas import DataFrame
    from scipy.sparse import csr_matrix

# Lloyd's iteration converges in 35 to 60 steps on tf-idf data; the limit is for other data.
_STEPS = 100


def kmeans_clusters(X: csr_matrix | NDArray, count: int, seed: int) -> NDArray[np.int32]:
    """Group samples (n, d) by Lloyd's k-means with Euclidean distances; `seed` chooses the starting centres.

    `X` is neither copied nor made dense; the centres are dense. Returns each sample's cluster (n,), 0 to
    count - 1 from the largest to the smallest. Source: `sklearn.cluster.KMeans`, with k-means++ starting
    centres. There is one start: on tf-idf data the inertias of several starts differ by less than half a
    percent, and each start on the largest data set takes tens of seconds. There is one thread, since the
    order in which threads sum a centre changes its last digits.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    samples = X.shape[0]
    if count > samples:
        raise DataError(f"{samples} samples cannot form {count} clusters; ask for fewer clusters")
    if not np.issubdtype(X.dtype, np.floating):
        X = X.astype(np.float32)
    model = KMeans(count, n_init=1, max_iter=_STEPS, random_state=seed, copy_x=isinstance(X, np.ndarray))
    with threadpool_limits(1), warnings.catch_warnings():
        # Too few distinct samples: reported below, as an error.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = model.fit_predict(X)
    sizes = np.bincount(labels, minlength=count)
    if not sizes.all():
        raise DataError(
            f"k-means found {np.count_nonzero(sizes)} clusters instead of {count}: too few samples differ; "
            "ask for fewer clusters"
        )
    rank = np.empty(count, dtype=np.int32)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(count)
    return rank[labels]


def label_clusters(y: NDArray, count: int) -> NDArray[np.int32]:
    """Return the rank of each sample's label (n,) among the labels in `y` (n,), which must be `count`."""
    if is_regression(y):
        raise DataError("samples with real-valued targets have no labels to group by; use k-means clusters")
    labels, cluster = np.unique(y, return_inverse=True)
    if len(labels) != count:
        raise DataError(
            f"the data have {len(labels)} labels, but the partition has {count} clusters; ask for as many"
        )
    return cluster.astype(np.int32)


def densest(X: csr_matrix, rows: int, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of the `rows` rows and `columns` columns with the most entries, in increasing order.

    Both are counted over the whole of `X`; ties go to the first.
    """
    if rows > X.shape[0] or columns > X.shape[1]:
        raise DataError(
            f"{rows} x {columns} entries cannot be chosen from {X.shape[0]} x {X.shape[1]}; ask for fewer"
        )

    def fullest(counts: NDArray, k: int) -> NDArray[np.int64]:
        return np.sort(np.argsort(-counts, kind="stable")[:k])

    return fullest(np.diff(X.indptr), rows), fullest(np.bincount(X.indices, minlength=X.shape[1]), columns)


def equal_clusters(X: NDArray, count: int, seed: int) -> NDArray[np.int32]:
    """Split samples (n, d) into `count` clusters of equal size by constrained k-means; (n,).

    `count` divides n; `seed` chooses the starting centres. Source: `k_means_constrained` (Bradley,
    Bennett, Demiriz 2000); each assignment is a minimum-cost flow, solved exactly.
    """
    from k_means_constrained import KMeansConstrained
    from threadpoolctl import threadpool_limits

    size = len(X) // count
    model = KMeansConstrained(
        count, size_min=size, size_max=size, n_init=1, max_iter=_STEPS, random_state=seed, n_jobs=1
    )
    with threadpool_limits(1):
        return model.fit_predict(np.asarray(X, dtype=float)).astype(np.int32)


def cluster_table(X: NDArray, cluster: NDArray) -> DataFrame:
    """Describe clusters, a row each: client; size; entries (non-zeros a sample); spread; offset.

    Spread is the mean squared distance of a sample to the cluster's mean, offset the squared distance of that
    mean to the mean of all samples.
    """
    import pandas as pd

    centre, rows = X.mean(axis=0), []
    for number in range(cluster.max() + 1):
        samples = X[cluster == number]
        mean = samples.mean(axis=0)
        entries = np.count_nonzero(samples) / len(samples)
        spread, offset = ((samples - mean) ** 2).sum(axis=1).mean(), ((mean - centre) ** 2).sum()
        rows.append((number, len(samples), entries, spread, offset))
    return pd.DataFrame(rows, columns=["client", "size", "entries", "spread", "offset"])
