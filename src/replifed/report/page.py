"""One page with every figure, table and verdict. It opens from disk, without a network.

Pictures lie next to it, or, in its single-file form, in it. It is complete without scripts; with them its
curves can be read and its claims sorted.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from replifed import __version__
from replifed.claims import scores
from replifed.claims.axes import INFERRED, PRINTED, SOURCES, Axes
from replifed.claims.claim import DATA_KINDS, Kind
from replifed.claims.errata import read as read_errata
from replifed.claims.files import MARKS, number_text, read, unit_text
from replifed.claims.rules import VERDICTS, Found, listed, of_statement
from replifed.claims.sentences import not_claimed
from replifed.parts import finding_file
from replifed.report.artefacts import in_order, is_own, words_of
from replifed.report.findings import blocks, main_claims, summary
from replifed.report.prose import declared, numbers_of, tables_in, text_with_numbers
from replifed.report.section import artefact_section, by_part, link
from replifed.report.sentences import asked, of_paper
from replifed.settings.needs import used_experiments
from replifed.store.atomic import write_text
from replifed.store.environment import PACKAGES, commit, machine
from replifed.store.provenance import canonical_json

# Verdicts of claims as the page calls them.
WORDS = dict(zip(VERDICTS, ("holds", "fails", "inconclusive", "not testable"), strict=True))

# Characters and claims from which on a note stands below the table of claims.
_LONG, _SEVERAL = 60, 2


def build(
    figures_dir: Path,
    scale: str,
    settings: Mapping[str, Any],
    out: Path,
    claims: Path | None = None,
    errata: Sequence[Path] = (),
    curves: Path | None = None,
    run: Path | None = None,
    single: bool = False,
) -> None:
    """Write the report.

    Parameters
    ----------
    claims, errata : from `claims.files.collect` and `errata.write`, one file per paper; none in a comparison.
    figures_dir : holds PAPER/ARTEFACT.{csv,pdf,png} of figures and PAPER/ARTEFACT.{csv,md} of tables.
    scale : "paper", or the name of the cut-down settings.
    settings : papers, and of each which artefacts there are, which are not computed, and why, its
        experiments, and what it was made by, if not by Snakemake.
    curves, run : scripts to write next to the page: the data of the curves that it draws, and what ran, when.
    single : whether pictures, curves and what ran are in the page, which then is one file, of tens of
        megabytes.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    rows: list[dict[str, Any]] = [
        {**row, "number": number_text(row), "numbers": _numbers(row), "unit_text": unit_text(row)}
        for row in (read(claims) if claims else ())
    ]
    statements = scores.statements(rows)
    page_folder = None if single else out.parent
    papers = [
        _paper(name, settings[name], rows, statements, figures_dir, page_folder)
        for name in settings["papers"]
    ]
    artefacts = {
        f"{paper['key']}/{artefact['key']}": artefact
        for paper in papers
        for artefact in paper["artefacts"] + paper["others"]
    }
    drawn = {
        key.replace("/", "-"): artefact["curves"] for key, artefact in artefacts.items() if artefact["curves"]
    }
    of_curves = _script("replifedCurves", _packed(drawn))
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
        lone=len(papers) == 1 and bool(rows),  # one paper, and no comparison
        artefacts=artefacts,
        **_claims_content(rows, statements, settings["papers"]),
        errata=[row for file in errata for row in read_errata(file)],
        not_claimed=not_claimed(one for paper in settings["papers"] for one in of_paper(paper)),
        curves_file=link(curves, page_folder) if curves and page_folder else "",
        curves_inside=Markup(of_curves) if single and drawn else "",
        run_file=link(run, page_folder) if run and page_folder else "",
        run_inside=facts() if single else {},
    )
    write_text(out, page.rstrip("\n") + "\n")


def _claims_content(
    rows: list[dict[str, Any]], statements: list[dict[str, str]], papers: Sequence[str]
) -> dict[str, Any]:
    """Content of the page on all claims: their score, their table with its filters, and deviations."""
    data, groups = Counter(claim["data"] for claim in rows), by_part(rows)
    return {
        "verdicts": VERDICTS,
        "statuses": of_statement(Found()),
        "rules": listed(),
        "words": WORDS,
        "marks": MARKS,
        "score": summary(statements),
        "chance": scores.chance_in_words(rows),
        "kinds": [kind for kind in get_args(Kind) if any(claim["kind"] == kind for claim in rows)],
        "named": sorted({claim["settings"] for claim in rows} - {""}),
        "sources": [source for source in SOURCES if any(claim["source"] == source for claim in rows)],
        "settings": sorted({claim["options"] for claim in rows} - {""}),
        "claims": groups,
        "notes": _shared(groups),
        "deviations": _deviations(rows, papers),
        "data_counts": [(kind, data[kind]) for kind in (*DATA_KINDS, "none") if data[kind]],
    }


def _shared(groups: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return long notes on several claims, which the page has once and numbers."""
    said = Counter(
        note
        for group in groups
        for note in (group[0]["shared_note"], *(claim["own_note"] for claim in group))
        if len(note) > _LONG
    )
    return [note for note, count in said.items() if count >= _SEVERAL]


def _script(name: str, value: Any) -> str:
    """Return a value as a script: a page that is opened from disk may load no other kind of file.

    It may stand in a page, too: no text of it ends a script.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"window.{name} = {text};\n".replace("<", "\\u003c")


def _packed(value: Any) -> str:
    """Return a value as JSON, deflated to a quarter, as base64; `unpacked` in page.js reads it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _numbers(row: Mapping[str, str]) -> tuple[str, str, str]:
    """Published number, measured one and interval, for three columns."""
    published, _, measured = number_text(row).rpartition("  ")
    measured, bracket, interval = measured.partition(" [")
    return published.removeprefix("published "), measured.removeprefix("measured "), bracket[1:] + interval


def _deviations(rows: list[dict[str, Any]], papers: Sequence[str]) -> list[tuple[str, list[Any]]]:
    """Claims that fail, by paper and cause (the beginning of their notes), grouped by `by_part`."""
    causes: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for claim in rows:
        if claim["verdict"] == "fails" and not claim["informs"]:
            cause = claim["note"].partition("; ")[0]
            # Which say how it was judged, not why it fails.
            if cause.startswith(("tolerance:", "width:", "least effect:")):
                cause = ""
            causes.setdefault(claim["paper"], {}).setdefault(cause, []).append(claim)
    # What has no reason comes last, else what most claims share first.
    return [
        (
            paper,
            [
                (cause, by_part(claims))
                for cause, claims in sorted(
                    causes[paper].items(), key=lambda item: (not item[0], -len(item[1]))
                )
            ],
        )
        for paper in papers
        if paper in causes
    ]


def _paper(
    name: str,
    section: Mapping[str, Any],
    claims: list[dict[str, Any]],
    statements: list[dict[str, str]],
    figures_dir: Path,
    page_folder: Path | None,
) -> dict[str, Any]:
    """Content of the page on a paper."""
    on_paper = [claim for claim in claims if claim["paper"] == name]
    stated = [statement for statement in statements if statement["paper"] == name]
    about, described = words_of(name)
    numbers = numbers_of(name, declared(name), on_paper, tables_in(figures_dir))
    artefacts = {
        key: artefact_section(key, figures_dir / name, described.get(key), on_paper, page_folder, numbers)
        | {"experiments": [one for one in used_experiments(entry) if one in section.get("experiments", {})]}
        | ({"command": section["made_by"]} if "made_by" in section else {})
        for key, entry in in_order(section["artefacts"])
    }
    # What the paper has comes first, or what it names so; of a comparison, which promises nothing, all.
    promises = any(map(scores.is_main, stated))
    first = [key for key in about.get("first", ()) if key in artefacts]
    papers_own = first or [key for key in artefacts if is_own(key) or not promises] or list(artefacts)
    return {
        "key": name,
        "name": about.get("name", name),
        "citation": about.get("citation", ""),
        "doi": about.get("doi", ""),
        "finding": blocks(text_with_numbers(name, finding_file(name), numbers)),
        "main": main_claims(stated, on_paper),
        "inferred": any(one["fit"] for one in stated),  # there are such settings
        "open": _left_open(name),
        "score": summary(stated),
        "artefacts": [artefacts[key] for key in papers_own],
        "others": [artefact for key, artefact in artefacts.items() if key not in papers_own],
        "reused": _by_problems(section.get("reused", ())),
        "not_computed": sorted(section.get("not_computed", {}).items()),
        "experiments": {key: _settings(one) for key, one in section.get("experiments", {}).items()},
    }


def _left_open(paper: str) -> list[tuple[str, list[dict[str, str]]]]:
    """Return what a paper leaves open: each question, and its options with what speaks for and against."""
    claims = declared(paper)
    axes = claims[0].axes if claims else Axes()
    wholes = {PRINTED: axes.printed, INFERRED: axes.inferred or {}}
    return [
        (
            asked(axis).replace("**", ""),
            [
                {
                    "name": one.name,
                    "within": ", ".join(name for name, of in wholes.items() if of.get(axis.name) == one.name),
                    "source": one.source,
                    "grounds": f"{one.grounds}{f', but {one.against}' if one.against else ''}",
                    "not_run": one.not_run,
                }
                for one in axis.options.values()
            ],
        )
        for axis in axes.axes.values()
    ]


def _by_problems(runs: Sequence[str]) -> list[tuple[str, str]]:
    """Return the methods of runs EXPERIMENT/METHOD, those with the same experiments together, and these."""
    found: dict[str, list[str]] = {}
    for run in runs:
        experiment, _, method = run.partition("/")
        found.setdefault(method, []).append(experiment)
    methods: dict[str, list[str]] = {}
    for method in sorted(found):
        methods.setdefault(", ".join(found[method]), []).append(method)
    return [(", ".join(names), experiments) for experiments, names in methods.items()]


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


def facts() -> dict[str, str]:
    """Return commit, versions, machine and date of a run, in words: they differ from run to run."""
    known = machine()
    return {
        "Commit": commit(),
        "replifed": __version__,
        "Python": platform.python_version(),
        "Packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "Machine": f"{known['processor']}, {os.cpu_count()} cores, {known['system']}",
        "Report written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
