"""Results of jobs on disk: histories of runs, tidy parquet tables, and outcomes of searches, JSON files.

Each holds its provenance and a hash, and is read back with a check of what it belongs to.

What reads and writes them is imported late, since a job that fails before needs none of it.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from replifed.errors import REMEDY, DataError
from replifed.store import FORMAT, check_format, limits
from replifed.store.atomic import replacing, write_json
from replifed.store.environment import machine
from replifed.store.provenance import canonical_json, config_hash, source_hash

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_KEY = b"replifed"
# Key of the number of a share and of all shares, in the provenance of a history of some of its repetitions.
SHARE = "share"
# Key of the machines that ran it: several where shares ran on several.
MACHINES = "machines"


def provenance(modules: list[str], settings: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the origin of a result: settings, source, versions, machine, and its data by kind and hash.

    The machine that runs logged elsewhere were made on is not known.
    """
    import scipy

    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    return {
        "settings": settings,
        "settings_hash": config_hash(settings),
        "source": {module: source_hash(module) for module in sorted(modules)},
        "versions": versions,
        MACHINES: [] if "logs" in settings else [machine()],
        "data": data,
    }


def write_history(path: Path, frame: pd.DataFrame, meta: dict[str, Any]) -> None:
    """Write `frame` with `meta`, and a hash that reveals later changes, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    meta = {**meta, "format": FORMAT}
    signed = {**meta, "content_hash": _content_hash(table, meta)}
    table = table.replace_schema_metadata({_KEY: canonical_json(signed).encode()})
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def join(files: Sequence[Path], out: Path) -> None:
    """Write the history of a run from those of its shares, which follow each other in order.

    Raises
    ------
    DataError
        The files are not all shares of one run.
    """
    import pandas as pd

    frames, metas = zip(*map(read_history, files), strict=True)
    first, machines = metas[0], [one for meta in metas for one in meta.pop(MACHINES, ())]
    for number, (file, meta) in enumerate(zip(files, metas, strict=True), 1):
        if meta.pop(SHARE, None) != [number, len(files)]:
            raise DataError(f"{file}: not share {number} of {len(files)} of a run; {REMEDY}")
        if differ := [key for key in {**first, **meta} if meta.get(key) != first.get(key)]:
            raise DataError(
                f"{file} and {files[0]} are of different runs, by their {', '.join(differ)}; delete both and "
                "run the workflow again"
            )
    distinct = [one for place, one in enumerate(machines) if one not in machines[:place]]
    ran_on = {MACHINES: distinct} if distinct else {}
    write_history(out, pd.concat(frames, ignore_index=True), {**first, **ran_on})


def read_history(path: Path, content: bytes | None = None) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read a file of `write_history`, or its `content` from elsewhere.

    A file that is unreadable, truncated, altered, of another version, or not a history is a `DataError`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path if content is None else pa.BufferReader(content))
        meta = json.loads(table.schema.metadata[_KEY])
        check_format(path, meta.get("format"))
        recorded = meta.pop("content_hash")
        altered = recorded != _content_hash(table, meta)
        del meta["format"]
        frame = table.to_pandas()
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist; run the workflow again") from error
    except (
        pa.ArrowException,
        OSError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise DataError(f"{path}: not a run history; {REMEDY}") from error
    if altered:
        raise DataError(f"{path}: altered since it was written; {REMEDY}")
    return frame, meta


def read_origin(content: bytes) -> dict[str, Any]:
    """Return the `meta` of a history that is known to be sound, without its numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return json.loads(pq.read_schema(pa.BufferReader(content)).metadata[_KEY])


def _content_hash(table: pa.Table, meta: dict[str, Any]) -> str:
    """Return the sha256 of names, types and values of the columns, in order, and of `meta`."""
    digest = hashlib.sha256(canonical_json(meta).encode())
    for field, column in zip(table.schema, table.columns, strict=True):
        digest.update(canonical_json([field.name, str(field.type)]).encode())
        values = column.to_numpy()
        # Arrays of objects (texts, and columns with gaps) hold addresses.
        listed = values.dtype == object
        digest.update(canonical_json(column.to_pylist()).encode() if listed else values.tobytes())
    return digest.hexdigest()


def write_tuned(path: Path, found: dict[str, Any], meta: dict[str, Any]) -> None:
    """Write the outcome `found` of a search, with `meta` and a hash that reveals later changes."""
    meta = {**meta, "format": FORMAT}
    entries = json.loads(json.dumps({**found, "meta": meta}, allow_nan=False))
    write_json(path, {**found, "meta": {**meta, "content_hash": config_hash(entries)}})


def read_tuned(path: Path, method: str, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """Read the outcome of the search of `method`, whose settings must be the `settings` of the run.

    A file that is unreadable, damaged, of another version, or of another search is a `DataError`; so is, with
    its name, a missing entry that is looked up later, at any depth.
    """
    try:
        limits.check_text(path)
        text = path.read_text(encoding="utf-8")
        found = json.loads(text, object_hook=lambda entries: _Entries(entries, path))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}; run the workflow again") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a sound JSON file ({error}); {REMEDY}") from error
    try:
        owner = found["method"]
        check_format(path, found["meta"].get("format"))
        searched = found["meta"]["settings"].items()
        recorded = found["meta"]["content_hash"]
        del found["meta"]["content_hash"]
        content_hash = config_hash(found)
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not the outcome of a step-size search; {REMEDY}") from error
    if recorded != content_hash:
        raise DataError(f"{path}: altered since it was written; {REMEDY}")
    if owner != method:
        raise DataError(f"{path}: tuned for the method {owner!r}, not for {method!r}; {REMEDY}")
    if settings is not None:
        # As JSON, since the search's settings have been through a file: there a tuple is a list.
        own = {key: canonical_json(value) for key, value in settings.items()}
        other = [key for key, value in searched if key != "tuning" and own.get(key) != canonical_json(value)]
        if other:
            names = ", ".join(other)
            raise DataError(f"{path}: tuned with other settings than the run's ({names}); {REMEDY}")
    return found


class _Entries(dict):
    """A JSON object of the file `path`."""

    def __init__(self, entries: dict[str, Any], path: Path) -> None:
        super().__init__(entries)
        self.path = path

    def __missing__(self, key: str) -> Any:
        raise DataError(f"{self.path}: not the expected outcome of a search, it lacks {key!r}; {REMEDY}")
