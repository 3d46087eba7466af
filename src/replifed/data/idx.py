"""The idx format of the MNIST family: a header with type and shape, then the numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.data.streams import unpacked
from replifed.errors import DataError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read(path: Path) -> NDArray:
    """Read an idx file, plain or packed, as an array of the file's shape in native byte order."""
    with unpacked(path) as stream:
        content = stream.read()
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise DataError(f"{path} is not an idx file (it starts with {content[:4]!r})")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if dimensions == 0 or len(content) < start:
        raise DataError(f"{path} is truncated inside its idx header")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    dtype = np.dtype(_TYPES[content[2]])
    needed, held = math.prod(shape) * dtype.itemsize, len(content) - start
    if held != needed:
        fault = "is truncated" if held < needed else "has bytes left over"
        wanted = " x ".join(map(str, shape))
        raise DataError(
            f"{path} {fault}: {held} bytes of data, but its header says {wanted} ({needed} bytes)"
        )
    values = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def read_images(paths: Sequence[Path], counts: Counts) -> tuple[NDArray, NDArray]:
    """Read the file of the images, a row each, and that of their labels."""
    images, labels = map(read, paths)
    if labels.ndim != 1 or len(images) != len(labels):
        raise DataError(f"{paths[0]} holds {len(images)} images but {paths[1]} holds {labels.shape} labels")
    return images.reshape(len(images), -1), labels
