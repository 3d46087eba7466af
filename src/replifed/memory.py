"""Memory that this machine has, or the container that it runs in."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# Limits of control groups, versions 2 and 1, as a container sees them.
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def granted() -> float:
    """Return the bytes that all processes together may take."""
    limits = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    for group in _GROUPS:
        with suppress(OSError, ValueError):  # ValueError: "max", no limit
            limits.append(float(Path(group).read_text()))
    return min(limits)
