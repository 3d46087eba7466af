"""The report of the reference run, drawn anew from its tables: `python tools/reference_report.py FOLDER`.

No experiment is run. FOLDER/index.html has every figure, table and verdict, as `results/report.html` has them
after `make`; pictures lie beside it.
"""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replifed.claims import tables
from replifed.claims.reference import verdicts
from replifed.claims.verdicts import COLUMNS
from replifed.papers import jobs
from replifed.report.artefacts import stamp_of
from replifed.report.page import build
from replifed.runs import opened
from replifed.settings import needs
from replifed.settings.checks import load

SUFFIXES = {"figure": ("csv", "pdf", "png"), "table": ("csv", "md", "tex")}
SCALE = "paper"


def draw(paper: str, name: str, kind: str, content: bytes, folder: Path) -> None:
    """Write a figure or a table from its numbers in the reference."""
    made = getattr(jobs._part(paper, f"{kind}s"), f"{kind}s".upper())[name]
    outputs = {suffix: folder / paper / f"{name}.{suffix}" for suffix in SUFFIXES[kind]}
    outputs["csv"].parent.mkdir(parents=True, exist_ok=True)
    outputs["csv"].write_bytes(content)
    frame = jobs._read_back(made, outputs["csv"])
    publish = jobs._draw if kind == "figure" else jobs._print_table
    publish(made, frame, outputs, stamp_of(frame), SCALE)


def main(folder: Path, papers: Sequence[str] = ()) -> None:
    """Write the report on some papers, by default on all, into a folder."""
    config, run, figures = load([]), opened.reference(opened.REFERENCE), folder / "figures"
    papers, shown = papers or config["papers"], {}
    errata = [folder / f"errata-{paper}.csv" for paper in papers]
    folder.mkdir(parents=True, exist_ok=True)
    for paper, file in zip(papers, errata, strict=True):
        made: dict[str, Any] = {}
        for name, one in needs.artefacts(config[paper]).items():
            if (table := f"tables/{paper}/{name}.csv") in run:
                draw(paper, name, one["kind"], run.read(table), figures)
                made[name] = one
        jobs.measure_errata(paper, file)
        shown[paper] = {
            "artefacts": made,
            "not_computed": config[paper].get("not_computed", {}),
            "experiments": needs.shown_experiments(config[paper]),
        }
    claims = [claim for paper in papers for claim in jobs.claims_of(paper)]
    tables.write(folder / "claims.csv", COLUMNS, verdicts(claims, opened.REFERENCE))
    # No code is linked, as none lies beside it where it is published; commands name figures as in a clone.
    with contextlib.chdir(folder):
        build(
            Path(figures.name),
            SCALE,
            {"papers": papers, **shown},
            Path("index.html"),
            Path("claims.csv"),
            [Path(file.name) for file in errata],
            curves=Path("report_curves.js"),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
