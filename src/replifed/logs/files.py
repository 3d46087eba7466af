"""Log files: which ones a pattern names, and what their names say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from replifed.errors import DataError, meant, one_line

EVENTS = "tfevents"  # in the names of TensorBoard's files
PACKED = ".gz", ".bz2", ".xz"


class Log(NamedTuple):
    """A file, with the parts of its name."""

    path: Path
    named: dict[str, str]  # the parts of the name at the pattern's braces, such as method and seed


def find(folder: Path, patterns: str | Iterable[str]) -> list[Log]:
    """Return the files in a folder that one or more patterns match, by pattern and then by path.

    A file that several patterns match counts for the first of them.

    Raises
    ------
    DataError
        A pattern is invalid, matches no file, or matches one outside the folder.
    """
    found: dict[Path, Log] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        try:
            _compiled(pattern)
            paths = sorted(path for path in folder.glob(_globbed(pattern)) if path.is_file())
            if not is_hidden(pattern):
                paths = [path for path in paths if not is_hidden(_name(path, folder))]
        except (ValueError, NotImplementedError, IndexError, re.error) as error:
            raise DataError(f"logs: {pattern!r} is no valid pattern of files: {one_line(error)}") from error
        said = ((path, parse_name(pattern, _name(path, folder))) for path in paths)
        logs = [Log(path, one) for path, one in said if one is not None]
        if not logs:
            there = {_name(path, folder) for path in folder.rglob("*") if path.is_file()}
            raise DataError(f"logs: {pattern} matches no file in {folder}{meant(pattern, there)}")
        for log in logs:
            if not log.path.resolve().is_relative_to(folder.resolve()):
                raise DataError(f"{log.path} leaves the folder of the paper; put the log itself there")
            found.setdefault(log.path, log)
    return list(found.values())


def ending(name: str) -> str:
    """Return the suffix that tells a file's format, such as .csv.gz; "" for an event file."""
    if EVENTS in name:
        return ""
    suffixes = Path(name).suffixes[-2:]
    return "".join(suffixes if suffixes and suffixes[-1] in PACKED else suffixes[-1:])


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _globbed(pattern: str) -> str:
    """Return a pattern for `Path.glob`, which takes more and more of `**` from one Python to the next."""
    taken = re.sub(r"\{.*?\}", "*", pattern)
    *folders, file = taken.split("/")
    if "**" in file or any("**" in part and part != "**" for part in folders):
        raise ValueError("two wildcards stand side by side; ** is for folders, as in **/*.csv")
    return taken


def is_hidden(name: str) -> bool:
    """Return True if the name of a file, or of a folder above it, begins with a dot."""
    return any(part.startswith(".") for part in name.split("/"))


def parse_name(pattern: str, name: str) -> dict[str, str] | None:
    """Return the parts of a name at the braces of a pattern; None if the name does not match.

    Each part is as short as possible, and a seed consists of digits if possible.

    >>> parse_name("{method}_{seed}", "fed_avg_3")
    {'method': 'fed_avg', 'seed': '3'}
    """
    matches = (compiled.fullmatch(name) for compiled in _compiled(pattern))
    return next((match.groupdict() for match in matches if match), None)


@lru_cache
def _compiled(pattern: str) -> list[re.Pattern[str]]:
    return [re.compile("".join(_expression(pattern, seed))) for seed in (r"\d+", "[^/]+?")]


def _expression(pattern: str, seed: str) -> Iterator[str]:
    for part in re.split(r"(\{.*?\}|\*\*/|\*|\?)", pattern):
        if part.startswith("{"):
            yield f"(?P<{part[1:-1]}>{seed if part == '{seed}' else '[^/]+?'})"
        else:
            yield {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
