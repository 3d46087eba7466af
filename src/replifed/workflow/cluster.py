"""Errors of jobs on a Slurm cluster: what its scheduler says of a job that it refused or ended."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

# Of a message of the plugin: the job's number at Slurm, and how it ended; and what it adds.
_ENDED = re.compile(r"SLURM-job '(\w+)' .*SLURM status is: '([A-Z_]+)'", re.DOTALL)
_SURPLUS = re.compile(r"\s*(sbatch call:|For further error details).*", re.DOTALL)
_MORE = {"TIMEOUT": "runtime=MINUTES", "OUT_OF_MEMORY": "mem_mb=MB"}


def reason(message: str, rule: str) -> str:
    """Return in one line what a message of the plugin says of a job, or "" if the job itself has failed.

    >>> reason("SLURM-job '5' failed, SLURM status is: 'TIMEOUT'. For further error details see", "tune")
    'Slurm ended job 5: TIMEOUT; for more: --set-resources tune:runtime=MINUTES'
    >>> reason("SLURM-job '5' failed, SLURM status is: 'FAILED'. For further error details see", "tune")
    ''
    """
    ended = _ENDED.match(message)
    if not ended:
        return " ".join(_SURPLUS.sub("", message).split())
    job, how = ended.groups()
    if how == "FAILED":
        return ""
    more = f"; for more: --set-resources {rule}:{_MORE[how]}" if how in _MORE else ""
    return f"Slurm ended job {job}: {how}{more}"


def reasons(logs: Iterable[str]) -> list[str]:
    """Return what Slurm's logs of a job say of its end, such as ``Slurm ended JOB 5 ON n CANCELLED AT``."""
    texts = [Path(log).read_text(encoding="utf-8", errors="replace") for log in logs if Path(log).is_file()]
    found = [line for text in texts for line in re.findall(r"\*\*\* (JOB .*) \*\*\*", text)]
    return [f"Slurm ended {line}" for line in found]
