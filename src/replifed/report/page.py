"""One page with every figure, table and verdict. It opens from disk, without a network.

Pictures lie next to it, or, in its single-file form, in it. It is complete without scripts; with them its
curves can be read and its claims sorted.
"""

from __future__ import annotations

import base64
import json
import os
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

from replifed.claims import scores
from replifed.claims.claim import BASES, DATA_KINDS, Kind
from replifed.claims.errata import read as read_errata
from replifed.claims.files import MARKS, number_text, read
from replifed.claims.sentences import read_not_claimed
from replifed.claims.verdicts import VERDICTS
from replifed.errors import REMEDY, DataError
from replifed.figures.grid import Grid
from replifed.parts import part
from replifed.report.artefacts import in_order, is_own, stamp_of, words_of
from replifed.report.curves import curves as numbers_of
from replifed.report.curves import in_words
from replifed.report.curves import read as read_curves
from replifed.report.run import facts
from replifed.settings.needs import used_experiments
from replifed.store import hashes
from replifed.store.atomic import write_text
from replifed.store.provenance import canonical_json

# Verdicts as the page calls them.
WORDS = {verdict: "not testable" if verdict == "unchecked" else verdict for verdict in VERDICTS}


def build(
    figures_dir: Path,
    scale: str,
    settings: Mapping[str, Any],
    out: Path,
    claims: Path | None = None,
    not_claimed: Path | None = None,
    errata: Sequence[Path] = (),
    curves: Path | None = None,
    run: Path | None = None,
    single: bool = False,
) -> None:
    """Write the report.

    Parameters
    ----------
    claims, not_claimed, errata : from `claims.files.collect`, `sentences.write_not_claimed`, and
        `errata.write`, a file a paper. A comparison has none.
    figures_dir : holds PAPER/ARTEFACT.{csv,pdf,png} of figures and PAPER/ARTEFACT.{csv,md} of tables.
    scale : "paper", or the name of the cut-down settings.
    settings : papers, and of each which artefacts there are, which are not computed, and why, and its
        experiments.
    curves, run : scripts to write next to the page: the data of the curves that it draws, and what ran, when.
    single : whether pictures, curves and what ran are in the page, which then is one file, of tens of
        megabytes.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    rows: list[dict[str, Any]] = [
        {**row, "number": number_text(row), "numbers": _numbers(row)}
        for row in (read(claims) if claims else ())
    ]
    statements = scores.statements(rows)
    drawn: dict[str, Any] = {}
    page_folder = None if single else out.parent
    papers = [
        _paper(name, settings[name], rows, statements, figures_dir, page_folder, drawn)
        for name in settings["papers"]
    ]
    data = Counter(claim["data"] for claim in rows)
    of_curves = _script("replifedCurves", drawn)
    if curves is not None:
        write_text(curves, of_curves)
    if run is not None:
        write_text(run, _script("replifedRun", facts()))
    folder = Path(__file__).parent
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    page = template.render(
        {
            name: Markup(folder.joinpath(file).read_text(encoding="utf-8"))
            for name, file in (("style", "page.css"), ("script", "page.js"), ("drawing", "curves.js"))
        },
        scale=scale,
        papers=papers,
        artefacts={
            f"{paper['key']}/{one['key']}": one
            for paper in papers
            for one in paper["artefacts"] + paper["others"]
        },
        verdicts=VERDICTS,
        words=WORDS,
        marks=MARKS,
        score=_counts(statements),
        chance=scores.chance_in_words(rows),
        kinds=[kind for kind in get_args(Kind) if any(claim["kind"] == kind for claim in rows)],
        bases=BASES,
        readings=sorted({claim["reading"] for claim in rows} - {""}),
        claims=rows,
        deviations=_deviations(rows, [paper["key"] for paper in papers]),
        data_counts=[(kind, data[kind]) for kind in (*DATA_KINDS, "none") if data[kind]],
        errata=[row for file in errata for row in read_errata(file)],
        not_claimed=read_not_claimed(not_claimed) if not_claimed else [],
        curves_file=_from(curves, page_folder) if curves and page_folder else "",
        curves_inside=Markup(of_curves) if single and drawn else "",
        run_file=_from(run, page_folder) if run and page_folder else "",
        run_inside=facts() if single else {},
    )
    write_text(out, page.rstrip("\n") + "\n")


def _script(name: str, value: Any) -> str:
    """Return a value as a script: a page that is opened from disk may load no other kind of file.

    It may stand in a page, too: no text of it ends a script.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"window.{name} = {text};\n".replace("<", "\\u003c")


def _from(file: Path, folder: Path) -> str:
    """Return a link to a file from a page in a folder."""
    return quote(Path(os.path.relpath(file, folder)).as_posix())


def _numbers(row: Mapping[str, str]) -> tuple[str, str]:
    """Published and measured numbers, for two columns."""
    published, _, measured = number_text(dict(row)).rpartition("  ")
    return published.removeprefix("published "), measured.removeprefix("measured ")


def _deviations(rows: list[dict[str, Any]], papers: Sequence[str]) -> list[dict[str, Any]]:
    """Return the claims that deviate, by paper and cause, the beginning of their notes."""
    causes: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for claim in rows:
        if claim["verdict"] == "deviates":
            cause = claim["note"].partition("; ")[0]
            if cause.startswith("tolerance:"):  # which says how it was judged, not why it deviates
                cause = ""
            causes.setdefault((claim["paper"], cause), []).append(claim)
    # Papers stay together, and so do the readings of one statement.
    return [
        {"paper": paper, "cause": cause, "claims": sorted(of, key=lambda claim: claim["statement_id"])}
        for (paper, cause), of in sorted(
            causes.items(), key=lambda item: (papers.index(item[0][0]), not item[0][1], -len(item[1]))
        )
    ]


def _counts(statements: list[dict[str, str]]) -> dict[str, tuple[int, int]]:
    """Number of statements by status, and of these by substitute data."""
    of_all = Counter(one["status"] for one in statements)
    of_substitutes = Counter(one["status"] for one in statements if one["data"] == "substitute")
    return {verdict: (of_all[verdict], of_substitutes[verdict]) for verdict in VERDICTS}


def _paper(
    name: str,
    section: Mapping[str, Any],
    claims: list[dict[str, Any]],
    statements: list[dict[str, str]],
    figures_dir: Path,
    page_folder: Path | None,
    drawn: dict[str, Any],
) -> dict[str, Any]:
    """Content of the page on a paper; the curves of its figures are added to `drawn`."""
    own = [claim for claim in claims if claim["paper"] == name]
    stated = [one for one in statements if one["paper"] == name]
    about, described = words_of(name)
    artefacts = {
        key: _artefact(key, figures_dir / name, described.get(key), own, page_folder, drawn)
        | {"experiments": [one for one in used_experiments(entry) if one in section.get("experiments", {})]}
        for key, entry in in_order(section["artefacts"])
    }
    # What the paper has comes first; if nothing is called after a figure of it, all is.
    papers_own = [key for key in artefacts if is_own(key)] or list(artefacts)
    return {
        "key": name,
        "name": about.get("name", name),
        "citation": about.get("citation", ""),
        "doi": about.get("doi", ""),
        "counts": _counts(stated),
        "total": len(stated),
        "artefacts": [artefacts[key] for key in papers_own],
        "others": [artefact for key, artefact in artefacts.items() if key not in papers_own],
        "not_computed": sorted(section.get("not_computed", {}).items()),
        "experiments": {key: _settings(one) for key, one in section.get("experiments", {}).items()},
    }


def _settings(experiment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return an experiment's settings in words, a list of repetitions as its length."""
    return [
        (
            key.replace("_", " "),
            str(len(value)) if "replicates" in key else canonical_json(value).strip('"').replace('"', ""),
        )
        for key, value in experiment.items()
        if value not in (None, [], {})
    ]


def _artefact(
    key: str,
    folder: Path,
    described: Any,
    claims: list[dict[str, Any]],
    page_folder: Path | None,
    drawn: dict[str, Any],
) -> dict[str, Any]:
    """Content of the page on an artefact.

    `page_folder` is the page's folder, from which files are linked; None puts pictures into the page.
    """
    title, caption = (described.title, described.caption) if described else (key, "")
    table, png, markdown = (folder / f"{key}.{suffix}" for suffix in ("csv", "png", "md"))
    hashes.check([table, png, markdown])
    own = [claim for claim in claims if claim["artefact"] == key]
    counts = Counter(claim["verdict"] for claim in own)
    files = [folder / f"{key}.{suffix}" for suffix in ("csv", "pdf", "md", "tex")]
    artefact: dict[str, Any] = {
        "key": key,
        "title": title,
        "caption": caption,
        "csv": f"{folder.name}/{key}.csv",
        "files": [
            (file.suffix[1:].upper(), _from(file, page_folder))
            for file in files
            if page_folder and file.is_file()
        ],
        "code": ("", ""),
        "command": hashes.snakemake(png.with_suffix(".pdf") if png.is_file() else markdown),
        "stamp": "",
        "seeds": "",
        "readings": list(dict.fromkeys((one["reading"], one["basis"]) for one in own if one["reading"])),
        "claims": [(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]],
        "values": [
            {**claim, "range": _range(claim)}
            for claim in own
            if claim["kind"] == "value" and claim["measured"] and claim["published"]
        ],
        "src": "",
        "drawn": False,
        "tables": [],
    }
    if described is not None:
        artefact["code"] = _code(part(folder.name, "figures" if png.is_file() else "tables"), page_folder)
    alt = caption or title
    if table.is_file():
        frame = read_curves(table)
        artefact["stamp"] = stamp_of(frame)
        if len(frame) and "seeds" in frame:
            least, most = frame["seeds"].min(), frame["seeds"].max()
            artefact["seeds"] = f"{least} to {most}" if least != most else str(most)
        if isinstance(described, Grid) and len(frame):
            drawn[f"{folder.name}-{key}"] = found = numbers_of(described, frame)
            artefact |= {"drawn": True, "points": found["points"]}
            alt = f"{title}. {in_words(described, frame)}"
    if png.is_file():
        content = png.read_bytes()
        if content[:8] != b"\x89PNG\r\n\x1a\n" or content[12:16] != b"IHDR":
            raise DataError(f"{png} is no PNG picture; {REMEDY}")
        width, height = struct.unpack(">II", content[16:24])
        artefact |= {
            "src": f"data:image/png;base64,{base64.b64encode(content).decode()}"
            if page_folder is None
            else _from(png, page_folder),
            # Drawn at 150 dots an inch, shown at 96.
            "width": round(width * 96 / 150),
            "height": round(height * 96 / 150),
            "alt": alt,
        }
    elif markdown.is_file():
        artefact["tables"] = _markdown_tables(markdown)
    return artefact


def _code(module: str, page_folder: Path | None) -> tuple[str, str]:
    """Return the name of the module that draws, and a link to it where it lies below the working folder."""
    file = Path(import_module(module).__file__ or "").resolve()
    here = page_folder is not None and file.is_relative_to(Path.cwd())
    return module, _from(file, page_folder.resolve()) if here and page_folder else ""


# Of the pictures of published and measured numbers, in pixels, and how many tolerances they reach to a side.
_WIDTH, _REACH = 170, 3.0


def _range(claim: Mapping[str, str]) -> dict[str, Any]:
    """Positions of the measured number and its interval about the published one, in pixels.

    The unit is the tolerance, or without one the larger of the distance and the interval.
    """
    published, measured = float(claim["published"]), float(claim["measured"])
    low, high = (float(claim[key] or measured) for key in ("ci_low", "ci_high"))
    tolerance = float(claim["tolerance"] or 0)
    unit = tolerance or max(abs(measured - published), (high - low) / 2) or 1.0

    def at(number: float) -> float:
        reach = min(max((number - published) / unit, -_REACH), _REACH)
        return round(_WIDTH / 2 + reach * (_WIDTH / 2 - 6) / _REACH, 1)

    ends = {"low": at(low), "high": at(high), "measured": at(measured), "published": at(published)}
    return ends | {"from": at(published - tolerance), "to": at(published + tolerance)}


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
