"""Time and memory of each job, from the benchmark files that the workflow leaves."""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from replifed.errors import DataError


class JobCost(NamedTuple):
    """What one job used when it last ran.

    Attributes
    ----------
    name : path of its benchmark file below the folder, without suffix
    cpu : seconds of processor time
    wall : seconds on the clock
    memory : largest resident memory in MiB; NaN where the job was too short to be looked at
    """

    name: str
    cpu: float
    wall: float
    memory: float


def read(folder: str | os.PathLike[str]) -> list[JobCost]:
    """Costs of all jobs whose benchmark files lie below `folder`, dearest first."""
    found = []
    for file in sorted(Path(folder).rglob("*.tsv")):
        with file.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter="\t"))
        if rows:
            name = file.relative_to(folder).with_suffix("").as_posix()
            cpu, wall, memory = (_number(rows[-1][key]) for key in ("cpu_time", "s", "max_rss"))
            found.append(JobCost(name, 0.0 if math.isnan(cpu) else cpu, wall, memory))
    if not found:
        raise DataError(f"{os.fspath(folder)} holds no benchmark files; they come with `snakemake all`")
    return sorted(found, key=lambda job: (-job.cpu, job.name))


def table(jobs: list[JobCost]) -> str:
    """The jobs as lines of text, then sums for each part of the workflow."""
    width = max(len(job.name) for job in jobs)
    lines = [f"{'job':{width}}  {'CPU s':>8}  {'wall s':>8}  {'MiB':>7}"]
    lines += [
        f"{job.name:{width}}  {job.cpu:8.1f}  {job.wall:8.1f}  {_memory(job.memory):>7}" for job in jobs
    ]
    parts: defaultdict[str, list[JobCost]] = defaultdict(list)
    for job in jobs:
        parts[job.name.split("/")[0] if "/" in job.name else "closing"].append(job)
    lines.append("")
    for name, own in sorted(parts.items()):
        largest = max((job.memory for job in own if not math.isnan(job.memory)), default=math.nan)
        lines.append(
            f"{name}: {len(own)} jobs, {sum(job.cpu for job in own) / 60:.1f} CPU minutes, "
            f"largest {_memory(largest)} MiB"
        )
    total = sum(job.cpu for job in jobs) / 60
    lines.append("CPU as Snakemake samples it, after 15 s every 30 s: up to 30 s of a job are missing")
    lines.append(f"all: {len(jobs)} jobs, {total:.1f} CPU minutes")
    return "\n".join(lines)


def _memory(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # Snakemake writes "NA" for jobs that end before it looks
        return math.nan
