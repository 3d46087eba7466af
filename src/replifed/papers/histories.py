"""Run histories on disk: a tidy parquet table with its provenance inside."""

from __future__ import annotations

import json
import os
import platform
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from replifed.atomic import replacing
from replifed.errors import DataError
from replifed.provenance import canonical_json, config_hash, source_hash

_KEY = b"replifed"


def provenance(modules: list[str], settings: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """What a result was made from: settings, source, versions, threads, and the kind of its data."""
    import scipy

    return {
        "settings": settings,
        "settings_hash": config_hash(settings),
        "source": {module: source_hash(module) for module in sorted(modules)},
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "threads": {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_CORETYPE")},
        "data": data,
    }


def write_history(path: str | os.PathLike[str], frame: pd.DataFrame, meta: dict[str, Any]) -> None:
    """Write `frame` with `meta` to `path`, whole or not at all."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({_KEY: canonical_json(meta).encode()})
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_history(path: str | os.PathLike[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read what `write_history` wrote.

    Raises
    ------
    DataError
        The file is no history: truncated, or written by something else.
    """
    try:
        table = pq.read_table(path)
        meta = json.loads(table.schema.metadata[_KEY])
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{os.fspath(path)}: not a run history; delete it and run the workflow again"
        ) from error
    return table.to_pandas(), meta
