"""Raw files: decompression by suffix, up to a limit, and errors that are found before parsing."""

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
    """Open a file, decompressing ``.gz``, ``.bz2`` and ``.xz``.

    Reading raises an error if the file is truncated or altered, or once it decompresses to more than the
    limit.
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
    """Reject an xz file whose header asks for more memory than the limit."""
    with path.open("rb") as packed:
        lzma.LZMADecompressor(memlimit=limits.most()).decompress(packed.read(1 << 16), max_length=1)


def stream_error(path: Path) -> str | None:
    """Decompress a whole file; return the decompression error, or None."""
    try:
        with unpacked(path) as stream:
            while stream.read(1 << 20):
                pass
    except DataError as error:
        return str(error)
    return None


def looks_like_web_page(path: Path) -> bool:
    """Return True if the file is HTML or XML, as servers and captive portals send instead of data."""
    try:
        with path.open("rb") as stream:
            return stream.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
