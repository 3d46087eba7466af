"""What a run was computed with, from commit to processor; and the CPU and memory that a job used.

The latter stand in a file beside the job's benchmark: Snakemake samples a job every 30 s and misses what is
in between; the operating system counts. Nothing is made from these files, so that they stand outside hashes
and the manifest, as benchmarks do.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from replifed import __version__
from replifed.store.atomic import write_json
from replifed.store.provenance import SOURCE_ROOT, file_hash

PACKAGES = ("numpy", "scipy", "numba", "pandas", "pyarrow", "scikit-learn", "matplotlib", "snakemake")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS")
# Set by the workflow: a job's log; and for all jobs the folders of logs and of benchmarks.
JOB_LOG, LOG_FOLDERS = "REPLIFED_LOG", "REPLIFED_LOGS_AND_BENCHMARKS"
USAGE_SUFFIX = ".usage.json"
_seconds_of_parts: dict[str, float] = {}


def environment() -> dict[str, Any]:
    """Return what numbers may depend on besides settings and data, and the time, as JSON can hold it."""
    return {
        "replifed": __version__,
        "commit": commit(),
        "sources": sources(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        **machine(),
    }


@cache  # each history records it
def machine() -> dict[str, Any]:
    """Return what numbers may depend on besides what runs: processor, linear algebra, threads and system."""
    import numpy as np
    import scipy.linalg  # noqa: F401 - loads its own linear algebra, to be listed
    from threadpoolctl import threadpool_info

    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    libraries = {
        f"{one['internal_api']} {one['version']}, {one.get('architecture', 'any processor')}"
        for one in threadpool_info()
        if one["user_api"] == "blas"
    }
    file = Path("/proc/cpuinfo")  # of Linux; only it has the processor's model
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "blas": sorted(libraries),
        "processor": next(models, platform.processor() or "unknown processor"),
        "features": sorted(name for name, there in features.items() if there),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": {name: os.environ.get(name) for name in _THREADS},
    }


def commit() -> str:
    """Name the commit of the checkout that the library is in, and whether it has been changed since."""
    checkout = SOURCE_ROOT.parent
    if not (checkout / ".git").exists():
        return "no checkout"
    words = ["git", "describe", "--always", "--abbrev=12", "--dirty= and uncommitted changes"]
    try:
        return subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def sources(root: Path = SOURCE_ROOT / "replifed") -> str:
    """Hash the names and contents of the package's modules."""
    files = sorted(root.rglob("*.py"))
    lines = (f"{file_hash(file)}  {file.relative_to(root).as_posix()}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


# --- What a job used ---


def cpu_seconds() -> float:
    """CPU seconds, user and system, of this process since its start and of its children that have ended."""
    counts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(count.ru_utime + count.ru_stime for count in counts)


@contextmanager
def counted_part(name: str) -> Iterator[None]:
    """Count the CPU of what follows as that of one part of a grouped job, such as ``run:mnist``."""
    before = cpu_seconds()
    try:
        yield
    finally:
        _seconds_of_parts[name] = _seconds_of_parts.get(name, 0.0) + cpu_seconds() - before


def record_usage() -> None:
    """Write what this process used so far, if it is a job of the workflow that has a log.

    `cpu`: seconds; `memory`: largest resident size of it or a child in MiB; `parts`: seconds of each part.
    """
    if log := os.environ.get(JOB_LOG):
        logs, benchmarks = os.environ[LOG_FOLDERS].split(os.pathsep, 1)
        file = Path(benchmarks, Path(log).relative_to(logs).with_suffix(USAGE_SUFFIX))
        write_json(
            file,
            {
                "cpu": round(cpu_seconds(), 2),
                "memory": round(_peak() / 2**20, 1),
                "parts": {name: round(used, 2) for name, used in _seconds_of_parts.items()},
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
