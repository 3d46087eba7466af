"""Time and memory of each job, from the benchmark files that the workflow leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from replifed.errors import DataError


def read(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """What each job below `folder` used when it last ran, dearest first.

    Returns
    -------
    DataFrame
        name, path of the benchmark file without suffix; cpu and wall, in seconds; memory, the largest that
        was resident, in MiB, missing where the job was too short to be looked at
    """
    found = []
    for file in sorted(Path(folder).rglob("*.tsv")):
        if file.stat().st_size:
            name = file.relative_to(folder).with_suffix("").as_posix()
            found.append(pd.read_csv(file, sep="\t").tail(1).assign(name=name))
    if not any(map(len, found)):
        raise DataError(f"{os.fspath(folder)} holds no benchmark files; they come with `snakemake all`")
    jobs = pd.concat(found).rename(columns={"cpu_time": "cpu", "s": "wall", "max_rss": "memory"})
    jobs = jobs[["name", "cpu", "wall", "memory"]].fillna({"cpu": 0.0})
    return jobs.sort_values(["cpu", "name"], ascending=[False, True])


def table(jobs: pd.DataFrame) -> str:
    """The jobs as lines of text, then sums for each part of the workflow."""
    width = jobs["name"].str.len().max()
    lines = [f"{'job':{width}}  {'CPU s':>8}  {'wall s':>8}  {'MiB':>7}"]
    for job in jobs.itertuples():
        lines.append(f"{job.name:{width}}  {job.cpu:8.1f}  {job.wall:8.1f}  {_memory(job.memory):>7}")
    lines.append("")
    part = [name.split("/")[0] if "/" in name else "closing" for name in jobs["name"]]
    for name, own in jobs.groupby(part):
        minutes, largest = own["cpu"].sum() / 60, _memory(own["memory"].max())
        lines.append(f"{name}: {len(own)} jobs, {minutes:.1f} CPU minutes, largest {largest} MiB")
    lines.append("CPU as Snakemake samples it, after 15 s every 30 s: up to 30 s of a job are missing")
    lines.append(f"all: {len(jobs)} jobs, {jobs['cpu'].sum() / 60:.1f} CPU minutes")
    return "\n".join(lines)


def _memory(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.0f}"
