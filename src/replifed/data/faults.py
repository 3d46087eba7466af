"""Faults of one file, all in one line."""

from __future__ import annotations

from collections.abc import Sequence


def joined(path: str, faults: Sequence[str]) -> str:
    """Return one line on all faults of a file, each of which may begin with the path.

    >>> joined("a.csv", ["a.csv, line 2: no label"])
    'a.csv, line 2: no label'
    >>> joined("a.csv", ["line 2: no label", "a.csv: 3 rows; expected 4"])
    'a.csv: 2 faults: (1) line 2: no label; (2) 3 rows; expected 4'
    """
    texts = [fault.removeprefix(path).lstrip(",: ") for fault in faults]
    if len(texts) == 1:
        mark = ", " if texts[0].startswith(("line ", "row ")) else ": "
        return f"{path}{mark}{texts[0]}"
    return f"{path}: {len(texts)} faults: " + "; ".join(f"({k}) {text}" for k, text in enumerate(texts, 1))
