"""What is ahead of a call, and the one line that says how far it is."""

from __future__ import annotations

import fcntl
import logging
import os
import pty
import re
import socket
import struct
import sys
import termios
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.exceptions import LockException, format_exception_to_string
from snakemake.logging import ColorizingTextHandler

from replifed import progress
from replifed.cli import make
from replifed.errors import ConfigError, DataError
from replifed.workflow import costs, running, screen

HERE = socket.gethostname()
HEAD = "s\th:m:s\tmax_rss\n"


@pytest.fixture
def benchmarks(tmp_path):
    for name, seconds in {"fedht/mnist/fedavg": 12.34, "report": 1.0, "fedht/fig1": 0.5}.items():
        file = tmp_path / f"benchmarks/{name}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{HEAD}99\t-\t1\n{seconds}\t-\t1\n")
    (tmp_path / "benchmarks/failed.tsv").write_text("")
    return tmp_path / "benchmarks"


def test_costs_are_recorded_by_scale(benchmarks, tmp_path):
    file = tmp_path / "costs.csv"
    assert costs.record("small", benchmarks, file) == costs.record("paper", benchmarks, file) == 3
    (benchmarks / "report.tsv").write_text(f"{HEAD}3\t-\t1\n")
    costs.record("small", benchmarks, file)
    assert costs.read("paper", file) == {"fedht/mnist/fedavg": 12.3, "fedht/fig1": 0.5, "report": 1.0}
    assert costs.read("small", file)["report"] == 3.0
    assert len(file.read_text().splitlines()) == 7
    with pytest.raises(DataError, match="holds no benchmark files; they come with"):
        costs.record("small", tmp_path / "nowhere", file)


@pytest.mark.parametrize(("seconds", "text"), [(0, "1 s"), (99, "99 s"), (150, "2 min"), (9000, "2.5 h")])
def test_a_time_has_one_unit(seconds, text):
    assert costs.duration(seconds) == text


def record(event="", level=logging.INFO, **more):
    event = SimpleNamespace(name=event) if event else None
    return logging.makeLogRecord({"event": event, "levelno": level, "msg": "", **more})


def test_one_line_a_finished_job_says_what_is_left(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(screen.time, "monotonic", lambda: now[0])
    one = screen.OneLine(logging.Formatter(), overwrite=False)
    one.begin({0: 10.0, 1: 30.0})
    assert not one.passes(record("JOB_INFO", jobid=0, rule_msg="fedht: tune fedht", rule_name="tune"))
    now[0] += 5
    assert one.line() == "0 of 2 jobs done in 5 s; fedht: tune fedht" and one.passes(record())
    now[0] += 15
    assert one.format(record("JOB_FINISHED", job_id=0)) == "1 of 2 jobs done in 20 s, about 60 s left"
    assert one.format(record("JOB_FINISHED", job_id=7)) == ""
    assert one.format(record(msg="Select jobs to execute...")) == ""
    assert one.format(record(level=logging.ERROR, msg="a fault")) == "a fault"
    now[0] += 50
    assert one.format(record("JOB_FINISHED", job_id=1)) == "2 of 2 jobs done in 70 s" and one.over


def on_files(exception, files):
    """As Snakemake formats it."""
    return f"{exception} in rule x in file y, line 1:\nOutput for rule x:\n    affected files:" + "".join(
        f"\n        {file}" for file in files
    )


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            format_exception_to_string(LockException()),
            "another call runs in this folder (process 7, since 2026-01-02 03:04): wait until",
        ),
        (
            on_files("ProtectedOutputException", ["results/a.parquet"]),
            "results/a.parquet, one of 1 such file: ",
        ),
        (
            on_files("ImproperOutputException", ["a", "b"]),
            "a, one of 2 such files: a folder is where a file ",
        ),
    ],
)
def test_several_lines_of_snakemake_are_one_with_a_cure(monkeypatch, error, says):
    monkeypatch.setattr(screen.running, "_others", lambda: ([running.Call(HERE, 7, "2026-01-02 03:04")], []))
    line = screen.FailuresOnce(logging.Formatter()).format(record(level=logging.ERROR, msg=error))
    assert line.startswith(f"replifed: error: {says}") and len(line.splitlines()) == 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "_held", [])
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    running.FOLDER.mkdir()
    return tmp_path


def test_the_lock_of_a_killed_call_is_removed(folder, capsys):
    (running.FOLDER / f"{HERE}.999999999").write_text("2026-01-02 03:04")
    running.enter()
    assert (
        "was killed (process 999999999, since 2026-01-02 03:04); its lock is removed"
        in capsys.readouterr().err
    )
    assert not Path(".snakemake/locks").exists()
    assert [file.name for file in running.FOLDER.iterdir()] == [f"{HERE}.{os.getpid()}"]


@pytest.mark.parametrize("host", [HERE, "elsewhere"])
def test_the_lock_of_a_call_that_runs_or_may_stays(folder, host):
    (running.FOLDER / f"{HERE}.999999999").touch()
    with (running.FOLDER / f"{host}.999999998").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("2026-01-02 03:04")
        held.flush()
        running.enter()
        assert Path(".snakemake/locks").is_dir()
        place = "" if host == HERE else " on elsewhere"
        said = running.locked()
        assert f"(process 999999998{place}, since 2026-01-02 03:04)" in said
        assert ("if it was killed: `snakemake --unlock`" in said) == (host != HERE)


def test_where_lines_stay_they_come_at_intervals(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(screen.time, "monotonic", lambda: now[0])
    one = screen.OneLine(logging.Formatter(), overwrite=False)
    one.begin(dict.fromkeys(range(4), 1.0))
    said = []
    for now[0], job in ((1, 0), (11, 1), (12, 2)):
        said.append(one.format(record("JOB_FINISHED", job_id=job))[:6])
    assert said == ["", "2 of 4", ""]
    now[0] = 70
    assert one.tick() == ""
    now[0] = 72
    assert one.tick() == "3 of 4 jobs done in 72 s, about 24 s left\n" and one.tick() == ""


@pytest.fixture
def terminal(monkeypatch):
    """A function that makes standard error a terminal with a number of columns."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:

        def columns(count):
            monkeypatch.setattr(sys, "stderr", stream)  # here, since pytest sets its own before a test
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, count, 0, 0))

        yield columns
    os.close(ours)


def test_on_a_terminal_a_bar_takes_the_place_of_the_last_one(terminal, monkeypatch):
    terminal(60)
    one = screen.OneLine(logging.Formatter(), overwrite=True)
    one.begin({0: 1.0, 1: 1.0})
    one.passes(record("JOB_INFO", jobid=1, rule_msg=None, rule_name="tune everything"))
    assert one.line() == f"{progress.CLEAR}{'─' * 18} 0 of 2 jobs done in 1 s; tune everything"
    first = one.format(record("JOB_FINISHED", job_id=0))
    drawn = re.fullmatch(r"\r\x1b\[K(━+)(─+) 1 of 2 jobs done in 1 s, about 1 s left", first)
    assert (len(drawn[1]), len(drawn[2]), len(first)) == (9, 10, 4 + 59)
    for width, begins in ((45, "1 of 2 jobs"), (10, "1 of 2 jo"), (1, "")):
        terminal(width)
        line = one.line().removeprefix(progress.CLEAR)
        assert line.startswith(begins) and len(line) < width
    assert one.format(record(level=logging.ERROR, msg="a fault")) == f"{progress.CLEAR}a fault\n"
    assert one.format(record("JOB_FINISHED", job_id=1)) == f"{progress.CLEAR}2 of 2 jobs done in 1 s\n"
    assert progress.redraws(sys.stderr)
    monkeypatch.setenv("TERM", "dumb")
    assert not progress.redraws(sys.stderr)


def test_a_command_draws_a_bar_once_it_takes_a_while(terminal, monkeypatch):
    terminal(60)
    now, said = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "write", said.append)
    shown = progress.Bar("diff")
    for now[0], done in ((1, 1), (3, 2), (3.1, 3), (4, 4)):
        shown("files compared", done, 4)
    assert [re.sub("[━─]+", "=", one) for one in said if one] == [
        f"{progress.CLEAR}= diff: files compared, 2 of 4 done",
        progress.CLEAR,
    ]


def test_no_colours_where_they_are_not_wanted(terminal, monkeypatch):
    terminal(60)
    handler = ColorizingTextHandler(stream=sys.stderr, formatter=logging.Formatter())
    monkeypatch.setattr(logging.getLogger("snakemake.logging"), "handlers", [handler])
    screen.show_failures_once()
    assert not handler.nocolor
    monkeypatch.setenv("NO_COLOR", "1")
    screen.show_one_line()
    assert handler.nocolor and handler.terminator == ""


CONFIG = {
    "papers": ["fedht", "fedplt"],
    "paths": {"figures": "figures/small", "results": "results/small"},
    "fedht": {"artefacts": {"fig1": {"kind": "figure"}}},
    "fedplt": {"artefacts": {"fig1": {"kind": "figure"}, "table2": {"kind": "table"}}},
}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("fedplt/fig1", "fedplt/fig1"),
        ("figures/small/fedplt/fig1.png", "fedplt/fig1"),
        ("./figures/small/fedplt/table2.md", "fedplt/table2"),
        ("fedht", "fedht"),
        ("all", "all"),
        ("report", "report"),
    ],
)
def test_names_and_the_paths_that_are_printed(given, name):
    assert make.named(given, CONFIG) == name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("fig1", "nothing is called 'fig1'; did you mean fedht/fig1 or fedplt/fig1?"),
        ("fedplt/fgi1", "unknown artefact of fedplt 'fgi1'; did you mean 'fig1'?"),
        ("figures/small/fedplt/fig2.pdf", "unknown artefact of fedplt 'fig2'; did you mean 'fig1'?"),
        (
            "figures/fedplt/fig1.pdf",
            "nothing is called 'figures/fedplt/fig1.pdf'; did you mean 'fedplt/fig1'?",
        ),
        ("fedpl/table2", "nothing is called 'fedpl/table2'; did you mean 'fedplt/table2'?"),
        ("xyz", "nothing is called 'xyz'; `replifed list` prints all names"),
    ],
)
def test_a_name_that_nothing_has(given, says):
    with pytest.raises(ConfigError) as caught:
        make.named(given, CONFIG)
    assert says in str(caught.value)
