"""The papers that there are, and the modules that hold their parts. Nothing of them is imported here."""

from __future__ import annotations

from pathlib import Path

PAPERS = Path(__file__).with_name("papers")
# The comparison of methods of one's own, which is no paper, with those of this one, whose experiments it has.
COMPARE, COMPARED = "compare", "cross"


def paper_names() -> list[str]:
    """Papers that there are, in order of their names."""
    return sorted(file.parent.name for file in PAPERS.glob("*/__init__.py"))


def sentences_file(paper: str) -> Path:
    """Return the file that lists the checkable sentences of a paper, which may be missing."""
    return PAPERS / paper / "sentences.yaml"


def part(paper: str, name: str) -> str:
    """Return the module that holds a part of a paper, such as its claims.

    A small paper may have a single file, its `__init__.py`, that holds all its parts.
    """
    if paper == COMPARE:
        return part(COMPARED, name) if name == "experiments" else f"replifed.comparison.{name}"
    package = f"replifed.papers.{paper}"
    return f"{package}.{name}" if PAPERS.joinpath(paper, f"{name}.py").is_file() else package
