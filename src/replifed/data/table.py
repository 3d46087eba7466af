"""A parsed table: in memory, on disk, and the hash of its content.

The hash covers canonical little-endian arrays, so that two files with the same numbers, but written or
compressed differently, agree. They are, for a sparse table, the shape, `indptr` (int64), `indices` (int32),
`data` (float64), with each row's columns in order and no explicit zero; for a dense table, the shape, the
element type and the elements row by row; and in both cases the labels (float64).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.store.limits import check
from replifed.store.npz import read_described, write_described

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_SPARSE = ("data", "indices", "indptr")


@dataclass(frozen=True)
class Table:
    """One data set in memory, one sample a row."""

    X: csr_matrix | NDArray  # (rows, features); a sparse one of float64
    y: NDArray  # (rows,), float targets or integer labels
    meta: dict[str, Any]  # id, task, form, kind, stamp, counts and content_sha256
    client: NDArray | None = None  # of each sample, if the data set has them


def canonical(X: csr_matrix) -> csr_matrix:
    """Sort each row's columns, add up doubled entries, drop zeros, narrow the indices; return `X`."""
    X.sum_duplicates()
    X.eliminate_zeros()
    if max(X.nnz, *X.shape) < 2**31:
        X.indices = X.indices.astype(np.int32, copy=False)
        X.indptr = X.indptr.astype(np.int32, copy=False)
    return X


class Stack:
    """Rows of a sparse table, added block by block; a block that exceeds the memory limit is rejected."""

    def __init__(self, path: str | Path) -> None:
        self.rows, self._path, self._bytes = 0, path, 0
        self._blocks: list[csr_matrix] = []

    def add(self, X: Any, y: NDArray) -> None:
        """Add rows, dense or sparse, with their labels."""
        from scipy.sparse import csr_matrix

        block = canonical(csr_matrix(X, dtype=np.float64))
        self._bytes += sum(getattr(block, key).nbytes for key in _SPARSE) + y.nbytes
        check(self._path, self._bytes, "its table takes")
        self._blocks.append(block)
        self.rows += block.shape[0]

    def whole(self, features: int | None = None) -> csr_matrix:
        """Return the table, with `features` columns, or by default with those of the widest block."""
        from scipy.sparse import vstack

        width = features or max(block.shape[1] for block in self._blocks)
        for block in self._blocks:
            block.resize(block.shape[0], width)
        return self._blocks[0] if len(self._blocks) == 1 else canonical(vstack(self._blocks, format="csr"))


def content_sha256(X: csr_matrix | NDArray, y: NDArray) -> str:
    """Return the hash of a `canonical` sparse table, or an array, together with its labels."""
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


def save(path: Path, table: Table) -> None:
    """Write a table as an ``.npz`` whose bytes depend only on the table, completely or not at all."""
    X = table.X
    if isinstance(X, np.ndarray):
        arrays = {"X": X}
    else:
        arrays = {"shape": np.asarray(X.shape, dtype=np.int64), **{key: getattr(X, key) for key in _SPARSE}}
    given = {} if table.client is None else {"client": table.client}
    write_described(path, {**arrays, "y": table.y, **given}, table.meta)


def load(path: Path) -> Table:
    """Read a table that `save` wrote; `X` is a CSR matrix or an array."""
    with read_described(path, "a table", "replifed data parse") as (arrays, meta):
        if "X" in arrays:
            return Table(arrays["X"], arrays["y"], meta, arrays.get("client"))
        from scipy.sparse import csr_matrix

        parts = tuple(arrays[key] for key in _SPARSE)
        X = csr_matrix(parts, shape=tuple(arrays["shape"]))
        X.check_format(full_check=True)  # an index beyond the shape would crash what uses it
        return Table(X, arrays["y"], meta, arrays.get("client"))
