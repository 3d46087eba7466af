"""What benchmarks write into docs/growth.md, each between two comments that name it."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).parents[1] / "docs/growth.md"


def put(name: str, text: str) -> None:
    """Write `text` in place of what the page has between the comments."""
    begin, end = f"<!-- {name}: measured -->\n", f"\n<!-- {name}: end -->"
    before, rest = FILE.read_text().split(begin)
    FILE.write_text(before + begin + text + end + rest.split(end)[1])
