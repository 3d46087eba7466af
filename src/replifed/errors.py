"""Errors that a user can act on.

Everything the package raises on bad input is a `ReplifedError`; the command line prints its
message on one line and exits with status 2, without a traceback. Any other exception is a bug.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Of how many known names all are shown, and else how many of those that come near.
_MOST, _FEW = 50, 5
# What to do about a file of results that cannot be used.
REMEDY = "delete it and run the workflow again"


class ReplifedError(Exception):
    """A fault in the input or the surroundings; the message names the culprit and the way out."""


class ConfigError(ReplifedError):
    """A configuration key is unknown, missing, or holds a value outside its range."""


class DataError(ReplifedError):
    """A data file is missing, altered, truncated or malformed."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that `name` is no known `kind`, with the nearest known name and the list, if it is not long.

    >>> unknown_name("method", "fedth", ["fedht", "fedavg"])
    "unknown method 'fedth'; did you mean 'fedht'? (known: fedavg, fedht)"
    """
    known = sorted(known)
    shown = known if len(known) <= _MOST else [*get_close_matches(name, known, n=_FEW, cutoff=0.3), "..."]
    return f"unknown {kind} {name!r}{meant(name, known)} (known: {', '.join(shown)})"


def meant(name: str, known: Iterable[str]) -> str:
    """Name the nearest known name, if one is near."""
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def shown(value: Any) -> str:
    """A value as JSON, cut if it is long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def counted(count: int, name: str) -> str:
    """A count and what is counted.

    >>> counted(1, "job"), counted(0, "job")
    ('1 job', '0 jobs')
    """
    return f"{count} {name}{'' if count == 1 else 's'}"
