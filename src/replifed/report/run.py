"""Versions, machine and date of a run; in a file next to the report, since they differ from run to run."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from replifed import __version__
from replifed.store.provenance import SOURCE_ROOT

_PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "matplotlib", "snakemake")


def facts() -> dict[str, str]:
    """Return commit, versions, machine and date, in words."""
    return {
        "Commit": _commit(),
        "replifed": __version__,
        "Python": platform.python_version(),
        "Packages": ", ".join(f"{name} {version(name)}" for name in _PACKAGES),
        "Machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "Report written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _commit() -> str:
    """Name the commit of the checkout that the library is in, and whether it has been changed since."""
    checkout = SOURCE_ROOT.parent
    if not (checkout / ".git").exists():
        return "no checkout"
    words = ["git", "describe", "--always", "--abbrev=12", "--dirty= and uncommitted changes"]
    try:
        return subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor() -> str:
    """Name the processor; only Linux's file of them has its model."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown processor")
