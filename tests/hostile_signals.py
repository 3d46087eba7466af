"""Signals and hindrances in the midst of a call: each ends in one line, and the next call works.

`python tests/hostile_signals.py [NAME ...]` prints a table of all kinds, on the tiny settings: ten minutes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).with_name("workflow")))

from copies import copy_repository, surroundings

SETTINGS = ("--configfile", "config/tiny.yaml", "--cores", "2")
RUN = "results/tiny/fedplt/splitting_classification/fedplt.parquet"  # takes some seconds
MAKE = ("-m", "replifed", "make", "fedplt", *SETTINGS)
SNAKEMAKE = ("-m", "snakemake", RUN, *SETTINGS)
GO_ON = "ive the same command again to go on"


def start(folder: Path, words: tuple[str, ...], **env: str) -> subprocess.Popen[str]:
    """Call in a session of its own, as from a terminal."""
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**surroundings(), "PYTHONPATH": str(folder / "src"), **env},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )


def job_of(process: subprocess.Popen[str], folder: Path) -> psutil.Process | None:
    """The first job of a call, as soon as it runs; None if the call ends before."""
    while process.poll() is None:
        for one in psutil.Process(process.pid).children(recursive=True):
            try:
                if one.cmdline()[1:4] == ["-m", "replifed", "job"]:
                    return one
            except psutil.Error:
                continue
        time.sleep(0.05)
    return None


def left(folder: Path) -> list[str]:
    """Locks, records of calls, and temporary files."""
    places = (".snakemake/locks/*", ".snakemake/running/*", "results/**/.*.parquet", "results/**/.*.json")
    return [str(file.relative_to(folder)) for place in places for file in folder.glob(place)]


def next_call(folder: Path) -> str | None:
    """Make the file with another call; return what is wrong."""
    (folder / RUN).unlink(missing_ok=True)
    process = start(folder, SNAKEMAKE)
    said = process.communicate()[0]
    return (
        None
        if process.returncode == 0 and (folder / RUN).is_file()
        else f"the next call failed: {said[-300:]}"
    )


def stopped(
    folder: Path, words: tuple[str, ...], number: signal.Signals, group: bool, wait: float | None
) -> str | None:
    """Send a signal to a call, alone or to all its processes, after some seconds or when a job runs."""
    for made in ("results", "figures"):
        shutil.rmtree(folder / made, ignore_errors=True)
    process = start(folder, words)
    if wait is None:
        job_of(process, folder)
        time.sleep(1)
    else:
        time.sleep(wait)
    os.killpg(process.pid, number) if group else process.send_signal(number)
    begin, said = time.monotonic(), process.communicate()[0]
    if number != signal.SIGKILL:
        if "Traceback" in said and wait is None:
            return f"traceback: {said[-300:]}"
        if wait is None and said.count(GO_ON) != 1:
            return f"does not say how to go on: {said[-300:]}"
        if time.monotonic() - begin > 60:
            return "took more than a minute"
        if files := left(folder):
            return f"left {files}"
    return next_call(folder)


def killed_job(folder: Path) -> str | None:
    """Kill a job, as a system does that is out of memory."""
    (folder / RUN).unlink(missing_ok=True)
    process = start(folder, SNAKEMAKE)
    job = job_of(process, folder)
    if job is None:
        return "no job ran"
    job.kill()
    said = process.communicate()[0]
    if "the job was killed, as the system does when memory runs out" not in said:
        return f"memory is not named: {said[-300:]}"
    if "replifed job" in said:
        return "the whole command is shown"
    return next_call(folder)


def two_calls(folder: Path) -> str | None:
    """Make the same file by two calls at once."""
    (folder / RUN).unlink(missing_ok=True)
    first = start(folder, SNAKEMAKE)
    job_of(first, folder)
    second = start(folder, SNAKEMAKE)
    said = second.communicate()[0]
    first.communicate()
    [line] = [line for line in said.splitlines() if "another call runs" in line] or [""]
    if second.returncode == 0 or f"(process {first.pid}, since 2" not in line:
        return f"the other call is not named: {said[-300:]}"
    return None if first.returncode == 0 else "the first call failed"


def no_home(folder: Path, home: str) -> str | None:
    """Work without a home in which anything can be written."""
    process = start(folder, ("-m", "snakemake", "-n", RUN, *SETTINGS), HOME=home, XDG_CACHE_HOME="")
    said = process.communicate()[0]
    told = [line for line in said.splitlines() if "caches are kept in" in line]
    return None if process.returncode == 0 and len(told) == 1 else f"says {said[-300:]}"


def kinds(folder: Path) -> dict[str, Callable[[], str | None]]:
    """Each kind, by name: a function that returns what is wrong with how it ends, or None."""
    found: dict[str, Callable[[], str | None]] = {}
    for name, words in (("make", MAKE), ("snakemake", SNAKEMAKE)):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            for group in (True, False) if number != signal.SIGKILL else (True,):
                to = "all processes of" if group else ""
                key = f"{number.name} to {to} {name}".replace("  ", " ")
                found[key] = partial(stopped, folder, words, number, group, None)
    for wait in (0.2, 1.0, 2.0, 4.0):
        key = f"SIGINT to all processes of make after {wait} s"
        found[key] = partial(stopped, folder, MAKE, signal.SIGINT, True, wait)
    found["a job killed"] = partial(killed_job, folder)
    found["two calls"] = partial(two_calls, folder)
    for home in ("/proc/nowhere", "/dev/null"):
        found[f"home {home}"] = partial(no_home, folder, home)
    return found


def main(*names: str) -> int:
    """Print a table of all kinds, or of those named; return the number of faults."""
    with tempfile.TemporaryDirectory() as place:
        every = kinds(copy_repository(Path(place), stubs={}, papers=None).folder)
        faults = 0
        for name in names or every:
            fault = every[name]()
            faults += fault is not None
            print(f"{name:50}  {fault or 'held'}", flush=True)
    print(f"{len(names or every) - faults} of {len(names or every)} held")
    return faults


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
