"""Reading raw files: unpacking by suffix, up to the limit, and errors that are found before parsing."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from replifed.errors import DataError
from replifed.store import limits

_PACKINGS: dict[str, tuple[str, bytes, Callable[..., Any]]] = {
    ".gz": ("gzip", b"\x1f\x8b", gzip.open),
    ".bz2": ("bzip2", b"BZh", bz2.open),
    ".xz": ("xz", b"\xfd7zXZ\x00", lzma.open),
}


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[limits.Reader]:
    """Open a file, unpacking ``.gz``, ``.bz2`` and ``.xz``; one that is cut short or altered is an error.

    So is one that unpacks to more than the limit, where it does.
    """
    name, magic, opened = _PACKINGS.get(path.suffix, ("", b"", open))
    try:
        if path.suffix == ".xz":
            _check_memory(path)
        with opened(path, "rb") as stream:
            yield limits.Reader(stream, path)
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if not name:
            raise DataError(f"{path} cannot be read: {error}") from error
        with path.open("rb") as packed:
            start = packed.read(len(magic))
        if start != magic:
            raise DataError(f"{path} is not {name} data (it starts with {start!r})") from error
        if isinstance(error, EOFError):
            raise DataError(f"{path} is truncated: its {name} stream ends early") from error
        raise DataError(f"{path} is damaged inside its {name} stream ({error})") from error


def _check_memory(path: Path) -> None:
    """Refuse an xz file whose head asks for more memory than the limit."""
    with path.open("rb") as packed:
        lzma.LZMADecompressor(memlimit=limits.most()).decompress(packed.read(1 << 16), max_length=1)


def stream_error(path: Path) -> str | None:
    """Unpack a whole file; return the error of its compression, or None."""
    try:
        with unpacked(path) as stream:
            while stream.read(1 << 20):
                pass
    except DataError as error:
        return str(error)
    return None


def looks_like_web_page(path: Path) -> bool:
    """Return whether the file is HTML or XML, the answer of servers and captive portals."""
    try:
        with path.open("rb") as stream:
            return stream.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
