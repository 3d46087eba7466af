"""Messages as bytes: a head that says what follows, the bits that the ledger counts, and a checksum.

The checksum begins at the key of a run and of a direction, so that a message of another run, as from a side
with other settings, or one that comes back to its sender, does not pass.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.wire.messages import KINDS, Layout, Part

VERSION = 1
# Version; whether floats have 64 bits; round; exchange; client; number of parts.
_HEAD = struct.Struct(">BBIHIB")
# Of each part: kind, width, length, count. Widths of vectors follow, a byte each.
_PART = struct.Struct(">BBII")
_HAVE_WIDTHS = (2, 3)
_CHECKSUM = 4  # bytes at the end
_MOST = 255  # parts of a message, and bits of a coordinate: a byte has them


class Message(NamedTuple):
    """A message that was read: to or from a client, in a round's exchange."""

    round: int
    exchange: int
    client: int
    parts: list[NDArray]


class Size(NamedTuple):
    """Length of a message."""

    bits: int  # that the ledger counts; sent, unless floats are exact
    overhead: int  # bytes of head and checksum


def encode(
    parts: Sequence[Part], round_: int, exchange: int, client: int, exact: bool = False, key: int = 0
) -> bytes:
    """Return a message as bytes; `exact` sends each float as it is, with 64 bits, whatever its width.

    `key` is that of the run and the direction (`session.Session.key`).

    Raises
    ------
    ReplifedError
        In one line: it has too many parts, or a part is not what it says.
    """
    layouts = [part.layout(exact) for part in parts]
    if max([len(layouts), *(width for one in layouts for width in one.widths)]) > _MOST:
        raise ReplifedError(f"a message has at most {_MOST} parts, with at most {_MOST} bits a coordinate")
    head = _HEAD.pack(VERSION, exact, round_, exchange, client, len(parts))
    for one in layouts:
        head += _PART.pack(one.kind, one.width, one.length, one.count) + bytes(one.widths)
    bits = [part.encode(layout) for part, layout in zip(parts, layouts, strict=True)]
    data = head + np.packbits(np.concatenate([np.zeros(0, np.uint8), *bits])).tobytes()
    return data + _checksum(data, key)


def decode(
    data: bytes,
    clients: Collection[int],
    exact: bool = False,
    at: tuple[int, int] | None = None,
    key: int = 0,
) -> Message:
    """Read a message to or from one of `clients`, and, if `at` is given, of this round and exchange.

    Raises
    ------
    ReplifedError
        In one line: it is cut off, of another version, width, run or round, or its client does not take part.
    """
    (version, wide, round_, exchange, client, _), layouts, end = _read_head(data)
    who = f"message of client {client} in round {round_}"
    if version != VERSION:
        raise ReplifedError(
            f"{who} is of version {version}, this is {VERSION}: install the same replifed on both sides"
        )
    if wide != exact:
        sent, read = (64 if one else "the stated" for one in (wide, exact))
        raise ReplifedError(f"{who} has floats of {sent} bits, not {read}: give both sides the same `exact`")
    if client not in clients:
        listed = ", ".join(map(str, sorted(clients)))
        raise ReplifedError(f"{who}: it does not take part; those who do are {listed}")
    if at is not None and (round_, exchange) != at:
        raise ReplifedError(f"{who} is of exchange {exchange}: round {at[0]}, exchange {at[1]} is due")
    total, body = sum(one.bits for one in layouts), data[end:-_CHECKSUM]
    if len(body) != -(-total // 8):
        raise ReplifedError(f"{who} has {len(body)} bytes for {total} bits: it is cut off, or altered")
    if data[-_CHECKSUM:] != _checksum(data[:-_CHECKSUM], key):
        raise ReplifedError(f"{who} is altered, or of a run with another method or other settings")
    bits, parts, begin = np.unpackbits(np.frombuffer(body, np.uint8), count=total), [], 0
    for one in layouts:
        parts.append(KINDS[one.kind].decode(bits[begin : begin + one.bits], one))
        begin += one.bits
    return Message(round_, exchange, client, parts)


def size(data: bytes) -> Size:
    """Return how many bits of a message the ledger counts, and how many bytes are beside them."""
    _, layouts, end = _read_head(data)
    return Size(sum(one.booked for one in layouts), end + _CHECKSUM)


def _checksum(data: bytes, key: int) -> bytes:
    return zlib.crc32(data, key).to_bytes(_CHECKSUM, "big")


def _read_head(data: bytes) -> tuple[tuple[int, ...], list[Layout], int]:
    """Fields of the head, what each part is, and where the bits begin."""
    try:
        head, end = _HEAD.unpack_from(data), _HEAD.size
        layouts = []
        if head[0] == VERSION:  # else the rest is laid out otherwise
            for _ in range(head[-1]):
                kind, width, length, count = _PART.unpack_from(data, end)
                end += _PART.size
                widths: tuple[int, ...] = ()
                if kind in _HAVE_WIDTHS:
                    widths = struct.unpack_from(f">{count}B", data, end)
                    end += count
                if kind >= len(KINDS):
                    raise ReplifedError(f"a message has a part of the unknown kind {kind}: it is altered")
                layouts.append(Layout(kind, width, length, count, widths, bool(head[1])))
    except struct.error:
        raise ReplifedError(f"a message of {len(data)} bytes is cut off within its head") from None
    return head, layouts, end
