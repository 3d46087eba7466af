"""What a run was computed with: commit, sources, versions, linear algebra, processor and threads."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from replifed import __version__
from replifed.store.provenance import SOURCE_ROOT, file_hash

PACKAGES = ("numpy", "scipy", "numba", "pandas", "pyarrow", "scikit-learn", "matplotlib", "snakemake")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS")


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
