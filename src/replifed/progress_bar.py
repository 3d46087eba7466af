"""A bar on a terminal, and how a line of it is written over."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

# Back to the line's begin, which then is empty.
CLEAR = "\r\x1b[K"
_LONGEST, _SHORTEST = 30, 8  # cells of a bar; a shorter one says nothing


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
    cells = min(_LONGEST, width - len(text) - 1)
    if cells < _SHORTEST:
        return text[: max(width, 0)]
    full, empty = "━─" if "utf" in (stream.encoding or "").lower() else "#."
    count = int(cells * share)
    return f"{full * count}{empty * (cells - count)} {text}"


def clear() -> None:
    """Empty the line on which a bar may stand."""
    if redraws(sys.stderr):
        print(CLEAR, end="", file=sys.stderr, flush=True)


class Bar:
    """Progress of a command, as `replifed.progress` has it, drawn on standard error once it takes a while."""

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
