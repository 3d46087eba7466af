"""Snakemake's output on the screen: the error of a failed job, once, and the progress of a call."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import psutil

from replifed.errors import counted
from replifed.progress import CLEAR, bar, redraws
from replifed.workflow import running
from replifed.workflow.costs import duration

# Snakemake's own lines on a failed job, which repeat the job's; Snakemake's log file has them all.
_REPEATED = (
    "RuleException:\nCalledProcessError",
    "WorkflowError:\nAt least one job did not complete successfully",
    "Shutting down, this might take some time",
    "Exiting because a job execution failed",
    "Complete log(s):",
)
_ERROR = "replifed: error: "
# Snakemake's exceptions on files that a job would write, which it lists at the end.
_ON_FILES = {
    "ProtectedOutputException": "it cannot be written; make it writable, or set other `paths`",
    "ImproperOutputException": "a folder is where a file should be; remove it",
}
# Set by Ctrl-C, SIGTERM and SIGHUP.
interrupted = threading.Event()
# Of a message of the plugin: the job's number at Slurm, and how it ended; and what it adds.
_ENDED = re.compile(r"SLURM-job '(\w+)' .*SLURM status is: '([A-Z_]+)'", re.DOTALL)
_SURPLUS = re.compile(r"\s*(sbatch call:|For further error details).*", re.DOTALL)
_MORE = {"TIMEOUT": "runtime=MINUTES", "OUT_OF_MEMORY": "mem_mb=MB"}


class FailuresOnce(logging.Formatter):
    """Formats a job's failure in two lines, and passes all else on to another formatter."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record; Snakemake does not print an empty one."""
        if error := {"JOB_ERROR": failure, "GROUP_ERROR": group_failure}.get(_event(record)):
            return "" if interrupted.is_set() else error(record)
        text = self._inner.format(record)
        if text.startswith("LockException"):
            return f"{_ERROR}{running.locked()}"
        for exception, why in _ON_FILES.items():
            if text.startswith(exception):
                files = text.partition("affected files:\n")[2].split("\n")
                return f"{_ERROR}{files[0].strip()}, one of {counted(len(files), 'such file')}: {why}"
        return "" if text.startswith(_REPEATED) else text


class OneLine(FailuresOnce):
    """Shows errors alone, and after each job how many are done, how long the others may take, and what runs.

    The remaining time is the recorded cost of unfinished jobs, scaled by the pace of the finished ones. With
    `overwrite`, for a terminal, each line is drawn behind a bar, and replaces the last one; else one comes
    every ten seconds at most, and at least every minute.
    """

    _SOONEST, _LATEST = 10.0, 60.0

    def __init__(self, inner: logging.Formatter, overwrite: bool) -> None:
        super().__init__(inner)
        self._overwrite = overwrite
        self._ahead: dict[int, float] = {}
        self._done: set[int] = set()
        self._running: dict[int, str] = {}  # what jobs do, in the order in which they began
        self._begin = self._said = time.monotonic()

    def begin(self, ahead: Mapping[int, float]) -> None:
        """Start the clock; `ahead` has the recorded seconds of each job, by its number."""
        self._ahead, self._begin = dict(ahead), time.monotonic()
        self._said = self._begin

    def passes(self, record: logging.LogRecord) -> bool:
        """Note a job that begins, and return False for its record, which takes a line even without text."""
        if _event(record) != "JOB_INFO":
            return True
        job: Any = record
        self._running[job.jobid] = job.rule_msg or job.rule_name
        return False

    def format(self, record: logging.LogRecord) -> str:
        """Return an error, or the line of progress if a job has ended, or nothing."""
        if _event(record) == "JOB_FINISHED":
            job: Any = getattr(record, "job_id", None)
            self._running.pop(job, None)
            if job not in self._ahead:
                return ""
            self._done.add(job)
            return self.line() if self.over else self.line(self._SOONEST)
        text = super().format(record)
        if record.levelno < logging.WARNING and not text.startswith("Nothing to be done"):
            return ""
        return f"{CLEAR}{text}\n" if self._overwrite and text else text

    @property
    def over(self) -> bool:
        """True when all jobs are done."""
        return len(self._done) == len(self._ahead)

    def line(self, pause: float = 0.0) -> str:
        """Return the number of finished jobs, and the time that the others may take.

        Where lines stay, it is empty for `pause` seconds after the last one.
        """
        now, done = time.monotonic(), sum(self._ahead[job] for job in self._done)
        if not self._overwrite and now - self._said < pause:
            return ""
        self._said, passed = now, now - self._begin
        every = sum(self._ahead.values())
        eta = f", about {duration(passed * (every - done) / done)} left" if done and not self.over else ""
        text = f"{len(self._done)} of {len(self._ahead)} jobs done in {duration(passed)}{eta}"
        running = "".join(f"; {job}" for job in [*self._running.values()][:1])  # a copy: jobs begin meanwhile
        if not self._overwrite:
            return text + running
        return CLEAR + (f"{text}\n" if self.over else bar(done / every, text, sys.stderr, running))

    def tick(self) -> str:
        """Return what to write each second while jobs run: a line anew, or after a minute another one."""
        text = self.line(self._LATEST)
        return text if self._overwrite or not text else f"{text}\n"


def notice_interrupts() -> None:
    """On Ctrl-C, SIGTERM and SIGHUP, set `interrupted`, end the jobs, which then have not failed, and stop.

    Once only: Snakemake removes its lock when it stops, which another signal would break off.
    """

    def handle(number: int, frame: Any) -> None:
        if not interrupted.is_set():
            interrupted.set()
            with contextlib.suppress(psutil.Error):
                _end_jobs()
            raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():  # no other thread may
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as of nohup
                signal.signal(number, handle)


def _end_jobs() -> None:
    """Ask the processes that this one has started to end, but for the shells, which wait for these."""
    below, parents = psutil.Process().children(recursive=True), set()
    for one in below:
        with contextlib.suppress(psutil.Error):  # it has ended since
            parents.add(one.ppid())
    for one in below:
        if one.pid not in parents:
            with contextlib.suppress(psutil.Error):
                one.terminate()


def _event(record: logging.LogRecord) -> str:
    return getattr(getattr(record, "event", None), "name", "")


def failure(job: Any) -> str:
    """Return the error of a job, unless its command has shown it already, and the name of what failed.

    Of a job in a group that holds only if it left an error: the others have not failed, or not by themselves.
    """
    more = vars(job)
    grouped = more.get("indent", False)
    remote = grouped or "external_jobid" in more.get("aux", {})
    own = [Path(file) for file in job.log if not (remote and Path(file).is_absolute())]
    said = slurm_reason(more.get("rule_msg") or "", job.rule_name)
    if said or ("| tee" in (job.shellcmd or "") and not remote):
        lines = [f"{_ERROR}{said}"] if said else []
    else:
        lines = [line for file in own for line in error_lines(file)]
    if grouped and not any(line.startswith(_ERROR) for line in lines):
        return ""
    made, logs = ", ".join([*job.output][:1]), ", ".join(job.log)
    failed = f"failed: {job.rule_name}" + (f", which makes {made}" if made else "")
    return "\n".join([*lines, failed + (f"; its log: {logs}" if logs else "")])


def group_failure(group: Any) -> str:
    """Return why a group of jobs was ended, if it was; its jobs' errors come after it."""
    lines = [f"{_ERROR}{line}" for line in slurm_reasons(group.aux_logs)]
    failed = (
        f"failed: job {group.external_jobid} of the cluster, with {counted(len(group.job_error_info), 'job')}"
    )
    return "\n".join([*lines, f"{failed}; its log: {', '.join(group.aux_logs)}"])


def error_lines(log: Path) -> list[str]:
    """Return the last error in a job's log, with its indented lines; or the whole log, as of a bug."""
    if not log.is_file():
        return []
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [index for index, line in enumerate(lines) if line.startswith(_ERROR)]
    if not errors:
        return lines
    first, *rest = lines[errors[-1] :]
    return [first, *takewhile(lambda line: line.startswith("  "), rest)]


def _handlers() -> list[Any]:
    """Return Snakemake's handlers for the screen, without those for files."""
    every = logging.getLogger("snakemake.logging").handlers
    return [one for one in every if type(one).__name__ == "ColorizingTextHandler" and one.formatter]


def _show_by(formatter: Callable[[Any], logging.Formatter]) -> Iterator[Any]:
    """Give each handler for the screen a formatter; yield it. Colours are left out where NO_COLOR is set."""
    for handler in _handlers():
        handler.nocolor = handler.nocolor or bool(os.environ.get("NO_COLOR"))
        handler.setFormatter(formatter(handler))
        yield handler


def show_failures_once() -> None:
    """Show the error of a failed job once, and of Snakemake's lines on it only the name of what failed."""
    for _ in _show_by(lambda handler: FailuresOnce(handler.formatter)):
        pass


def show_one_line() -> None:
    """Show errors, as `show_failures_once` does, and one line of progress instead of all other output."""
    for handler in _show_by(lambda handler: OneLine(handler.formatter, redraws(handler.stream))):
        handler.addFilter(handler.formatter.passes)
        if redraws(handler.stream):
            handler.terminator = ""


def begin(ahead: Mapping[int, float]) -> None:
    """Count the jobs `ahead` on the line of progress, if shown, which is brought up to date every second."""
    for handler in _handlers():
        if isinstance(handler.formatter, OneLine):
            handler.formatter.begin(ahead)
            threading.Thread(target=_tick, args=(handler, handler.formatter), daemon=True).start()


def _tick(handler: Any, one: OneLine) -> None:
    while not one.over:
        with handler.lock:
            handler.stream.write(one.tick())
            handler.flush()
        time.sleep(1)


def slurm_reason(message: str, rule: str) -> str:
    """Return in one line what a message of the plugin says of a job, or "" if the job itself has failed.

    >>> slurm_reason("SLURM-job '5' failed, SLURM status is: 'TIMEOUT'", "tune")
    'Slurm ended job 5: TIMEOUT; for more: --set-resources tune:runtime=MINUTES'
    >>> slurm_reason("SLURM-job '5' failed, SLURM status is: 'FAILED'", "tune")
    ''
    """
    ended = _ENDED.match(message)
    if not ended:
        return " ".join(_SURPLUS.sub("", message).split())
    job, how = ended.groups()
    if how == "FAILED":
        return ""
    more = f"; for more: --set-resources {rule}:{_MORE[how]}" if how in _MORE else ""
    return f"Slurm ended job {job}: {how}{more}"


def slurm_reasons(logs: Iterable[str]) -> list[str]:
    """Return what Slurm's logs of a job say of its end, such as ``Slurm ended JOB 5 ON n CANCELLED AT``."""
    texts = [Path(log).read_text(encoding="utf-8", errors="replace") for log in logs if Path(log).is_file()]
    found = [line for text in texts for line in re.findall(r"\*\*\* (JOB .*) \*\*\*", text)]
    return [f"Slurm ended {line}" for line in found]
