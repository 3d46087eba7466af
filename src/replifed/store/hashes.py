"""Hashes of stored files, written next to each in ``.hashes/`` by the job that made it.

Snakemake compares times: whatever was written last, by whomever, counts as the result. So each job records
the hashes of its outputs, and does not read a file that differs from its record; the manifest is compiled
from these records.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from replifed.errors import DataError
from replifed.store.atomic import write_text

FOLDER = ".hashes"
_RECORD = re.compile(r"([0-9a-f]{64}) ([0-9]{1,18})\n?")
# Set by the workflow for its jobs: the user's ``--configfile ...`` and ``--config ...``, which commands for
# targets need.
CONFIGFILES_VARIABLE, CONFIG_VARIABLE = "REPLIFED_CONFIGFILES", "REPLIFED_CONFIG"


class Stored(NamedTuple):
    """Hash and size of a file."""

    sha256: str
    bytes: int


def file_hash(path: Path, algorithm: str = "sha256") -> str:
    """Return a hash of the file's bytes (md5 for comparison with published sums only)."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, algorithm).hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def measure(path: Path) -> Stored:
    """Return the present hash and size of a file."""
    return Stored(file_hash(path), path.stat().st_size)


def record(paths: Iterable[Path]) -> None:
    """Record the hashes of files that the caller has made; missing ones are skipped."""
    for path in filter(Path.is_file, paths):
        write_text(path.parent / FOLDER / path.name, "{} {}\n".format(*measure(path)))


def recorded(path: Path) -> Stored | None:
    """Return the hash and size that were recorded when the file was made, or None without a record."""
    try:
        text = (path.parent / FOLDER / path.name).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        text = ""
    found = _RECORD.fullmatch(text)
    # A damaged record fits no file.
    return Stored(found[1], int(found[2])) if found else Stored("", 0)


def check(paths: Iterable[Path]) -> None:
    """Raise a `DataError` for files that have changed and, in a job of the workflow, for unrecorded ones.

    A file that someone passes by hand has no record. The error has one line for each file, with the command
    that makes it anew.
    """
    errors = []
    for path in filter(Path.is_file, paths):
        known = recorded(path)
        if known is not None and known != measure(path):
            error = "has changed since it was made"
        elif known is None and CONFIGFILES_VARIABLE in os.environ:
            error = "has no record of its hash: an older version or someone else made it"
        else:
            continue
        errors.append(f"{path} {error}; make it anew: `{remake(path)}`")
    if errors:
        raise DataError("\n".join(errors))


def remake(path: Path) -> str:
    """Return the command that makes a file of the workflow anew."""
    if path.parent.parent.name == "raw":  # fetching keeps existing files, so it has to go first
        dataset = path.parent.with_name(f"{path.parent.name}.json")
        return f"rm {shlex.quote(str(path))} && {snakemake(dataset, '--force')}"
    if path.parent.parent.name == "reused":  # by the reference run
        return f"rm {shlex.quote(str(path))} && replifed compare ARGUMENTS"
    return snakemake(path, "--force")


def snakemake(target: str | Path, option: str = "") -> str:
    """Return the command that makes a target with the configuration in use."""
    given = [os.environ.get(name) for name in (CONFIGFILES_VARIABLE, CONFIG_VARIABLE)]
    return " ".join(filter(None, ["snakemake", shlex.quote(str(target)), "--cores 2", option, *given]))
