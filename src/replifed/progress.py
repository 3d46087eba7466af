"""How far a long job is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is running, the number of steps done, and their total, 0 where it is not known."""


# Set by `replifed make`, which shows one line of progress in place of Snakemake's lines and those of jobs.
ONE_LINE = "REPLIFED_ONE_LINE"


def silent(what: str, done: int, total: int) -> None:
    """Says nothing."""


class Lines:
    """Says on standard error, every ten seconds at most, how far a long job is.

    Whole lines, not a bar: several jobs share one terminal, and a log keeps what it gets.
    """

    _SECONDS = 10.0

    def __init__(self, *names: str) -> None:
        self._title, self._begin = "/".join(names), time.monotonic()
        self._said = self._begin

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if ONE_LINE in os.environ:
            return
        if now - self._said >= self._SECONDS:
            self._said = now
            count = f"{done} of {total}" if total else f"{done}"
            text = f"{self._title}: {what}, {count} done in {now - self._begin:.0f} s"
            print(text, file=sys.stderr, flush=True)
