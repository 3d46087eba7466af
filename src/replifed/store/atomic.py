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
    errno.EISDIR: "it is a folder; remove it, or give the name of a file",
}
# Errors of a path whose parts are not all folders; the system does not say which part it is.
_NOT_A_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP)


@contextlib.contextmanager
def explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the operating system on writing `path` into a one-line `ReplifedError`."""
    path = Path(path)
    try:
        yield
    except OSError as error:
        if error.errno is None:  # not from the system: libraries derive their errors from it
            raise
        raise ReplifedError(f"cannot write {path}: {_reason(error, path.parent)}") from error


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Make `folder` and those above it, unless they exist; an error is a one-line `ReplifedError`."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReplifedError(f"cannot make the folder {folder}: {_reason(error, folder)}") from error


def _reason(error: OSError, folder: Path) -> str:
    """Return why nothing can be written in `folder`, and what to do."""
    if error.errno in _REASONS:
        return _REASONS[error.errno]
    if error.errno in _NOT_A_FOLDER and (obstacle := _obstacle(folder)):
        return obstacle
    culprit = f" of {error.filename}" if error.filename else ""
    return f"the system says {error.strerror!r}{culprit}; choose another output folder"


def _obstacle(folder: Path) -> str:
    """Name the outermost part of the path to `folder` that is not a folder."""
    for part in reversed((folder, *folder.parents)):
        if part.is_symlink() and not part.exists():
            return (
                f"{part} is a link to {os.path.realpath(part)}, which is missing or out of reach; "
                "mount or make that folder, or choose another one"
            )
        if part.exists() and not part.is_dir():
            return f"{part} is a file, not a folder; remove it, or choose another output folder"
    return ""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path`, on failure it vanishes.

    The temporary file keeps the suffix of `path`, from which writers such as matplotlib take the format.
    """
    path = Path(path)
    make_folder(path.parent)
    with explained(path):
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
    """Write `value` as indented JSON with sorted keys; NaN and infinity are errors."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")
