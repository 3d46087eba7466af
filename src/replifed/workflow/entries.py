"""The file of jobs, which a call of the workflow writes once, and of which each job reads its own line.

Its first line holds the checked settings: the entry of a single claim is made of them when it is asked for.
Then come the settings of jobs, each once, and the jobs, which name the line of theirs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from replifed.errors import ConfigError
from replifed.store.atomic import write_text

if TYPE_CHECKING:
    from replifed.workflow.jobs import Table

# The variable with the file of jobs.
VARIABLE = "REPLIFED_JOBS"
# Of these kinds no hashes are recorded: raw files have pins, and a share goes with the join, which checks the
# hash inside; its record would stay.
_UNRECORDED = ("fetch", "share")
# These are not compared with their records: of pictures and tables reports only show what is there.
_UNCHECKED = (*_UNRECORDED, "figure", "table")
# It compares all files by itself.
_MANIFEST = "manifest"


class Entry(NamedTuple):
    """A job, with all that its function needs."""

    kind: str
    name: str
    log: str
    settings: dict[str, Any]
    options: dict[str, Any]
    is_recorded: bool  # whether the hashes of what it writes are
    reads: dict[str, list[Path]]  # by the names that the job has for them
    checked: list[Path]  # of what it reads, files that must be as their jobs left them
    out: list[Path]

    def first(self, name: str) -> Path | None:
        """Return the file of that name, or the first of several; None if the job reads none."""
        return self.reads[name][0] if name in self.reads else None


def write(table: Table) -> str:
    """Write all jobs of a table into a file that is called by its hash, and return its path."""
    lines = {json.dumps(table.config): 0}
    jobs = []
    for key in table:
        fields = _fields(table, key)
        number = lines.setdefault(fields["settings"], len(lines))
        jobs.append(f"{key}\t{json.dumps({**fields, 'settings': number})}")
    text = "\n".join([*lines, *jobs])
    file = Path(f".snakemake/replifed/jobs-{hashlib.sha256(text.encode()).hexdigest()[:32]}.txt")
    if not file.is_file():
        write_text(file, text)
    return str(file)


def read(keys: Sequence[str]) -> list[Entry]:
    """Return the entries of jobs from the file of this call.

    Raises
    ------
    ConfigError
        No call of the workflow has named its file, or there is no such job.
    """
    file = os.environ.get(VARIABLE)
    if file is None:
        raise ConfigError(f"only the workflow does jobs: {VARIABLE} is not set; ask for what they make")
    lines = Path(file).read_text(encoding="utf-8").split("\n")
    jobs = dict(line.split("\t") for line in lines if not line.startswith("{"))
    found = []
    for key in keys:
        if key in jobs:
            fields = json.loads(jobs[key])
            fields["settings"] = lines[fields["settings"]]
        else:
            fields = _of_claim(key, lines[0])
        fields["settings"] = json.loads(fields["settings"])
        fields["reads"] = {name: [*map(Path, files)] for name, files in fields["reads"].items()}
        found.append(Entry(**fields | {name: [*map(Path, fields[name])] for name in ("checked", "out")}))
    return found


def _of_claim(key: str, config: str) -> dict[str, Any]:
    """Return the fields of a single claim: a table has only those that were looked up."""
    from replifed.workflow.jobs import Table

    return _fields(Table(json.loads(config)), key)


def _fields(table: Table, key: str) -> dict[str, Any]:
    """Return the fields of a job's entry, as JSON has them, and its settings as JSON.

    Keys of settings are in the order in which they are hashed and stored.
    """
    job = table[key]
    checked = [one for one in job.upstream if table[one].kind not in _UNCHECKED and job.kind != _MANIFEST]
    return {
        "kind": job.kind,
        "name": job.name,
        "log": job.log,
        "settings": json.dumps({**job.settings}, sort_keys=True),
        "options": {**job.options},
        "is_recorded": job.kind not in _UNRECORDED,
        "reads": {name: table.files(one) for name, one in job.reads.items()},
        "checked": table.files(*checked),
        "out": table.files(key),
    }
