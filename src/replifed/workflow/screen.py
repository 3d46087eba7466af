"""What Snakemake says on the screen of a job that failed: the job's own line, once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

# What Snakemake says of a failed job beside what the job said itself; all of it is in Snakemake's log file.
_BESIDE = (
    "RuleException:\nCalledProcessError",
    "WorkflowError:\nAt least one job did not complete successfully",
    "Shutting down, this might take some time",
    "Exiting because a job execution failed",
    "Complete log(s):",
)
_OWN = "replifed: error: "


class FailuresOnce(logging.Formatter):
    """Passes all on to another formatter but a job's failure, of which it gives two lines."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record; Snakemake prints nothing of an empty one."""
        if getattr(getattr(record, "event", None), "name", "") == "JOB_ERROR":
            return failure(record)
        text = self._inner.format(record)
        return "" if text.startswith(_BESIDE) else text


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


def show_failures_once() -> None:
    """Let Snakemake's handler for the screen, and none for files, do so."""
    for handler in logging.getLogger("snakemake.logging").handlers:
        if type(handler).__name__ == "ColorizingTextHandler" and handler.formatter:
            handler.setFormatter(FailuresOnce(handler.formatter))
