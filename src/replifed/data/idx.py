"""The idx format of the MNIST family: a header with type and shape, then the numbers."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replifed.data.streams import BROKEN_STREAM, describe_broken, open_unpacked
from replifed.errors import DataError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read(path: Path, shown: str | None = None) -> NDArray:
    """Read an idx file, plain or packed.

    Parameters
    ----------
    path : Path
        The file; ``.gz`` and ``.bz2`` are unpacked.
    shown : str, optional
        What to call the file in error messages; default its path.

    Returns
    -------
    array
        With the file's shape, in native byte order.
    """
    shown = shown or str(path)
    try:
        with open_unpacked(path) as stream:
            content = stream.read()
    except BROKEN_STREAM as error:
        raise DataError(describe_broken(path, shown, error)) from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise DataError(f"{shown} is not an idx file (it starts with {content[:4]!r})")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if dimensions == 0 or len(content) < start:
        raise DataError(f"{shown} is truncated inside its idx header")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    dtype = np.dtype(_TYPES[content[2]])
    needed = int(np.prod(shape, dtype=object)) * dtype.itemsize
    held = len(content) - start
    if held != needed:
        fault = "is truncated" if held < needed else "has bytes left over"
        wanted = " x ".join(map(str, shape))
        raise DataError(
            f"{shown} {fault}: {held} bytes of data, but its header says {wanted} ({needed} bytes)"
        )
    values = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))
