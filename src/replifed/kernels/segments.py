"""Arrays in segments, given by the indices at which these begin, and the length of the whole."""

from __future__ import annotations

from replifed.kernels import compiled


@compiled
def longest(bounds):
    """Length of the longest segment; numpy's functions for it take seconds to compile."""
    most = 0
    for s in range(len(bounds) - 1):
        most = max(most, bounds[s + 1] - bounds[s])
    return most
