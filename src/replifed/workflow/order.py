"""The order in which jobs start: first those with which the longest chain of waiting jobs begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from typing import Any


def remaining(seconds: Mapping[int, float | None], before: Mapping[int, Iterable[int]]) -> dict[int, float]:
    """Return the seconds of the longest chain that begins with each job and ends with the last.

    A job waits for those `before` it. Jobs without a known time take none.

    >>> remaining({1: 5.0, 2: 3.0, 3: None, 4: 1.0}, {1: [], 2: [1], 3: [2], 4: []})
    {1: 8.0, 2: 3.0, 3: 0.0, 4: 1.0}
    """
    longest_after = dict.fromkeys(before, 0.0)
    found = {}
    for job in reversed([*TopologicalSorter(before).static_order()]):
        found[job] = (seconds.get(job) or 0.0) + longest_after[job]
        for one in before[job]:
            longest_after[one] = max(longest_after[one], found[job])
    return {job: found[job] for job in before}


def set_priorities(dag: Any, priorities: Mapping[int, float]) -> None:
    """Give jobs of a graph of Snakemake these priorities, by their ids, but for those of ``--prioritize``.

    Snakemake takes a priority from a rule, not from a job. Should it keep those of jobs in another place,
    they stay equal, and jobs start in another order.
    """
    kept = getattr(dag, "_priority", {})
    for job, priority in kept.items():
        if priority == 0 and job.jobid in priorities:
            kept[job] = round(priorities[job.jobid])
