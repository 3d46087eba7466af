"""`replifed artefact`, `report` and `manifest`: what a reader opens, and the hashes of it all."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    add_command,
    add_file,
    add_files,
    add_inputs,
    add_job,
    add_out,
    add_settings,
    call,
)
from replifed.errors import ConfigError

_SUFFIXES = ("csv", "pdf", "png", "md", "tex")


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    artefact = add_command(
        commands,
        "artefact",
        _artefact,
        "Step of the workflow: make a figure or a table.",
        "replifed artefact fedht fig1 --settings JSON --scale paper "
        "--inputs run:simulation1/fedht=FILE --csv fig1.csv --pdf fig1.pdf --png fig1.png",
        reads=("inputs",),
        writes=_SUFFIXES,
    )
    artefact.add_argument("paper")
    artefact.add_argument("name", metavar="artefact")
    add_settings(artefact)
    add_inputs(artefact)
    for suffix in _SUFFIXES:
        add_file(artefact, f"--{suffix}", help=f"the .{suffix} to write")

    artefacts = add_command(
        commands,
        "artefacts",
        "replifed.papers.jobs:artefacts",
        "Step of the workflow: make all figures and tables of a paper, one after the other.",
        "replifed artefacts fedht --settings JSON --scale small --inputs run:simulation1/fedht=FILE "
        "--outputs fig1.csv=fig1.csv fig1.pdf=fig1.pdf fig1.png=fig1.png",
        reads=("inputs",),
        writes=("outputs",),
    )
    add_job(artefacts, "paper")
    add_inputs(artefacts)
    add_files(artefacts, "--outputs")

    report = add_command(
        commands,
        "report",
        "replifed.report.page:build",
        "Step of the workflow: write the report.",
        "replifed report --claims results/claims.csv --figures-dir figures --scale paper --out report.html",
        reads=("claims_csv", "errata", "not_claimed"),
        writes=("out",),
    )
    add_file(report, "--claims", dest="claims_csv", required=True)
    add_file(report, "--errata", nargs="*", default=[])
    add_file(report, "--not-claimed")
    add_settings(report, required=False, dest="config")
    report.add_argument("--figures-dir", type=Path, required=True, metavar="FOLDER")
    report.add_argument("--scale", required=True)
    add_out(report)

    manifest = commands.add_parser("manifest", description="Hashes of what was made; see `snakemake verify`.")
    parts = manifest.add_subparsers(title="commands", metavar="COMMAND", required=True)
    write = add_command(
        parts,
        "write",
        "replifed.store.manifest:write",
        "Step of the workflow: list files, and those in folders, by the hashes that their jobs recorded.",
        "replifed manifest write results/claims.csv --folders data/raw --out results/manifest.csv",
        writes=("out",),
    )
    write.add_argument("files", nargs="+", metavar="FILE")
    _add_folders(write, "with all files below; may be absent")
    add_out(write)
    verify = add_command(
        parts,
        "verify",
        _manifest_verify,
        "Hash every file again; exits with status 1 if one has changed, is missing or was made by no job.",
        "replifed manifest verify results/manifest.csv --folders results/fedht figures/fedht",
    )
    add_file(verify, "manifest")
    _add_folders(verify, "with files of the workflow alone")


def _add_folders(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--folders", nargs="*", default=[], metavar="FOLDER", help=text)


def _artefact(arguments: argparse.Namespace) -> int:
    arguments.outputs = [(suffix, file) for suffix in _SUFFIXES if (file := getattr(arguments, suffix))]
    if not arguments.outputs:
        raise ConfigError(
            f"nothing to write; give at least one of {', '.join(f'--{name}' for name in _SUFFIXES)}"
        )
    return call("replifed.papers.jobs:artefact", arguments)


def _manifest_verify(arguments: argparse.Namespace) -> int:
    from replifed.store import manifest

    checked, faults = manifest.verify(arguments.manifest, arguments.folders)
    print("\n".join([*faults, f"{checked} files of {arguments.manifest} checked, {len(faults)} faults"]))
    return 1 if faults else 0
