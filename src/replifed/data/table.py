"""A parsed table: in memory, on disk, and the hash of what it says.

The hash covers canonical little-endian arrays, so that two files with the same numbers, written or
packed differently, agree: for a sparse table the shape, `indptr` (int64), `indices` (int32), `data`
(float64), with each row's columns in order and no explicit zero; for a dense table the shape, the
element type and the elements row by row; then the labels (float64).
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from replifed.errors import DataError
from replifed.store import FORMAT, check_format
from replifed.store.npz import read_npz, write_npz

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Table:
    """One data set in memory.

    Parameters
    ----------
    X : csr_matrix of float64, or array, shape (rows, features)
        One sample a row.
    y : array, shape (rows,)
        Float targets, or integer labels.
    meta : dict
        id, task, form, kind, stamp, counts and content_sha256 of what is held.
    """

    X: csr_matrix | NDArray
    y: NDArray
    meta: dict[str, Any]


def canonical(X: csr_matrix) -> csr_matrix:
    """Sort each row's columns, drop explicit zeros and narrow the indices, in place; return `X`."""
    X.sort_indices()
    X.eliminate_zeros()
    if max(X.nnz, *X.shape) < 2**31:
        X.indices = X.indices.astype(np.int32, copy=False)
        X.indptr = X.indptr.astype(np.int32, copy=False)
    return X


def content_sha256(X: csr_matrix | NDArray, y: NDArray) -> str:
    """Return the hash of a `canonical` sparse table or of an array, and of its labels."""
    digest = hashlib.sha256()
    digest.update(np.asarray(X.shape, dtype="<i8").tobytes())
    if isinstance(X, np.ndarray):
        little = X.astype(X.dtype.newbyteorder("<"), order="C", copy=False)
        digest.update(little.dtype.str.encode())
        digest.update(little.reshape(-1).data)
    else:
        for array, dtype in ((X.indptr, "<i8"), (X.indices, "<i4"), (X.data, "<f8")):
            digest.update(np.ascontiguousarray(array, dtype=dtype).data)
    digest.update(np.asarray(y, dtype="<f8").tobytes())
    return digest.hexdigest()


def save(path: str | os.PathLike[str], table: Table) -> None:
    """Write a table as an ``.npz`` whose bytes depend on nothing but the table, whole or not at all."""
    meta = json.dumps({**table.meta, "format": FORMAT}, sort_keys=True, allow_nan=False)
    arrays = {"meta": np.frombuffer(meta.encode("utf-8"), dtype=np.uint8), "y": table.y}
    if isinstance(table.X, np.ndarray):
        arrays["X"] = table.X
    else:
        arrays["shape"] = np.asarray(table.X.shape, dtype=np.int64)
        arrays |= {name: getattr(table.X, name) for name in ("data", "indices", "indptr")}
    write_npz(path, arrays)


def load(path: str | os.PathLike[str]) -> Table:
    """Read a table that `save` wrote; `X` is a CSR matrix or an array."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path} does not exist; make it with `replifed data parse`")
    try:
        arrays = read_npz(path)
        meta = json.loads(arrays["meta"].tobytes().decode("utf-8"))
        check_format(path, meta.pop("format", None))
        y = arrays["y"]
        if "X" in arrays:
            return Table(arrays["X"], y, meta)
        from scipy.sparse import csr_matrix

        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        return Table(csr_matrix(parts, shape=tuple(arrays["shape"])), y, meta)
    except (ValueError, KeyError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is damaged or not a table of this package ({error}); delete it") from error
