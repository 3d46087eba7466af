"""Outputs appear whole or not at all.

A file is written under a temporary name in its own folder, flushed to the disk and then renamed;
a kill, a full disk or an exception in between leaves the old file (or none) under the final name.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replifed.errors import ReplifedError

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
    errno.EROFS: "the file system is read-only; choose another output folder",
    errno.EACCES: "permission denied; make the folder writable or choose another output folder",
    errno.EPERM: "permission denied; make the folder writable or choose another output folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EEXIST: "a part of the path is a file, not a folder",
}


@contextlib.contextmanager
def explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the operating system's refusal to write `path` into a one-line `ReplifedError`."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno)
        if reason is None:
            raise
        raise ReplifedError(f"cannot write {os.fspath(path)}: {reason}") from error


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path`, on failure it vanishes.

    The temporary file keeps the suffix of `path`, since writers such as matplotlib go by it.
    """
    path = Path(path)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 with LF line ends."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as indented JSON with sorted keys; NaN and infinity are refused."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")
