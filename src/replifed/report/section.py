"""Section of the page on an artefact: its picture or tables, its data, and the claims on it."""

from __future__ import annotations

import base64
import os
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from replifed.claims.prose import Numbers, named
from replifed.claims.rules import VERDICTS
from replifed.claims.units import UNITS
from replifed.errors import REMEDY, DataError
from replifed.figures.artefact import Grid
from replifed.parts import part
from replifed.report.artefacts import stamp_of
from replifed.report.curves import curves, in_words, read
from replifed.store import hashes

_SENTENCES = 3  # of a caption, before the rest is folded away


def artefact_section(
    key: str,
    folder: Path,
    described: Any,
    claims: list[dict[str, Any]],
    page_folder: Path | None,
    numbers: Numbers,
) -> dict[str, Any]:
    """Content of the page on an artefact.

    Parameters
    ----------
    folder : holds the paper's files.
    described : title, caption and how to draw it, of a figure or table that the paper describes.
    claims : those on the paper.
    page_folder : the page's folder, from which files are linked; None puts pictures into the page.
    numbers : what the caption takes its numbers from.
    """
    title = described.title if described else key
    whole = named(described.caption, f"{folder.name}/{key}", numbers) if described else ""
    caption, more = folded(whole)
    table, png, markdown = (folder / f"{key}.{suffix}" for suffix in ("csv", "png", "md"))
    hashes.check([table, png, markdown])
    frame = read(table) if table.is_file() else pd.DataFrame()
    drawn = curves(described, frame) if isinstance(described, Grid) and len(frame) else None
    alt = f"{title}. {in_words(described, frame)}" if drawn else whole or title
    module = part(folder.name, "figures" if png.is_file() else "tables")
    return {
        "key": key,
        "title": title,
        "caption": caption,
        "more": more,
        "csv": f"{folder.name}/{key}.csv",
        "files": _files(key, folder, page_folder) if page_folder else [],
        "code": _code(module, page_folder) if described else ("", ""),
        "command": hashes.snakemake(png.with_suffix(".pdf") if png.is_file() else markdown),
        "stamp": stamp_of(frame),
        "seeds": _seeds(frame),
        "curves": drawn,
        "picture": _picture(png, page_folder, alt) if png.is_file() else None,
        "tables": _markdown_tables(markdown) if markdown.is_file() and not png.is_file() else [],
        **_outcome([claim for claim in claims if claim["artefact"] == key]),
    }


def folded(caption: str) -> tuple[str, str]:
    """Return the first sentences of a caption, at most three, and the rest.

    >>> folded("One. Two by Li et al. 2020. Three: a. Four. Five.")
    ('One. Two by Li et al. 2020. Three: a.', 'Four. Five.')
    """
    sentences = re.split(r"(?<=[.”]) (?=[A-Z“])", caption)
    return " ".join(sentences[:_SENTENCES]), " ".join(sentences[_SENTENCES:])


def link(file: Path, folder: Path) -> str:
    """Return a link to a file from a page in a folder."""
    return quote(Path(os.path.relpath(file, folder)).as_posix())


def _files(key: str, folder: Path, page_folder: Path) -> list[tuple[str, str]]:
    """Return the kinds of an artefact's files, and links to them."""
    files = [folder / f"{key}.{suffix}" for suffix in ("csv", "pdf", "md", "tex")]
    return [(file.suffix[1:].upper(), link(file, page_folder)) for file in files if file.is_file()]


def _seeds(frame: pd.DataFrame) -> str:
    """Return the number of seeds behind a table, or the least and the largest, if it has any."""
    if "seeds" not in frame or not len(frame):
        return ""
    least, most = frame["seeds"].min(), frame["seeds"].max()
    return f"{least} to {most}" if least != most else str(most)


def _picture(png: Path, page_folder: Path | None, alt: str) -> dict[str, Any]:
    """Return a picture as the attributes of an element `img`."""
    content = png.read_bytes()
    if content[:8] != b"\x89PNG\r\n\x1a\n" or content[12:16] != b"IHDR":
        raise DataError(f"{png} is no PNG picture; {REMEDY}")
    width, height = struct.unpack(">II", content[16:24])
    inside = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return {
        "src": link(png, page_folder) if page_folder else inside,
        # Drawn at 150 dots an inch, shown at 96.
        "width": round(width * 96 / 150),
        "height": round(height * 96 / 150),
        "alt": alt,
    }


def _outcome(claims: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the claims on an artefact: counts of verdicts, and those with published and measured numbers."""
    counts = Counter(claim["verdict"] for claim in claims)
    return {
        "claims": [(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]],
        "values": by_part(
            {**claim, "range": _range(claim)}
            for claim in claims
            if claim["kind"] in ("value", "near") and claim["measured"] and claim["published"]
        ),
    }


def by_part(claims: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Claims in groups that measure one thing in several settings, in the order of the first of each."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for claim in claims:
        key = tuple(claim[name] for name in ("part", "statement", "kind", "unit"))
        groups.setdefault(key, []).append(claim)
    return [_beside(group) for group in groups.values()]


def _beside(group: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Claims with the quantity of their numbers, the options in which they differ, and their notes.

    What the notes of all say is apart from the rest, in the order of the first.
    """
    options = [[*filter(None, claim["options"].split("; "))] for claim in group]
    shared = set.intersection(*map(set, options)) if len(group) > 1 else set()
    quantity = UNITS[group[0]["unit"]].quantity if group[0]["unit"] else ""
    notes = [[*filter(None, claim["note"].split("; "))] for claim in group]
    of_all = set.intersection(*map(set, notes))
    return [
        claim
        | {"beside": "; ".join(one for one in found if one not in shared), "quantity": quantity}
        | {"shared_note": "; ".join(one for one in said if one in of_all)}
        | {"own_note": "; ".join(one for one in said if one not in of_all)}
        for claim, found, said in zip(group, options, notes, strict=True)
    ]


def _code(module: str, page_folder: Path | None) -> tuple[str, str]:
    """Return the name of the module that draws, and a link to it where it lies below the working folder."""
    file = Path(import_module(module).__file__ or "").resolve()
    here = page_folder is not None and file.is_relative_to(Path.cwd())
    return module, link(file, page_folder.resolve()) if here and page_folder else ""


# Of the pictures of published and measured numbers, in pixels, and how many half-widths they reach to a side.
_WIDTH, _REACH = 170, 3.0


def _range(claim: Mapping[str, str]) -> dict[str, Any]:
    """Positions of the measured number, the published one and its rival, in pixels.

    In the middle is the published number. Shaded is where it is met: of a value the prediction interval, of
    another number the tolerance about it. The unit is half of that, or without one the distance.
    """
    published, found = float(claim["published"]), float(claim["measured"])
    low, high = (float(claim[key] or found) for key in ("ci_low", "ci_high"))
    if claim["pi_low"]:
        within = float(claim["pi_low"]), float(claim["pi_high"])
    else:
        tolerance = float(claim["tolerance"] or 0)
        within = published - tolerance, published + tolerance
    unit = (within[1] - within[0]) / 2 or max(abs(found - published), (high - low) / 2) or 1.0

    def at(number: float) -> int:
        reach = min(max((number - published) / unit, -_REACH), _REACH)
        return round(_WIDTH / 2 + reach * (_WIDTH / 2 - 6) / _REACH)

    places = {"low": at(low), "high": at(high), "measured": at(found), "published": at(published)}
    places |= {"from": at(within[0]), "to": at(within[1])}
    return places | {"rival": at(float(claim["rival"])) if claim["rival"] else None}


def _markdown_tables(path: Path) -> list[dict[str, Any]]:
    """Title (a line in bold before it), head and rows of each of a Markdown file's tables."""
    tables, title = [], ""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        cells = [_cells(line) for line in block.splitlines() if line.startswith("|")]
        if cells:
            head, *rows = (row for row in cells if not all(set(cell) <= set(":-") for cell in row))
            tables.append({"title": title, "head": head, "rows": rows})
        bold = re.fullmatch(r"\*\*(.+)\*\*", block.strip())
        title = bold[1] if bold else ""
    if not tables:
        raise DataError(f"{path} holds no table; {REMEDY}")
    return tables


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
