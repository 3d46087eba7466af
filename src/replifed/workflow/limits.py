"""Time and memory that jobs ask for, from what was recorded of them; on one machine, memory alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil
from pathlib import Path

from replifed.workflow.costs import COSTS, read, recorded

# The cluster's cores may be slower, and the first jobs compile kernels.
_TIMES, _MORE_MINUTES = 3, 5
# On a cluster, two processes of Snakemake share the memory of each job.
_TIMES_MEMORY, _MORE_MEMORY = 1.5, 500


class Limits:
    """Time and memory that the jobs of a scale ask for. Jobs are called as in the table of costs.

    >>> limits = Limits("small")
    >>> limits.minutes("nobody/knows", otherwise=30), limits.megabytes("nobody/knows", otherwise=700)
    (30, 700)
    """

    def __init__(self, scale: str, file: Path = COSTS) -> None:
        self._seconds, self._memory = read(scale, file), read(scale, file, "memory")

    def minutes(self, job: str, otherwise: int) -> int:
        """Return the minutes after which a cluster may end a job, or `otherwise` if no time was recorded."""
        seconds = _most(job, self._seconds)
        return otherwise if seconds is None else ceil(_TIMES * seconds / 60) + _MORE_MINUTES

    def megabytes(self, job: str, otherwise: int) -> int:
        """Return the memory of a job, or `otherwise` if none was recorded."""
        memory = _most(job, self._memory)
        return otherwise if memory is None else ceil(_TIMES_MEMORY * memory) + _MORE_MEMORY


def _most(job: str, known: Mapping[str, float]) -> float | None:
    """Return the most that was recorded of a job, or of one that does what it does, and more.

    >>> _most("fedht/mnist/fedht.2", {"fedht/mnist/fedht": 60.0})  # a share of a run
    60.0
    """
    names = recorded(job, known) or recorded(re.sub(r"[.](tuned|[0-9]+)$", "", job), known)
    return max((known[name] for name in names), default=None)
