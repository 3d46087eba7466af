"""Tables on disk: one uncompressed ``.npz`` whose bytes depend on nothing but the table.

`numpy.savez` leaves the archive's time stamps to the standard library; they are fixed here, so that
equal tables are equal files.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np

from replifed.data.content import Table
from replifed.errors import DataError
from replifed.formats import FORMAT, check_format
from replifed.npz import read_npz, write_npz


def save(path: str | os.PathLike[str], table: Table) -> None:
    """Write `table` to `path`, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file to make; its suffix should be ``.npz``.
    table : Table
    """
    arrays = {"meta": _pack({**table.meta, "format": FORMAT}), "y": table.y}
    if isinstance(table.X, np.ndarray):
        arrays["X"] = table.X
    else:
        arrays |= {
            "shape": np.asarray(table.X.shape, dtype=np.int64),
            "data": table.X.data,
            "indices": table.X.indices,
            "indptr": table.X.indptr,
        }
    write_npz(path, arrays)


def load(path: str | os.PathLike[str]) -> Table:
    """Read a table that `save` wrote.

    Parameters
    ----------
    path : path-like
        An ``.npz`` made by ``replifed data parse``.

    Returns
    -------
    Table
        With `X` a CSR matrix or an array.
    """
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


def _pack(meta: dict) -> np.ndarray:
    return np.frombuffer(json.dumps(meta, sort_keys=True, allow_nan=False).encode("utf-8"), dtype=np.uint8)
