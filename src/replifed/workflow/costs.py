"""What jobs took, as their records and a table of all by scale have it, and what they ask for by that."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from math import ceil
from pathlib import Path
from typing import Any

from replifed.errors import DataError, counted
from replifed.store import environment
from replifed.store.atomic import write_text

COSTS = Path(__file__).with_name("costs.csv")
# Seconds on the clock; and of CPU, and MiB of memory, where the job has recorded them.
COLUMNS = ("scale", "job", "seconds", "cpu", "memory")
_GROUP = r"\w+_and_(\d+)_more"  # experiments of a grouped job
_START = 1.5  # seconds that each job needs to start
_SECONDS = "s"  # column of Snakemake's benchmark files; its processor time misses up to 30 s of a job
_SLACK = 10.0  # seconds by which the times of two files that one job leaves may differ
# The cluster's cores may be slower, and the first jobs compile kernels.
_TIMES, _MORE_MINUTES = 3, 5
# On a cluster, two processes of Snakemake share the memory of each job.
_TIMES_MEMORY, _MORE_MEMORY = 1.5, 500


def measured(folder: Path) -> dict[str, dict[str, str]]:
    """Return Snakemake's measurements of each job's last run, by the job's name.

    Raises
    ------
    DataError
        The folder holds no benchmark files.
    """
    found = {}
    for file in sorted(folder.rglob("*.tsv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                found[file.relative_to(folder).with_suffix("").as_posix()] = row
    if not found:
        raise DataError(f"{folder} holds no benchmark files; they come with `replifed make all`")
    return found


def used(folder: Path, job: str, seconds: float) -> dict[str, Any] | None:
    """Return what a job recorded of itself, or None if nothing is there of its last run.

    `seconds` is how long that run took. A record whose time is not that of the run's benchmark file is of an
    earlier run, or of a later one that failed.
    """
    record, benchmark = folder / f"{job}{environment.USAGE_SUFFIX}", folder / f"{job}.tsv"
    if not record.is_file():
        return None
    before = benchmark.stat().st_mtime - record.stat().st_mtime
    return json.loads(record.read_text()) if -_SLACK <= before <= seconds + _SLACK else None


def read(scale: str, file: Path = COSTS, column: str = "seconds") -> dict[str, float]:
    """Return a column of the table, for those jobs of a scale of which it holds something."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["scale"] == scale]
    return {row["job"]: float(row[column]) for row in rows if row.get(column)}


def record(scale: str, folder: Path, file: Path = COSTS) -> int:
    """Record the costs of the jobs of a scale, in place of earlier ones; return the number of jobs."""
    now, rows = measured(folder), []
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as lines:
            earlier = [row for row in csv.DictReader(lines) if row["scale"] != scale]
        rows = [[row.get(key) or "" for key in COLUMNS] for row in earlier]
    for job, one in now.items():
        seconds = float(one[_SECONDS])
        own = used(folder, job, seconds)
        more = [f"{own['cpu']:.1f}", f"{own['memory']:.0f}"] if own else ["", ""]
        rows.append([scale, job, f"{seconds:.1f}", *more])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *sorted(rows)])
    write_text(file, text.getvalue())
    return len(now)


def recorded(job: str, known: Mapping[str, float]) -> list[str]:
    """Return the names under which a job is known: its own, or else those of the grouped jobs that do it.

    >>> recorded("fedht/mnist/fedavg", {"fedht/mnist_and_3_more/fedavg": 8.0, "fedht/artefacts": 30.0})
    ['fedht/mnist_and_3_more/fedavg']
    """
    if job in known:
        return [job]
    paper, *middle, last = job.split("/") if "/" in job else ("", job)
    if middle:
        grouped = re.compile(rf"{re.escape(paper)}/{_GROUP}/{re.escape(last)}")
        return [name for name in known if grouped.fullmatch(name)]
    return [name for name in (f"{paper}/artefacts",) if name in known]


def estimate(job: str, known: Mapping[str, float], artefacts: Mapping[str, int]) -> float | None:
    """Return the recorded seconds of a job, or its share of those of a grouped job, or None.

    `artefacts` has the number of artefacts that the grouped job of each paper makes.

    >>> known = {"fedht/mnist_and_3_more/fedavg": 8.0, "fedht/artefacts": 30.0}
    >>> estimate("fedht/mnist/fedavg", known, {}), estimate("fedht/fig1", known, {"fedht": 10})
    (3.5, 4.5)
    >>> estimate("fedht/rcv1_and_1_more/fedavg", known, {})  # two of these four
    5.5
    """
    some = re.search(r"_and_(\d+)_more(/|$)", job)
    parts = int(some[1]) + 1 if some else 1
    for name in recorded(job, known):
        if name == job:
            return known[name]
        paper, middle, *_ = name.split("/")
        grouped = re.fullmatch(_GROUP, middle)
        count = int(grouped[1]) + 1 if grouped else artefacts.get(paper)
        return parts * known[name] / count + _START if count else None
    return None


def in_words(seconds: Iterable[float | None], chain: float = 0.0) -> str:
    """Say how many jobs are ahead, and how long they, and the longest `chain` of them, take.

    >>> in_words([100.0, 30.0, None], 100.0)
    '3 jobs ahead, about 2 min on one core, no less than 2 min on several, and 1 job not timed yet'
    >>> in_words([2.0])
    '1 job ahead, about 2 s on one core'
    >>> in_words([None, None])
    '2 jobs ahead, none timed yet'
    """
    every = list(seconds)
    known = [one for one in every if one is not None]
    time = f", about {duration(sum(known))} on one core" if known else ""
    time += f", no less than {duration(chain)} on several" if 0 < chain < sum(known) else ""
    unknown = len(every) - len(known)
    untimed = f", and {counted(unknown, 'job')} not timed yet" if unknown and known else ""
    untimed = untimed or ", none timed yet" * (not known)
    return f"{counted(len(every), 'job')} ahead{time}{untimed}"


def compiling() -> str:
    """Say how long the first use compiles kernels, if there are none yet."""
    # The cache of `replifed.kernels`, whose import would load numba.
    cache = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parents[1] / "kernels/__pycache__")
    return "" if any(cache.glob("kernels-*")) else "; and up to 1 min to compile, once"


def weights(seconds: Mapping[int, float | None]) -> dict[int, float]:
    """Return the seconds of each job, with the mean of the known ones, or 1, for unknown ones.

    >>> weights({1: 2.0, 2: None, 3: 4.0}), weights({1: None})
    ({1: 2.0, 2: 3.0, 3: 4.0}, {1: 1.0})
    """
    known = [one for one in seconds.values() if one is not None]
    mean = sum(known) / len(known) if known else 1.0
    return {job: mean if one is None else one for job, one in seconds.items()}


def duration(seconds: float) -> str:
    """Return a time in one unit: below 100 in seconds, below 100 in minutes, or in hours."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


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
