"""One self-contained page with every figure, table and verdict. It opens from disk, without a network."""

from __future__ import annotations

import base64
import csv
import os
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from replifed.claims import scores
from replifed.claims.errata import read as read_errata
from replifed.claims.files import MARKS, number_text, read
from replifed.claims.sentences import read_not_claimed
from replifed.claims.verdicts import BASES, DATA_KINDS, VERDICTS, Kind
from replifed.errors import DataError
from replifed.parts import paper_names, part
from replifed.store import hashes
from replifed.store.atomic import write_text


def build(
    claims_csv: str | os.PathLike[str],
    figures_dir: str | os.PathLike[str],
    scale: str,
    out: str | os.PathLike[str],
    config: Mapping[str, Any] | None = None,
    errata: Sequence[str | os.PathLike[str]] = (),
    not_claimed: str | os.PathLike[str] | None = None,
) -> None:
    """Write the report.

    Parameters
    ----------
    claims_csv, not_claimed, errata : path-like, path-like, sequence of path-like
        From `claims.files.collect`, `sentences.write_not_claimed`, and `errata.write`, a file a paper.
    figures_dir : path-like
        Holds PAPER/ARTEFACT.{csv,png} of figures and PAPER/ARTEFACT.{csv,md} of tables.
    scale : str
        "paper", or the name of the cut-down settings.
    config : mapping, optional
        The whole configuration. It tells which artefacts there are, in order, and which are not computed,
        with the reason. Without it, those that claims name and those found on disk are shown.
    """
    from jinja2 import Environment, StrictUndefined

    claims: list[dict[str, Any]] = [
        {**row, "number": number_text(row), "mark": MARKS[row["verdict"]]} for row in read(claims_csv)
    ]
    listed = list(config["papers"]) if config else []
    names = list(dict.fromkeys([*listed, *(claim["paper"] for claim in claims)]))
    statements = scores.statements(claims)
    papers = [_paper(name, claims, statements, Path(figures_dir), (config or {}).get(name)) for name in names]
    linked = {(paper["key"], artefact["key"]) for paper in papers for artefact in paper["artefacts"]}
    for claim in claims:
        claim["linked"] = (claim["paper"], claim["artefact"]) in linked
    data = Counter(claim["data"] for claim in claims)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8"))
    page = template.render(
        scale=scale,
        papers=papers,
        verdicts=VERDICTS,
        score=_counts(statements),
        chance=scores.chance_in_words(claims),
        kinds=[kind for kind in get_args(Kind) if any(claim["kind"] == kind for claim in claims)],
        bases=BASES,
        readings=sorted({claim["reading"] for claim in claims} - {""}),
        claims=claims,
        deviations=_deviations(claims),
        stamps=[
            {"artefact": f"{paper['key']}/{artefact['key']}", "text": artefact["stamp"]}
            for paper in papers
            for artefact in paper["artefacts"]
            if artefact["stamp"]
        ],
        data_counts=[(kind, data[kind]) for kind in (*DATA_KINDS, "none") if data[kind]],
        errata=[row for file in errata for row in read_errata(file)],
        not_claimed=[] if not_claimed is None else read_not_claimed(not_claimed),
    )
    write_text(out, page.rstrip("\n") + "\n")


def _deviations(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Group the claims that deviate by statement; the readings of one statement stand together."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for claim in claims:
        if claim["verdict"] == "deviates":
            groups.setdefault(claim["statement_id"], []).append(claim)
    return [{"statement": found[0]["statement"], "claims": found} for found in groups.values()]


def _counts(statements: list[dict[str, str]]) -> dict[str, tuple[int, int]]:
    """How many statements have each status, and how many of these by substitute data."""
    of_all = Counter(one["status"] for one in statements)
    of_substitutes = Counter(one["status"] for one in statements if one["data"] == "substitute")
    return {verdict: (of_all[verdict], of_substitutes[verdict]) for verdict in VERDICTS}


def _paper(
    name: str,
    claims: list[dict[str, Any]],
    statements: list[dict[str, str]],
    figures_dir: Path,
    section: Mapping[str, Any] | None,
) -> dict[str, Any]:
    own = [claim for claim in claims if claim["paper"] == name]
    stated = [one for one in statements if one["paper"] == name]
    about, captions = _captions(name)
    if section is None:
        found = sorted(path.stem for path in (figures_dir / name).glob("*.csv"))
        keys = [*(key for key in captions if key in found), *(key for key in found if key not in captions)]
    else:
        only = section.get("only")
        keys = [key for key in section["artefacts"] if only is None or key in only]
    return {
        "key": name,
        "name": about.get("name", name),
        "citation": about.get("citation", ""),
        "doi": about.get("doi", ""),
        "counts": _counts(stated),
        "total": len(stated),
        "artefacts": [_artefact(key, figures_dir / name, captions.get(key, (key, "")), own) for key in keys],
        "not_computed": sorted((section or {}).get("not_computed", {}).items()),
    }


def _captions(paper: str) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """The paper's own words for its artefacts; a paper without any does with their names."""
    if paper not in paper_names():
        return {}, {}
    artefacts = {
        name: artefact
        for kind in ("figures", "tables")
        for name, artefact in getattr(import_module(part(paper, kind)), kind.upper(), {}).items()
    }
    captions = {name: (one.title, one.caption) for name, one in artefacts.items()}
    return getattr(import_module(part(paper, "paper")), "PAPER", {}), captions


def _artefact(key: str, folder: Path, words: tuple[str, str], claims: list[dict[str, Any]]) -> dict[str, Any]:
    title, caption = words
    table, png = folder / f"{key}.csv", folder / f"{key}.png"
    hashes.check([table, png, folder / f"{key}.md"])
    counts = Counter(claim["verdict"] for claim in claims if claim["artefact"] == key)
    artefact: dict[str, Any] = {
        "key": key,
        "title": title,
        "caption": caption,
        "csv": f"{folder.name}/{key}.csv",
        "stamp": _stamp(table) if table.is_file() else "",
        "claims": [(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]],
        "png": "",
        "tables": [],
    }
    if png.is_file():
        content = png.read_bytes()
        width, height = _size(content, png)
        artefact |= {
            "png": base64.b64encode(content).decode(),
            # Drawn at 150 dots an inch, shown at 96.
            "width": round(width * 96 / 150),
            "height": round(height * 96 / 150),
            "alt": caption or title,
        }
    elif (folder / f"{key}.md").is_file():
        artefact["tables"] = _markdown_tables(folder / f"{key}.md")
    return artefact


def _stamp(table: Path) -> str:
    """What the artefact's CSV says of its data."""
    with table.open(encoding="utf-8", newline="") as file:
        first = next(csv.DictReader(file), {})
    return first.get("data") or ""


def _size(content: bytes, path: Path) -> tuple[int, int]:
    if content[:8] != b"\x89PNG\r\n\x1a\n" or content[12:16] != b"IHDR":
        raise DataError(f"{path} is no PNG picture; delete it and run the workflow again")
    return struct.unpack(">II", content[16:24])


def _markdown_tables(path: Path) -> list[dict[str, Any]]:
    """Title (a line in bold before it), head and rows of each of a Markdown file's tables."""
    tables, title = [], ""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        cells = [_cells(line) for line in block.splitlines() if line.startswith("|")]
        if cells:
            head, *rows = (row for row in cells if not all(set(cell) <= set(":-") for cell in row))
            tables.append({"title": title, "head": head, "rows": rows})
        title = block.strip().strip("*")
    if not tables:
        raise DataError(f"{path} holds no table; delete it and run the workflow again")
    return tables


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
