"""Limit on what a file may unpack to, and on what reading it may need: a few bytes can ask for terabytes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from replifed.errors import DataError
from replifed.progress import Lines

DEFAULT = 2 << 30
_COST = 32  # bytes that rows or values take in memory for each byte of their text, at most
_STEP = 1 << 20  # bytes at a time, so that unpacking stops soon after the limit
_limit: ContextVar[tuple[int, str]] = ContextVar(
    "limit", default=(DEFAULT, "the file is damaged, or another one")
)

Path = str | os.PathLike[str]


@contextmanager
def limit(most: float, cure: str) -> Iterator[None]:
    """Allow files `most` bytes in this block; `cure` says what to do if that is too little."""
    token = _limit.set((int(most), cure))
    try:
        yield
    finally:
        _limit.reset(token)


def most() -> int:
    """Return the bytes that a file may unpack to, and that reading it may need."""
    return _limit.get()[0]


def check(path: Path, needed: int, what: str = "it unpacks to", given: tuple[int, str] | None = None) -> None:
    """Refuse a file that needs more bytes than the limit, or than that `given` with its cure.

    >>> check("a.gz", 3 << 30, given=(2 << 30, "state another limit"))
    Traceback (most recent call last):
    replifed.errors.DataError: a.gz: it unpacks to 3 GiB, above the limit of 2 GiB; state another limit
    """
    allowed, cure = given or _limit.get()
    if needed > allowed:
        raise DataError(
            f"{os.fspath(path)}: {what} {_size(needed)}, above the limit of {_size(allowed)}; {cure}"
        )


def check_text(path: Path) -> None:
    """Refuse a text whose rows or values would need more than the limit in memory."""
    check(path, _COST * os.stat(path).st_size, "reading it takes")  # noqa: PTH116


def _size(count: int) -> str:
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >> shift:
            return f"{count / (1 << shift):.4g} {unit}"
    return f"{count} bytes"


class _Limited(io.RawIOBase):
    def __init__(self, stream: Any, path: Path) -> None:
        self._stream, self._path, self._count = stream, path, 0
        self.last = b""
        self._limit = _limit.get()  # that of this thread; others may read
        self._progress = Lines(os.path.basename(path))  # noqa: PTH119

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(min(len(buffer), _STEP))
        buffer[: len(block)] = block
        self._count += len(block)
        self.last = block[-1:] or self.last
        check(self._path, self._count, given=self._limit)
        self._progress("MiB read", self._count >> 20, 0)
        return len(block)


class Reader(io.BufferedReader):
    """The bytes of another stream: an error above the limit, and with progress every ten seconds."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._source = _Limited(stream, path)
        super().__init__(self._source, _STEP)

    @property
    def last(self) -> bytes:
        """The last byte that was read."""
        return self._source.last
