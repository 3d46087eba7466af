"""Groups of samples that the clients' shards are cut from: by k-means, or by label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from replifed.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

# One start: on tf-idf data the starts' inertias differ by less than half a percent, no partition is
# the right one, and each start on the largest data set costs tens of seconds.
_STARTS = 1
# Lloyd's iteration ends by itself after 35 to 60 steps on tf-idf data; the limit is for the rest.
_STEPS = 100


def kmeans_clusters(X: csr_matrix | NDArray, count: int, seed: int) -> NDArray[np.int32]:
    """Group the samples by Lloyd's k-means with Euclidean distances.

    Parameters
    ----------
    X : csr_matrix or array, shape (n, d)
        The samples. A sparse matrix is neither copied nor made dense.
    count : int
        Number of clusters.
    seed : int
        Chooses the starting centres.

    Returns
    -------
    array of int32, shape (n,)
        Cluster of each sample, 0 to count - 1 from the largest cluster to the smallest.

    Notes
    -----
    Runs on one thread whatever the environment says, since the order in which threads add up their
    parts of a centre changes its last digits. The centres are dense, ``8 count d`` bytes a copy.
    Source: `sklearn.cluster.KMeans`, with k-means++ starting centres.
    """
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    samples = X.shape[0]
    if count > samples:
        raise DataError(f"{samples} samples cannot form {count} clusters; ask for fewer clusters")
    if not np.issubdtype(X.dtype, np.floating):
        X = X.astype(np.float32)
    model = KMeans(
        count, n_init=_STARTS, max_iter=_STEPS, random_state=seed, copy_x=isinstance(X, np.ndarray)
    )
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
    """Group the samples by label.

    Parameters
    ----------
    y : array of int, shape (n,)
        Class labels.
    count : int
        The number of classes there must be.

    Returns
    -------
    array of int32, shape (n,)
        Rank of each sample's label among the labels, 0 to count - 1.
    """
    if np.issubdtype(np.asarray(y).dtype, np.floating):
        raise DataError("samples with real-valued targets have no labels to group by; use k-means clusters")
    labels, cluster = np.unique(y, return_inverse=True)
    if len(labels) != count:
        raise DataError(f"the data have {len(labels)} labels, but the partition asks for {count} clusters")
    return cluster.astype(np.int32)
