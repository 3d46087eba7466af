"""Hashes of accepted files, kept beside them in ``<raw folder>/<id>/.pins.json``.

A file whose official hash is unknown is pinned when its content has been checked for the first
time, and compared with the pin ever after. There is one pin file and one lock a data set, so that
jobs for different data sets never wait for each other.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replifed import hashes
from replifed.atomic import explained, make_folder, write_json
from replifed.errors import DataError

_PINS = ".pins.json"
_LOCK = ".lock"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`, which is made if need be.

    The operating system drops the lock when the process ends, however it ends. Where there are no
    such locks (Windows), nothing is locked; the workflow starts one job a data set anyway.
    """
    make_folder(path.parent)
    with explained(path):
        stream = path.open("a")
    with stream:
        try:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
        except (ImportError, OSError):  # some network file systems refuse locks
            pass
        yield


@contextlib.contextmanager
def dataset_lock(folder: Path) -> Iterator[None]:
    """Let one process at a time work in a data set's raw folder."""
    with locked(folder / _LOCK):
        yield


def read_pins(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what is known about each accepted file: sha256, bytes and source."""
    path = folder / _PINS
    if not path.exists():
        return {}
    try:
        if hashes.changed(path):
            raise ValueError("not as it was written")
        return dict(json.loads(path.read_text(encoding="utf-8"))["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is damaged; delete it to have the files beside it checked anew") from error


def write_pins(folder: Path, pins: dict[str, dict[str, Any]]) -> None:
    """Write the pins of a data set's files."""
    if read_pins(folder) != pins:
        write_json(folder / _PINS, {"files": pins})
    hashes.record([folder / _PINS])
