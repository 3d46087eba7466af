"""The small file ``<raw folder>/<id>.json`` that says which form of a data set was chosen."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from replifed.data.catalogue import CATALOGUE, get
from replifed.errors import DataError
from replifed.store import hashes
from replifed.store.atomic import write_json

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
    path = record_path(raw_dir, id_)
    hashes.check([path])
    record = find_record(raw_dir, id_)
    if record is None:
        raise DataError(f"{path} does not exist; run `replifed data fetch {id_}` first")
    return record


def write_record(raw_dir: Path, record: dict[str, Any]) -> None:
    """Write `record`, unless the same one is already there (so that nothing is rebuilt for it)."""
    path = record_path(raw_dir, record["id"])
    try:
        unchanged = find_record(raw_dir, record["id"]) == record
    except DataError:
        unchanged = False  # a damaged record is simply replaced
    if not unchanged:
        write_json(path, record)
    hashes.record([path])


def status_rows(raw_dir: str | Path, ids: Iterable[str] = CATALOGUE) -> list[dict[str, str]]:
    """Return one row a data set: id, form, kind ("not fetched" without a record), files and licence."""
    rows = []
    for dataset in map(get, ids):
        record = find_record(Path(raw_dir), dataset.id) or {"form": "", "kind": "not fetched", "files": []}
        own = {key: record[key] for key in ("form", "kind")}
        files = ", ".join(file["name"] for file in record["files"])
        rows.append({"id": dataset.id, **own, "files": files, "licence": dataset.licence})
    return rows


def not_original(rows: Iterable[dict[str, str]]) -> str:
    """Say in one sentence how many of the data sets in `status_rows` are not the papers' own.

    >>> not_original([{"id": "a", "kind": "original"}, {"id": "b", "kind": "surrogate"}])
    '1 of 2 data sets is not original: b (surrogate)'
    """
    rows = list(rows)
    others = [f"{row['id']} ({row['kind']})" for row in rows if row["kind"] != "original"]
    verb = "is" if len(others) == 1 else "are"
    named = f": {', '.join(others)}" if others else ""
    return f"{len(others)} of {len(rows)} data sets {verb} not original{named}"
