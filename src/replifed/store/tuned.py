"""Outcomes of step-size searches on disk, read back with a check of what they belong to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from replifed.errors import REMEDY, DataError
from replifed.store import FORMAT, check_format, limits
from replifed.store.atomic import write_json
from replifed.store.provenance import canonical_json, config_hash


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
