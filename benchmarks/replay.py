"""Minutes of `all` on several cores, computed from the recorded times of its jobs; nothing is run.

The jobs and what they wait for are Snakemake's own, of a dry run in a temporary copy of the workflow. A free
core takes the ready job with the longest chain behind it, as the workflow has Snakemake do, or the first one.
"""

from __future__ import annotations

import argparse
import heapq
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from replifed.workflow import costs
from replifed.workflow.targets import remaining

ROOT = Path(__file__).parents[1]
COPIED = ("Snakefile", "workflow", "config", "profiles", "src", "environment.yml")
ASKED = 1.1  # times the bound
SCALES = {"paper": [], "small": ["--configfile", "config/small.yaml"]}
COLUMNS = {"clock": "seconds", "processor": "cpu"}
# A dry run calls no hook.
GRAPH = """
include: "Snakefile"

workflow.default_target = "all"


def write_graph():
    graph = {
        job.jobid: [job.benchmark, [one.jobid for one in workflow.dag.dependencies[job]]]
        for job in workflow.dag.needrun_jobs(exclude_finished=False)
    }
    with open("graph.json", "w") as file:
        json.dump([f"{config['paths']['results']}/benchmarks/", graph], file)


import atexit, json

atexit.register(write_graph)
"""

Before = Mapping[int, Sequence[int]]


def graph(scale: str) -> tuple[dict[int, str], dict[int, list[int]]]:
    """Return the names of all jobs, "" of one that does nothing, and the jobs before each, by their ids."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for one in COPIED:
            copy = shutil.copytree if (ROOT / one).is_dir() else shutil.copy
            copy(ROOT / one, folder / one)
        (folder / "graph.smk").write_text(GRAPH)
        call = [sys.executable, "-m", "snakemake", "-s", "graph.smk", "all", "--dry-run", "--cores", "1"]
        done = subprocess.run(
            [*call, *SCALES[scale]], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(done.stderr)
        place, jobs = json.loads((folder / "graph.json").read_text())
    names = {int(job): (file or "").removeprefix(place) for job, (file, _) in jobs.items()}
    return names, {int(job): before for job, (_, before) in jobs.items()}


def replay(seconds: Mapping[int, float], before: Before, priority: Mapping[int, float], cores: int) -> float:
    """Return the seconds until the last job has ended; a free core takes the ready job of highest priority.

    >>> replay({1: 2.0, 2: 1.0, 3: 3.0}, {1: [], 2: [], 3: [2]}, {1: 2.0, 2: 4.0, 3: 3.0}, cores=1)
    6.0
    >>> replay({1: 2.0, 2: 1.0, 3: 3.0}, {1: [], 2: [], 3: [2]}, {1: 2.0, 2: 4.0, 3: 3.0}, cores=2)
    4.0
    """
    waits = {job: set(others) for job, others in before.items()}
    ready = [(-priority[job], job) for job, others in waits.items() if not others]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < cores:
            _, job = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds[job], job))
        now, ended = heapq.heappop(running)
        for job, others in waits.items():
            if ended in others:
                others.remove(ended)
                if not others:
                    heapq.heappush(ready, (-priority[job], job))
    return now


def main() -> None:
    """Print the minutes by scale, kind of time and number of cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="paper")
    parser.add_argument("--cores", nargs="+", type=int, default=[2, 4, 8, 16])
    arguments = parser.parse_args()
    names, before = graph(arguments.scale)
    print("| time | cores | bound | longest chain first | first that is ready |")
    print("| --- | --: | --: | --: | --: |")
    missed = False
    for kind, column in COLUMNS.items():
        known = costs.read(arguments.scale) | costs.read(arguments.scale, column=column)
        found = {
            job: costs.estimate(name.removesuffix(".tsv"), known, {}) for job, name in names.items() if name
        }
        timed = costs.weights(found)
        seconds = {job: timed.get(job, 0.0) for job in names}
        chain = remaining(seconds, before)
        for cores in arguments.cores:
            least = max(sum(seconds.values()) / cores, max(chain.values()))
            ours = replay(seconds, before, chain, cores)
            missed = missed or ours > ASKED * least
            times = (least, ours, replay(seconds, before, dict.fromkeys(names, 0.0), cores))
            print(f"| {kind} | {cores} |", " | ".join(f"{time / 60:.1f}" for time in times), "|")
    sys.exit(missed)


if __name__ == "__main__":
    main()
