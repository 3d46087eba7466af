"""Where a paper's claims are declared, for errors that name the file."""

from __future__ import annotations

import sys
from pathlib import Path

from replifed.errors import ConfigError

_HERE = Path(__file__).parent


def fault(what: str) -> ConfigError:
    """An error in a declaration, with the file and line of the first caller outside this package."""
    frame = sys._getframe(1)
    # Generated code, such as a dataclass's, has no file.
    while frame.f_back is not None and not _outside(Path(frame.f_code.co_filename)):
        frame = frame.f_back
    file = Path(frame.f_code.co_filename)
    return ConfigError(f"{file.parent.name}/{file.name}, line {frame.f_lineno}: {what}")


def _outside(file: Path) -> bool:
    return file.parent != _HERE and not file.name.startswith("<")
