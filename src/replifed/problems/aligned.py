"""Arrays aligned to cache lines."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LINE = 64


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """As `numpy.empty`, aligned to a cache line; numpy's large arrays start 16 bytes behind one."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + _LINE, np.uint8)
    first = -buffer.ctypes.data % _LINE
    return buffer[first : first + size].view(dtype).reshape(shape)
