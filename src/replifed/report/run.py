"""Versions, machine and date of a run; in a file next to the report, since they differ from run to run."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

from replifed import __version__
from replifed.store.environment import PACKAGES, commit, machine


def facts() -> dict[str, str]:
    """Return commit, versions, machine and date, in words."""
    return {
        "Commit": commit(),
        "replifed": __version__,
        "Python": platform.python_version(),
        "Packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "Machine": f"{machine()['processor']}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "Report written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
