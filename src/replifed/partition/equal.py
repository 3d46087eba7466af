"""Groups of equal size by constrained k-means (Bradley, Bennett, Demiriz 2000), one for each client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from replifed.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from scipy.sparse import csr_matrix

_STEPS = 100


def densest(X: csr_matrix, rows: int, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the `rows` rows and the `columns` columns with the most entries, in increasing order.

    Both are counted over the whole of `X`; of equally full ones the first are taken.
    """
    if rows > X.shape[0] or columns > X.shape[1]:
        raise DataError(f"{rows} x {columns} entries cannot be chosen from {X.shape[0]} x {X.shape[1]}")
    by_row, by_column = np.diff(X.indptr), np.bincount(X.indices, minlength=X.shape[1])
    chosen = (np.argsort(-counts, kind="stable")[:k] for counts, k in ((by_row, rows), (by_column, columns)))
    most_rows, most_columns = (np.sort(numbers) for numbers in chosen)
    return most_rows, most_columns


def equal_clusters(X: NDArray, count: int, seed: int) -> NDArray[np.int32]:
    """Split samples into clusters of equal size whose squared distances to their means are small.

    Parameters
    ----------
    X : array, shape (n, d)
    count : int
        Number of clusters, a divisor of n.
    seed : int
        Chooses the starting centres.

    Returns
    -------
    array of int32, shape (n,)

    Notes
    -----
    Source: `k_means_constrained.KMeansConstrained`; each assignment is a minimum-cost flow, solved exactly.
    """
    from k_means_constrained import KMeansConstrained
    from threadpoolctl import threadpool_limits

    size, left = divmod(len(X), count)
    if left or not size:
        raise DataError(f"{len(X)} samples cannot be split into {count} groups of equal size")
    model = KMeansConstrained(
        count, size_min=size, size_max=size, n_init=1, max_iter=_STEPS, random_state=seed, n_jobs=1
    )
    with threadpool_limits(1):
        return model.fit_predict(np.asarray(X, dtype=float)).astype(np.int32)


def cluster_table(X: NDArray, cluster: NDArray) -> DataFrame:
    """Describe clusters: their size, entries, and distances of their samples and of their mean.

    Returns
    -------
    DataFrame
        client; size; entries (non-zeros a sample); spread (mean squared distance of a sample to the
        cluster's mean); offset (squared distance of the cluster's mean to that of all samples).
    """
    import pandas as pd

    centre, rows = X.mean(axis=0), []
    for number in range(cluster.max() + 1):
        samples = X[cluster == number]
        mean = samples.mean(axis=0)
        rows.append(
            {
                "client": number,
                "size": len(samples),
                "entries": np.count_nonzero(samples) / len(samples),
                "spread": ((samples - mean) ** 2).sum(axis=1).mean(),
                "offset": ((mean - centre) ** 2).sum(),
            }
        )
    return pd.DataFrame(rows)
