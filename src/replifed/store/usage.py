"""CPU and memory that a job of the workflow used, in a file beside its benchmark.

Snakemake samples a job every 30 s and misses what is in between; the operating system counts. Nothing is made
from these files, so that they stand outside hashes and the manifest, as benchmarks do.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replifed.store.atomic import write_json

# Set by the workflow: a job's log; and for all jobs the folders of logs and of benchmarks.
LOG, FOLDERS = "REPLIFED_LOG", "REPLIFED_LOGS_AND_BENCHMARKS"
SUFFIX = ".usage.json"
_parts: dict[str, float] = {}


def seconds() -> float:
    """CPU seconds, user and system, of this process since its start and of its children that have ended."""
    counts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(count.ru_utime + count.ru_stime for count in counts)


@contextmanager
def part(name: str) -> Iterator[None]:
    """Count the CPU of what follows as that of one part of a grouped job, such as ``run:mnist``."""
    before = seconds()
    try:
        yield
    finally:
        _parts[name] = _parts.get(name, 0.0) + seconds() - before


def record() -> None:
    """Write what this process used so far, if it is a job of the workflow that has a log.

    `cpu`: seconds; `memory`: largest resident size of it or a child in MiB; `parts`: seconds of each part.
    """
    if log := os.environ.get(LOG):
        logs, benchmarks = os.environ[FOLDERS].split(os.pathsep, 1)
        file = Path(benchmarks, Path(log).relative_to(logs).with_suffix(SUFFIX))
        write_json(
            file,
            {
                "cpu": round(seconds(), 2),
                "memory": round(_peak() / 2**20, 1),
                "parts": {name: round(used, 2) for name, used in _parts.items()},
            },
        )


def _peak() -> int:
    """Largest resident size in bytes, of this process or of a child."""
    unit = 1 if sys.platform == "darwin" else 1024
    own, children = (
        unit * resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    status = Path("/proc/self/status")
    if status.is_file() and (match := re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(), re.MULTILINE)):
        own = 1024 * int(match[1])  # getrusage's own takes in the process that started this one
    return max(own, children)
