"""The papers: a package each, with the jobs that run them all."""

from __future__ import annotations

from pathlib import Path


def names() -> list[str]:
    """Papers that there are, in order of their names."""
    return sorted(file.parent.name for file in Path(__file__).parent.glob("*/__init__.py"))


def part(paper: str, name: str) -> str:
    """Return the module that holds a part of a paper, such as its claims.

    A small paper may have a single file, its `__init__.py`, that holds all its parts.
    """
    package = f"{__name__}.{paper}"
    return f"{package}.{name}" if Path(__file__).parent.joinpath(paper, f"{name}.py").is_file() else package
