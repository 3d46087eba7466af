"""Progress of a long job: in lines, or as a bar on a terminal, whose line is written over."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

Progress = Callable[[str, int, int], None]
"""Called with the name of the step, the number done, and their total, 0 if it is not known."""

# Set by `replifed make`, which shows one line of progress instead of those of Snakemake and of jobs.
ONE_LINE = "REPLIFED_ONE_LINE"
# Back to the line's begin, which then is empty.
CLEAR = "\r\x1b[K"
_LONGEST, _SHORTEST = 30, 8  # letters of a bar; a shorter one says nothing


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


def redraws(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which a line can take the place of the last one."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def bar(share: float, text: str, stream: TextIO, more: str = "") -> str:
    """Return a text behind a bar of which a `share` in [0, 1] is full, cut to the width of the terminal.

    In a narrow terminal the bar is shorter, or left out; before that goes `more`, the text's last words.
    """
    try:
        width = os.get_terminal_size(stream.fileno()).columns - 1  # a full line would wrap
    except (OSError, ValueError):
        width = 79
    if len(text) + len(more) < width - _SHORTEST:
        text += more
    letters = min(_LONGEST, width - len(text) - 1)
    if letters < _SHORTEST:
        return text[: max(width, 0)]
    full, empty = "━─" if "utf" in (stream.encoding or "").lower() else "#."
    count = int(letters * share)
    return f"{full * count}{empty * (letters - count)} {text}"


def clear() -> None:
    """Empty the line on which a bar may stand."""
    if redraws(sys.stderr):
        print(CLEAR, end="", file=sys.stderr, flush=True)


class Bar:
    """Progress of a command, drawn on standard error once it takes a while."""

    _FIRST, _AGAIN = 2.0, 0.2  # seconds

    def __init__(self, title: str) -> None:
        self._title, self._due = title, time.monotonic() + self._FIRST

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show the number done of a total above 0; with all done, the bar goes."""
        if done == total:
            clear()
        elif (now := time.monotonic()) >= self._due:
            self._due = now + self._AGAIN
            text = bar(done / total, f"{self._title}: {what}, {done} of {total} done", sys.stderr)
            print(f"{CLEAR}{text}", end="", file=sys.stderr, flush=True)
