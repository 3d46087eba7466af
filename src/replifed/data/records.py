"""Records of fetched data sets, ``<raw folder>/<id>.json``: the form of each, and its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from replifed.data.catalogue import CATALOGUE, PACKAGED, get, in_one_line
from replifed.errors import DataError
from replifed.store import hashes
from replifed.store.atomic import write_json


class File(BaseModel, strict=True):
    """Name, hash and size of a raw file."""

    name: str
    sha256: str
    bytes: int


class _Record(BaseModel, strict=True):
    id: str
    form: str
    kind: Literal["original", "substitute", "surrogate"]
    stamp: str
    policy: str
    files: list[File]


def find_record(raw_dir: Path, id_: str) -> dict[str, Any] | None:
    """Return the record of a data set, or None when it has not been fetched."""
    path = raw_dir / f"{id_}.json"
    try:
        record = _Record.model_validate_json(path.read_bytes()).model_dump()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        reason = in_one_line(error)
        raise DataError(f"{path} is not a record of a fetched data set ({reason}); delete it") from error
    if record["id"] != id_:
        raise DataError(f"{path} is the record of another data set, {record['id']}; delete it")
    return record


def read_record(raw_dir: Path, id_: str) -> dict[str, Any]:
    """Return the record of a data set, which must be fetched and must not have changed since."""
    path = raw_dir / f"{id_}.json"
    hashes.check([path])
    record = find_record(raw_dir, id_)
    if record is None:
        raise DataError(f"{path} does not exist; run `replifed data fetch {id_}` first")
    return record


def write_record(raw_dir: Path, record: dict[str, Any]) -> None:
    """Write `record` unless the file already holds it: a newer file would rebuild all that depends on it."""
    path = raw_dir / f"{record['id']}.json"
    try:
        unchanged = find_record(raw_dir, record["id"]) == record
    except DataError:
        unchanged = False  # a damaged record is simply replaced
    if not unchanged:
        write_json(path, record)
    hashes.record([path])


def status_rows(raw_dir: Path, ids: Iterable[str] = CATALOGUE) -> list[dict[str, str]]:
    """Return one row per data set: id, form, kind ("not fetched" without a record), files and licence."""
    rows = []
    for dataset in map(get, ids):
        record = find_record(raw_dir, dataset.id) or {"form": "", "kind": "not fetched", "files": []}
        own = {key: record[key] for key in ("form", "kind")}
        files = ", ".join(file["name"] for file in record["files"])
        rows.append({"id": dataset.id, **own, "files": files, "licence": dataset.licence})
    return rows


def not_original(rows: Iterable[dict[str, str]]) -> str:
    """Return a sentence with the number of data sets in `status_rows` that are not original.

    Those that have not been fetched are counted separately, and copies from the package are named.

    >>> not_original([{"id": "a", "kind": "original"}, {"id": "b", "kind": "surrogate"}])
    '1 of 2 data sets is not original: b (surrogate)'
    >>> not_original([{"id": "a", "kind": "original"}])
    'every data set is original'
    >>> not_original([{"id": "a", "kind": "original", "form": "packaged"}])
    'every data set is original; from the package: a'
    >>> not_original([{"id": "a", "kind": "not fetched"}])
    'no data set has been fetched yet; `snakemake --cores 1 data` fetches all'
    """
    every = list(rows)
    rows = [row for row in every if row["kind"] != "not fetched"]
    if every and not rows:
        return "no data set has been fetched yet; `snakemake --cores 1 data` fetches all"
    others = [f"{row['id']} ({row['kind']})" for row in rows if row["kind"] != "original"]
    copies = ", ".join(row["id"] for row in rows if row.get("form") == PACKAGED)
    missing = f"; from the package: {copies}" if copies else ""
    missing += f"; {len(every) - len(rows)} are not fetched yet" if len(rows) < len(every) else ""
    if not others:
        return f"every data set is original{missing}"
    verb = "is" if len(others) == 1 else "are"
    return f"{len(others)} of {len(rows)} data sets {verb} not original: {', '.join(others)}{missing}"
