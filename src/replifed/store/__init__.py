"""Results on disk, and the number of their format, which each file carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replifed.errors import REMEDY, DataError

# Raised when the layout or the meaning of stored values changes.
FORMAT = 2


def check_format(path: Path, found: Any) -> None:
    """Raise a `DataError` for a file of another format, by the number `found` in it, None without one."""
    if found != FORMAT:
        number = "no format number" if found is None else f"format {found}"
        raise DataError(f"{path}: written by another version ({number}, expected {FORMAT}); {REMEDY}")
