"""Progress of a long job."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of the step, the number done, and their total, 0 if it is not known."""

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
            count = f"{done} of {total}" if total else f"{done}"
            text = f"{self._title}: {what}, {count} done in {now - self._begin:.0f} s"
            print(text, file=sys.stderr, flush=True)
