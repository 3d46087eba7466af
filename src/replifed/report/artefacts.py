"""Titles of a paper's artefacts, and the order in which a page shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pandas as pd

from replifed.parts import part


def words_of(paper: str) -> tuple[Mapping[str, str], dict[str, Any]]:
    """Return a paper's name and citation, and its figures and tables by name: title, caption, how to draw.

    Without words of the paper, names take their place.
    """
    described: dict[str, Any] = {}
    for kind in ("figures", "tables"):
        described |= getattr(import_module(part(paper, kind)), kind.upper(), {})
    return getattr(import_module(part(paper, "paper")), "PAPER", {}), described


def caption(paper: str, artefact: str) -> str:
    """Return the title and caption of a figure or table as reStructuredText, for Snakemake's own report."""
    _, described = words_of(paper)
    one = described.get(artefact)
    title, text = (one.title, one.caption) if one else (artefact, "")
    return f"**{_escaped(title)}**\n\n{_escaped(text)}\n"


def opened(caption: str, count: int) -> tuple[str, str]:
    """Return the first sentences of a caption, and the others.

    >>> opened("Error, see eq. (2). Lines are means. Bands are ranges.", 2)
    ('Error, see eq. (2). Lines are means.', 'Bands are ranges.')
    """
    sentences = re.split(r"(?<=[.”]) (?=[A-Z“])", caption)
    return " ".join(sentences[:count]), " ".join(sentences[count:])


def _escaped(text: str) -> str:
    """Return a text without markup.

    >>> print(_escaped("x* and |x|_1"))
    x\\* and \\|x\\|\\_1
    """
    return re.sub(r"([^\w\s]|_)", r"\\\1", text)


def stamp_of(frame: pd.DataFrame) -> str:
    """Return the label in an artefact's table of data that are not the paper's own."""
    return str(frame["data"].iloc[0]) if len(frame) and "data" in frame else ""


def is_own(key: str) -> bool:
    """Return True for an artefact that has the name of one of the paper's.

    >>> is_own("fig2"), is_own("fig2_bits")
    (True, False)
    """
    return re.fullmatch(r"(fig|table)\d+[a-z]?", key) is not None


def in_order(artefacts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return artefacts in the order of a page: the paper's before others, and Figure 2 before Figure 10.

    >>> [key for key, _ in in_order({"bias": 1, "fig10": 2, "fig2": 3})]
    ['fig2', 'fig10', 'bias']
    """

    def place(item: tuple[str, Any]) -> tuple[bool, list[tuple[bool, int, str]]]:
        key, parts = item[0], re.split(r"(\d+)", item[0])
        numbered = [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
        return re.match(r"(fig|table)\d", key) is None, numbered

    return sorted(artefacts.items(), key=place)
