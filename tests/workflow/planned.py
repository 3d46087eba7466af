"""The jobs of the workflow as its table has them: what each is made from, and which of them a change reruns.

Snakemake takes seconds to say so. That its rules say the same is tested on dry runs of all papers, of an edit
and of a setting; all other questions are asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from replifed.store import provenance
from replifed.workflow.jobs import Table
from replifed.workflow.targets import targets

SRC = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Job:
    """A job by its message: the files that it makes, those that it needs (sources too), and its settings."""

    message: str
    makes: frozenset[str]
    needs: frozenset[str]
    settings: str = ""


@cache
def _sources(modules: tuple[str, ...]) -> list[str]:
    """Names of the source files of modules, such as ``replifed/simulate.py``."""
    return [line.partition("  ")[2] for line in provenance.source_listing(modules, SRC).splitlines()]


def planned(config: Mapping[str, Any]) -> dict[str, Job]:
    """Return the jobs behind `all` by their messages, where each makes one thing."""
    table, found = Table(config), {}
    for key in table.needed(targets(table)["all"]):
        job = table[key]
        needs = [*table.files(*job.upstream), *job.files, *_sources(tuple(job.sources))]
        settings = provenance.canonical_json([{**job.settings}, {**job.options}])
        found[job.description] = Job(job.description, frozenset(table.files(key)), frozenset(needs), settings)
    return found


def rerun(before: Mapping[str, Job], after: Mapping[str, Job], edited: Iterable[str] = ()) -> set[str]:
    """Return the messages of the jobs that run anew once settings have changed or files have been edited."""
    changed = set(edited)
    again: set[str] = set()
    while True:
        due = {
            message
            for message, job in after.items()
            if job != before.get(message) or not changed.isdisjoint(job.needs)
        }
        if due == again:
            return again
        again = due
        changed.update(*(after[message].makes for message in due))
