"""Signals and hindrances amid a call, on demand: each ends in one line, and the next call works."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial

import psutil
import pytest

from copies import copy_repository, surroundings

pytestmark = pytest.mark.on_demand
SETTINGS = ("--configfile", "config/tiny.yaml", "--cores", "2")
RUN = "results/tiny/fedplt/splitting_classification/fedplt.parquet"  # takes some seconds
CALLS = {"make": ("replifed", "make", "fedplt", *SETTINGS), "snakemake": ("snakemake", RUN, *SETTINGS)}
LEFT = (".snakemake/locks/*", ".snakemake/running/*", "results/**/.*.parquet", "results/**/.*.json")
SIGNALS = [
    (number, group)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    for group in ((True, False) if number != signal.SIGKILL else (True,))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return copy_repository(tmp_path_factory.mktemp("signals"), stubs={}, papers=None).folder


@pytest.fixture(autouse=True)
def nothing_made(folder):
    for made in ("results", "figures"):
        shutil.rmtree(folder / made, ignore_errors=True)


def start(folder, *words, **env):
    """A call in a session of its own, as from a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**surroundings(), "PYTHONPATH": str(folder / "src"), **env},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )


def job_of(process):
    """The first job of a call, as soon as it runs."""
    while process.poll() is None:
        for one in psutil.Process(process.pid).children(recursive=True):
            try:
                if one.cmdline()[1:4] == ["-m", "replifed", "job"]:
                    return one
            except psutil.Error:
                continue
        time.sleep(0.05)
    raise AssertionError(f"no job ran: {process.communicate()[0]}")


def works(folder):
    """Whether another call makes the file."""
    (folder / RUN).unlink(missing_ok=True)
    process = start(folder, *CALLS["snakemake"])
    said = process.communicate()[0]
    assert process.returncode == 0 and (folder / RUN).is_file(), said


def stopped(folder, name, number, group, wait):
    """What a call says that gets a signal, alone or with all its processes, and how long it takes to end."""
    process = start(folder, *CALLS[name])
    wait(process)
    os.killpg(process.pid, number) if group else process.send_signal(number)
    begin, said = time.monotonic(), process.communicate()[0]
    return said, time.monotonic() - begin


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("number", "group"), SIGNALS)
def test_a_signal_during_a_job_says_how_to_go_on_and_leaves_nothing(folder, name, number, group):
    def wait(process):
        job_of(process)
        time.sleep(1)

    said, seconds = stopped(folder, name, number, group, wait)
    if number != signal.SIGKILL:
        assert "Traceback" not in said and said.count("ive the same command again to go on") == 1, said
        assert seconds < 60 and [file for place in LEFT for file in folder.glob(place)] == []
    works(folder)


@pytest.mark.parametrize("seconds", [0.2, 1.0, 2.0, 4.0])
def test_an_interrupt_at_any_time_leaves_nothing(folder, seconds):
    _, took = stopped(folder, "make", signal.SIGINT, True, lambda _: time.sleep(seconds))
    assert took < 60 and [file for place in LEFT for file in folder.glob(place)] == []
    works(folder)


def test_a_job_that_is_killed_as_where_memory_runs_out(folder):
    process = start(folder, *CALLS["snakemake"])
    job_of(process).kill()
    said = process.communicate()[0]
    assert "the job was killed, as the system does when memory runs out" in said
    assert "replifed job" not in said, "the whole command is shown"
    works(folder)


def test_two_calls_at_once(folder):
    first = start(folder, *CALLS["snakemake"])
    job_of(first)
    second = start(folder, *CALLS["snakemake"])
    said = second.communicate()[0]
    first.communicate()
    (line,) = (line for line in said.splitlines() if "another call runs" in line)
    assert f"(process {first.pid}, since 2" in line and (first.returncode, second.returncode != 0) == (
        0,
        True,
    )


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null"])
def test_without_a_home_caches_are_kept_elsewhere(folder, home):
    process = start(folder, "snakemake", "-n", RUN, *SETTINGS, HOME=home, XDG_CACHE_HOME="")
    said = process.communicate()[0]
    assert process.returncode == 0 and said.count("caches are kept in") == 1
