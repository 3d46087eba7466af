"""A data set's own test set, with the features of the samples that are trained on."""

from __future__ import annotations

import numpy as np

from replifed.data.parse import meta_of
from replifed.data.table import Table
from replifed.errors import DataError


def aligned(test: Table, like: Table, path: str) -> Table:
    """Return a test set with the columns of `like`, the samples to train on; `path` names it in errors.

    Columns go by their names, if they have any, and else by their places. Those of categories may be missing,
    since no test sample has them, and so may the last ones that have no names: they are zeros there.

    Raises
    ------
    DataError
        It has other features.
    """
    from scipy.sparse import csr_matrix

    columns, known = test.meta.get("columns"), like.meta.get("columns")
    n, d = test.X.shape[0], like.X.shape[1]
    if columns is None or known is None:
        if test.X.shape[1] > d:
            raise DataError(f"{path}: {test.X.shape[1]} features; the samples to train on have {d}")
        places = np.arange(test.X.shape[1])
    else:
        if other := [name for name in columns if name not in known]:
            raise DataError(f"{path}: the feature {other[0]} is none of the samples to train on")
        if missing := [name for name in known if name not in columns and "=" not in name]:
            raise DataError(f"{path}: the feature {missing[0]} of the samples to train on is missing")
        places = np.array([known.index(name) for name in columns])
    X = csr_matrix(test.X)
    X = csr_matrix((X.data, places[X.indices], X.indptr), (n, d))
    X.sort_indices()
    old, names = test.meta, {} if known is None else {"columns": known}
    meta = meta_of(old["id"], old["task"], old["form"], old["kind"], old["stamp"], X, test.y)
    return Table(X, test.y, {**old, **meta, **names}, test.client)
