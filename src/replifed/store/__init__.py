"""How results lie on disk; and the number of that layout, which each of them carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replifed.errors import REMEDY, DataError

# One more whenever what is stored is laid out otherwise or means something else.
FORMAT = 2


def check_format(path: Path, found: Any) -> None:
    """Refuse a file of another layout, by the number `found` in it (None where there is none)."""
    if found != FORMAT:
        number = "no format number" if found is None else f"format {found}"
        raise DataError(f"{path}: written by another version ({number}, expected {FORMAT}); {REMEDY}")
