"""The small file ``<raw folder>/<id>.json`` that says which form of a data set was chosen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from replifed import hashes
from replifed.atomic import write_json
from replifed.errors import DataError

_KEYS = {"id", "form", "kind", "stamp", "policy", "files"}


def record_path(raw_dir: Path, id_: str) -> Path:
    """Return where the record of a data set lies."""
    return Path(raw_dir) / f"{id_}.json"


def find_record(raw_dir: Path, id_: str) -> dict[str, Any] | None:
    """Return the record of a data set, or None when it has not been fetched."""
    path = record_path(raw_dir, id_)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or not record.keys() >= _KEYS or record["id"] != id_:
            raise ValueError("keys are missing, or it belongs to another data set")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not a record of a fetched data set ({error}); delete it") from error
    return record


def read_record(raw_dir: Path, id_: str) -> dict[str, Any]:
    """Return the record of a data set that must have been fetched, and not changed since."""
    hashes.check([record_path(raw_dir, id_)])
    record = find_record(raw_dir, id_)
    if record is None:
        raise DataError(f"{record_path(raw_dir, id_)} does not exist; run `replifed data fetch {id_}` first")
    return record


def write_record(raw_dir: Path, record: dict[str, Any]) -> None:
    """Write `record`, unless the same one is already there (so that nothing is rebuilt for it)."""
    try:
        unchanged = find_record(raw_dir, record["id"]) == record
    except DataError:
        unchanged = False  # a damaged record is simply replaced
    if not unchanged:
        write_json(record_path(raw_dir, record["id"]), record)
    hashes.record([record_path(raw_dir, record["id"])])
