"""Memory that this machine has, or the container that it runs in, and arrays aligned in it."""

from __future__ import annotations

import math
import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

# Bytes of a cache line.
_LINE = 64
# Settings of glibc's `mallopt`: bytes that are kept at the end of its memory, and the size, at most 32 MB,
# from which arrays are mapped one by one and given back.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _HIGHEST = 256 << 20, 32 << 20
# Limits of control groups, versions 2 and 1, as a container sees them.
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def granted() -> float:
    """Return the bytes that all processes together may take."""
    limits = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    for group in _GROUPS:
        with suppress(OSError, ValueError):  # ValueError: "max", no limit
            limits.append(float(Path(group).read_text()))
    return min(limits)


def free() -> float:
    """Return the bytes that this process may still allocate, as far as the system tells."""
    limits = [granted()]
    with suppress(OSError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        limits.append(float(address_space))
    return min(limits)


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """Uninitialised array, aligned to a cache line; those of `numpy.empty` start 16 bytes after one."""
    import numpy as np  # here, since the workflow's rules need none of it

    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + _LINE, np.uint8)
    first = -buffer.ctypes.data % _LINE
    return buffer[first : first + size].view(dtype).reshape(shape)


def keep_freed() -> None:
    """Let this process keep memory that it frees, where glibc has its memory; no effect elsewhere.

    Else arrays that are made and freed in every step go back to the system each time, and the next ones are
    filled with zeros page by page, which may take longer than the arithmetic.
    """
    import ctypes  # here, since the workflow's rules need none of it

    with suppress(AttributeError, OSError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _HIGHEST)
