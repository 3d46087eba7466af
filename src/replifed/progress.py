"""Progress of a long job."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with (name of the step, number done, number of all)."""

# Set by `replifed make`, which shows one line of progress instead of those of Snakemake and of jobs.
ONE_LINE = "REPLIFED_ONE_LINE"


def silent(what: str, done: int, total: int) -> None:
    """Print nothing."""


class Lines:
    """Prints the progress of a long job on standard error, every ten seconds at most.

    In whole lines, not as a bar: several jobs share one terminal, and a log keeps all output.
    """

    _SECONDS = 10.0

    def __init__(self, *names: str) -> None:
        self._title, self._begin = "/".join(names), time.monotonic()
        self._printed = self._begin

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if ONE_LINE in os.environ:
            return
        if now - self._printed >= self._SECONDS:
            self._printed = now
            print(
                f"{self._title}: {what}, {done} of {total} done in {now - self._begin:.0f} s",
                file=sys.stderr,
                flush=True,
            )
