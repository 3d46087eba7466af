"""Errors that a user can act on.

Everything the package raises on bad input is a `ReplifedError`; the command line prints its
message on one line and exits with status 2, without a traceback. Any other exception is a bug.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Number of known names up to which all are shown, and number of near ones that are shown of more.
_MOST, _FEW = 50, 5
# Remedy for a file of results that cannot be used.
REMEDY = "delete it and run the workflow again"


class ReplifedError(Exception):
    """An error in the input or the environment; the message names its cause and its remedy."""


class ConfigError(ReplifedError):
    """A configuration key is unknown, missing, or holds a value outside its range."""


class DataError(ReplifedError):
    """A data file is missing, altered, truncated or malformed."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return a message that `name` is no known `kind`, with the nearest names, and all if they are few.

    >>> unknown_name("method", "fedth", ["fedht", "fedavg"])
    "unknown method 'fedth'; did you mean 'fedht'? (known: fedavg, fedht)"
    """
    known = sorted(known)
    shown = known if len(known) <= _MOST else [*get_close_matches(name, known, n=_FEW, cutoff=0.3), "..."]
    return f"unknown {kind} {name!r}{meant(name, known)} (known: {', '.join(shown)})"


def meant(name: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known name, if one is near."""
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def shown(value: Any) -> str:
    """Return a value as JSON, truncated if it is long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def one_line(error: BaseException) -> str:
    """Return the message of an error without its line breaks."""
    return " ".join(str(error).split())


def counted(count: int, name: str) -> str:
    """Return a count with its noun, in the plural if needed.

    >>> counted(1, "job"), counted(0, "job")
    ('1 job', '0 jobs')
    """
    return f"{count} {name}{'' if count == 1 else 's'}"
