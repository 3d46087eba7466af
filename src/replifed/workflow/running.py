"""Calls of the workflow that run in this folder: a file for each, which its process holds locked.

Snakemake's own lock does not say who holds it, and outlives a process that is killed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TextIO

from replifed.store.atomic import explained, make_folder

FOLDER = Path(".snakemake/running")
_LOCKS = Path(".snakemake/locks")  # Snakemake's
_held: list[TextIO] = []  # open, and so locked, until the process ends


class Call(NamedTuple):
    """A call of the workflow."""

    host: str
    process: int
    since: str

    def __str__(self) -> str:
        place = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"process {self.process}{place}, since {self.since}"


def enter() -> None:
    """Record this call; if an earlier one was killed and none runs, remove the locks that it left."""
    alive, dead = _others()
    if dead and not alive and _LOCKS.is_dir():
        shutil.rmtree(_LOCKS, ignore_errors=True)
        print(f"replifed: an earlier call was killed ({dead[0]}); its lock is removed", file=sys.stderr)
    call = Call(socket.gethostname(), os.getpid(), f"{datetime.now():%Y-%m-%d %H:%M}")
    file = FOLDER.absolute() / f"{call.host}.{call.process}"
    make_folder(FOLDER)
    # Another call must not find it before it is locked.
    unnamed = file.with_name(f"{file.name}.new")
    with explained(file):
        stream = unnamed.open("w", encoding="utf-8")
        stream.write(call.since)
        stream.flush()
        _lock(stream)
        unnamed.rename(file)
    _held.append(stream)
    atexit.register(file.unlink, missing_ok=True)


def locked() -> str:
    """Say in one line who runs here, instead of Snakemake's five on its lock."""
    alive, _ = _others()
    if alive:
        calls = "; ".join(map(str, alive))
        # Whether one on another machine, or in another container, still runs, nobody can tell from here.
        elsewhere = any(call.host != socket.gethostname() for call in alive)
        killed = "; if it was killed: `snakemake --unlock`" if elsewhere else ""
        return (
            f"another call runs in this folder ({calls}): wait until it has ended, or end it: `kill "
            f"PROCESS`{killed}"
        )
    return (
        "this folder is locked, but no call is known to run here: `snakemake --unlock`, then the same command"
    )


def _others() -> tuple[list[Call], list[Call]]:
    """Return the other calls that run here, or may, on another machine; and those that were killed."""
    alive, dead = [], []
    for file in sorted(FOLDER.glob("*.*")):
        host, _, process = file.name.rpartition(".")
        if not process.isdecimal() or (host, int(process)) == (socket.gethostname(), os.getpid()):
            continue
        with suppress(OSError), file.open("r+", encoding="utf-8", errors="replace") as stream:
            call = Call(host, int(process), stream.read(16))
            if host == socket.gethostname() and _lock(stream):
                dead.append(call)
                file.unlink()
            else:
                alive.append(call)
    return alive, dead


def _lock(stream: TextIO) -> bool:
    """Return True if no other process holds the file, which this one then does until it closes it."""
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
