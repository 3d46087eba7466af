"""One page with every figure, table and verdict. It opens from disk, without a network.

Pictures lie beside it, or, in its single-file form, in it.
"""

from __future__ import annotations

import base64
import csv
import os
import re
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
from replifed.parts import part
from replifed.store import hashes
from replifed.store.atomic import write_text


def build(
    figures_dir: Path,
    scale: str,
    settings: Mapping[str, Any],
    out: Path,
    claims: Path | None = None,
    not_claimed: Path | None = None,
    errata: Sequence[Path] = (),
    single: bool = False,
) -> None:
    """Write the report.

    Parameters
    ----------
    claims, not_claimed, errata : from `claims.files.collect`, `sentences.write_not_claimed`, and
        `errata.write`, a file a paper. A comparison has none.
    figures_dir : holds PAPER/ARTEFACT.{csv,png} of figures and PAPER/ARTEFACT.{csv,md} of tables.
    scale : "paper", or the name of the cut-down settings.
    settings : papers, and of each which artefacts there are, and which are not computed, and why.
    single : whether pictures are in the page, which then is one file, of tens of megabytes.
    """
    from jinja2 import Environment, StrictUndefined

    rows: list[dict[str, Any]] = [
        {**row, "number": number_text(row), "mark": MARKS[row["verdict"]]}
        for row in (read(claims) if claims else ())
    ]
    statements = scores.statements(rows)
    beside = None if single else out.parent
    papers = [
        _paper(name, settings[name], rows, statements, figures_dir, beside) for name in settings["papers"]
    ]
    artefacts = [(f"{paper['key']}/{one['key']}", one) for paper in papers for one in paper["artefacts"]]
    linked = {name for name, _ in artefacts}
    for claim in rows:
        claim["linked"] = f"{claim['paper']}/{claim['artefact']}" in linked
    data = Counter(claim["data"] for claim in rows)
    # The readings of one statement stand together.
    deviations: dict[str, list[dict[str, Any]]] = {}
    for claim in rows:
        if claim["verdict"] == "deviates":
            deviations.setdefault(claim["statement_id"], []).append(claim)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8"))
    page = template.render(
        scale=scale,
        papers=papers,
        verdicts=VERDICTS,
        score=_counts(statements),
        chance=scores.chance_in_words(rows),
        kinds=[kind for kind in get_args(Kind) if any(claim["kind"] == kind for claim in rows)],
        bases=BASES,
        readings=sorted({claim["reading"] for claim in rows} - {""}),
        claims=rows,
        deviations=[{"statement": of[0]["statement"], "claims": of} for of in deviations.values()],
        stamps=[{"artefact": name, "text": one["stamp"]} for name, one in artefacts if one["stamp"]],
        data_counts=[(kind, data[kind]) for kind in (*DATA_KINDS, "none") if data[kind]],
        errata=[row for file in errata for row in read_errata(file)],
        not_claimed=read_not_claimed(not_claimed) if not_claimed else [],
    )
    write_text(out, page.rstrip("\n") + "\n")


def _counts(statements: list[dict[str, str]]) -> dict[str, tuple[int, int]]:
    """How many statements have each status, and how many of these by substitute data."""
    of_all = Counter(one["status"] for one in statements)
    of_substitutes = Counter(one["status"] for one in statements if one["data"] == "substitute")
    return {verdict: (of_all[verdict], of_substitutes[verdict]) for verdict in VERDICTS}


def _paper(
    name: str,
    section: Mapping[str, Any],
    claims: list[dict[str, Any]],
    statements: list[dict[str, str]],
    figures_dir: Path,
    beside: Path | None,
) -> dict[str, Any]:
    own = [claim for claim in claims if claim["paper"] == name]
    stated = [one for one in statements if one["paper"] == name]
    # A paper without words of its own does with names.
    about = getattr(import_module(part(name, "paper")), "PAPER", {})
    described: dict[str, Any] = {}
    for kind in ("figures", "tables"):
        described |= getattr(import_module(part(name, kind)), kind.upper(), {})
    only = section.get("only", section["artefacts"])
    return {
        "key": name,
        "name": about.get("name", name),
        "citation": about.get("citation", ""),
        "doi": about.get("doi", ""),
        "counts": _counts(stated),
        "total": len(stated),
        "artefacts": [
            _artefact(key, figures_dir / name, described.get(key), own, beside)
            for key in sorted(section["artefacts"], key=_place)
            if key in only
        ],
        "not_computed": sorted(section.get("not_computed", {}).items()),
    }


def _place(key: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Where an artefact comes: the paper's own before others, and Figure 2 before Figure 10."""
    own = re.match(r"(fig|table)\d", key)
    parts = re.split(r"(\d+)", key)
    return own is None, [(not one.isdigit(), int(one) if one.isdigit() else 0, one) for one in parts]


def _artefact(
    key: str, folder: Path, described: Any, claims: list[dict[str, Any]], beside: Path | None
) -> dict[str, Any]:
    """`beside` is the page's folder, from which pictures are linked; None puts them into it."""
    title, caption = (described.title, described.caption) if described else (key, "")
    table, png, markdown = (folder / f"{key}.{suffix}" for suffix in ("csv", "png", "md"))
    hashes.check([table, png, markdown])
    stamp = ""
    if table.is_file():
        with table.open(encoding="utf-8", newline="") as file:
            stamp = next(csv.DictReader(file), {}).get("data") or ""
    counts = Counter(claim["verdict"] for claim in claims if claim["artefact"] == key)
    artefact: dict[str, Any] = {
        "key": key,
        "title": title,
        "caption": caption,
        "csv": f"{folder.name}/{key}.csv",
        "stamp": stamp,
        "claims": [(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]],
        "src": "",
        "tables": [],
    }
    if png.is_file():
        content = png.read_bytes()
        if content[:8] != b"\x89PNG\r\n\x1a\n" or content[12:16] != b"IHDR":
            raise DataError(f"{png} is no PNG picture; delete it and run the workflow again")
        width, height = struct.unpack(">II", content[16:24])
        artefact |= {
            "src": f"data:image/png;base64,{base64.b64encode(content).decode()}"
            if beside is None
            else Path(os.path.relpath(png, beside)).as_posix(),
            # Drawn at 150 dots an inch, shown at 96.
            "width": round(width * 96 / 150),
            "height": round(height * 96 / 150),
            "alt": caption or title,
        }
    elif markdown.is_file():
        artefact["tables"] = _markdown_tables(markdown)
    return artefact


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
