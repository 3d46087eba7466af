"""What Snakemake says on the screen: of a failed job its own line, once; and how far a call is."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replifed.workflow.costs import duration

# What Snakemake says of a failed job beside what the job said itself; all of it is in Snakemake's log file.
_BESIDE = (
    "RuleException:\nCalledProcessError",
    "WorkflowError:\nAt least one job did not complete successfully",
    "Shutting down, this might take some time",
    "Exiting because a job execution failed",
    "Complete log(s):",
)
_OWN = "replifed: error: "
# Whether Ctrl-C was pressed.
interrupted = threading.Event()


class FailuresOnce(logging.Formatter):
    """Passes all on to another formatter but a job's failure, of which it gives two lines."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record; Snakemake prints nothing of an empty one."""
        if _event(record) == "JOB_ERROR":
            return "" if interrupted.is_set() else failure(record)
        text = self._inner.format(record)
        return "" if text.startswith(_BESIDE) else text


class OneLine(FailuresOnce):
    """Leaves out all but faults, and says after each job how many are done and how long the rest may take.

    The time left is that of the recorded costs of what is not done, by the pace of what is. `overwrite` is
    for a terminal: a line takes the place of the last one.
    """

    def __init__(self, inner: logging.Formatter, overwrite: bool) -> None:
        super().__init__(inner)
        self._overwrite = overwrite
        self._ahead: dict[int, float] = {}
        self._done: set[int] = set()
        self._begin = time.monotonic()

    def begin(self, ahead: Mapping[int, float]) -> None:
        """Count from now on; `ahead` are the seconds of the jobs ahead, by their numbers."""
        self._ahead, self._begin = dict(ahead), time.monotonic()

    def format(self, record: logging.LogRecord) -> str:
        """Return a fault, or the line of progress if a job has ended, or nothing."""
        if _event(record) == "JOB_FINISHED":
            job = getattr(record, "job_id", None)
            if job not in self._ahead:
                return ""
            self._done.add(job)
            return self.line()
        text = super().format(record)
        if record.levelno < logging.WARNING and not text.startswith("Nothing to be done"):
            return ""
        return f"\r\x1b[K{text}\n" if self._overwrite and text else text

    @property
    def over(self) -> bool:
        """Whether all jobs are done."""
        return len(self._done) == len(self._ahead)

    def line(self) -> str:
        """Return how many jobs are done, and how long the others may take."""
        left = sum(seconds for job, seconds in self._ahead.items() if job not in self._done)
        done = sum(self._ahead.values()) - left
        passed = time.monotonic() - self._begin
        time_left = f", about {duration(passed * left / done)} left" if done and left else ""
        text = f"{len(self._done)} of {len(self._ahead)} jobs done in {duration(passed)}{time_left}"
        if not self._overwrite:
            return text
        return f"\r\x1b[K{text}" + ("\n" if self.over else "")


def notice_interrupts() -> None:
    """Take note of Ctrl-C before all else: jobs that it ends have not failed."""
    default = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        interrupted.set()
        if callable(default):
            default(number, frame)

    if threading.current_thread() is threading.main_thread():  # no other may
        signal.signal(signal.SIGINT, note)


def _event(record: logging.LogRecord) -> str:
    return getattr(getattr(record, "event", None), "name", "")


def failure(job: Any) -> str:
    """Say what a job that failed had to say, unless its command has shown that already, and what failed."""
    shown = "| tee" in (job.shellcmd or "")
    said = [] if shown else [line for file in job.log for line in own_lines(Path(file))]
    made, logs = ", ".join([*job.output][:1]), ", ".join(job.log)
    what = f"failed: {job.rule_name}" + (f", which makes {made}" if made else "")
    return "\n".join([*said, what + (f"; its log: {logs}" if logs else "")])


def own_lines(log: Path) -> list[str]:
    """Return a job's refusal from its log; where there is none, as of a bug, the whole log."""
    if not log.is_file():
        return []
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith(_OWN)]
    if not starts:
        return lines
    more = lines[starts[-1] + 1 :]
    end = next((place for place, line in enumerate(more) if not line.startswith("  ")), len(more))
    return [lines[starts[-1]], *more[:end]]


def _handlers() -> list[Any]:
    """Return Snakemake's handlers for the screen, of which there is one, and none for files."""
    every = logging.getLogger("snakemake.logging").handlers
    return [one for one in every if type(one).__name__ == "ColorizingTextHandler" and one.formatter]


def show_failures_once() -> None:
    """Let a failed job say its own line once, and Snakemake none but what failed."""
    for handler in _handlers():
        handler.setFormatter(FailuresOnce(handler.formatter))


def show_one_line() -> None:
    """Do so, and show one line of progress in place of all else."""
    for handler in _handlers():
        handler.setFormatter(OneLine(handler.formatter, handler.is_tty))
        handler.addFilter(lambda record: _event(record) != "JOB_INFO")  # even without text it has a line
        if handler.is_tty:
            handler.terminator = ""


def begin(ahead: Mapping[int, float]) -> None:
    """Count the jobs ahead on the one line, if it is shown; on a terminal the time goes on by itself."""
    for handler in _handlers():
        if isinstance(handler.formatter, OneLine):
            handler.formatter.begin(ahead)
            if handler.is_tty:
                threading.Thread(target=_tick, args=(handler, handler.formatter), daemon=True).start()


def _tick(handler: Any, one: OneLine) -> None:
    while not one.over:
        with handler.lock:
            handler.stream.write(one.line())
            handler.flush()
        time.sleep(1)
