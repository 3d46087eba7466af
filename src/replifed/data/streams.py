"""Reading raw files: unpacking by suffix, hashes, and the faults that show before parsing."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from replifed.errors import DataError

_PACKINGS: dict[str, tuple[str, bytes, Callable[..., Any]]] = {
    ".gz": ("gzip", b"\x1f\x8b", gzip.open),
    ".bz2": ("bzip2", b"BZh", bz2.open),
    ".xz": ("xz", b"\xfd7zXZ\x00", lzma.open),
}
_CHUNK = 1 << 20

# What the standard library raises on a packed file that is cut short or altered.
BROKEN_STREAM = (EOFError, OSError, zlib.error, lzma.LZMAError)


def open_unpacked(path: Path) -> BinaryIO:
    """Open `path` for reading, unpacking ``.gz``, ``.bz2`` and ``.xz`` on the way."""
    packing = _PACKINGS.get(path.suffix)
    if packing is None:
        return path.open("rb")
    return io.BufferedReader(packing[2](path, "rb"), buffer_size=_CHUNK)


def describe_broken(path: Path, shown: str, error: BaseException) -> str:
    """Say in one sentence why the packed file `path` cannot be read."""
    packing = _PACKINGS.get(path.suffix)
    if packing is None:
        return f"{shown} cannot be read: {error}"
    with path.open("rb") as stream:
        magic = stream.read(len(packing[1]))
    if magic != packing[1]:
        return f"{shown} is not {packing[0]} data (it starts with {magic!r})"
    if isinstance(error, EOFError):
        return f"{shown} is truncated: its {packing[0]} stream ends early"
    return f"{shown} is damaged inside its {packing[0]} stream ({error})"


def stream_fault(path: Path, shown: str) -> str | None:
    """Unpack the whole of a packed file; return what is wrong with it, or None."""
    if path.suffix not in _PACKINGS:
        return None
    try:
        with open_unpacked(path) as stream:
            while stream.read(_CHUNK):
                pass
    except BROKEN_STREAM as error:
        return describe_broken(path, shown, error)
    return None


def looks_like_web_page(path: Path) -> bool:
    """Whether the file is HTML or XML, which is what servers and captive portals answer with."""
    with _readable(path), path.open("rb") as stream:
        return stream.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def file_sha256(path: Path) -> str:
    """Return the sha256 of the file's bytes."""
    return _file_hash(path, "sha256")


def file_md5(path: Path) -> str:
    """Return the md5 of the file's bytes (for comparison with published sums only)."""
    return _file_hash(path, "md5")


def _file_hash(path: Path, algorithm: str) -> str:
    with _readable(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
