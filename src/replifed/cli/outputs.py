"""`replifed artefact`, `report` and `manifest`: what a reader opens, and the hashes of it all."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command, add_files, add_inputs, add_settings, by_key
from replifed.errors import ConfigError

_SUFFIXES = ("csv", "pdf", "png", "md", "tex")


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    _add_artefact(commands)
    _add_artefacts(commands)
    _add_report(commands)
    _add_manifest(commands)


def _add_artefact(commands: Any) -> None:
    parser = add_command(
        commands,
        "artefact",
        _artefact,
        "Step of the workflow: make a figure or a table.",
        "replifed artefact fedht fig1 --settings JSON --scale paper "
        "--inputs run:simulation1/fedht=FILE --csv fig1.csv --pdf fig1.pdf --png fig1.png",
        reads=("inputs",),
        writes=_SUFFIXES,
    )
    parser.add_argument("paper")
    parser.add_argument("name", metavar="artefact")
    add_settings(parser)
    add_inputs(parser)
    for suffix in _SUFFIXES:
        parser.add_argument(f"--{suffix}", type=Path, metavar="FILE", help=f"the .{suffix} to write")


def _add_artefacts(commands: Any) -> None:
    parser = add_command(
        commands,
        "artefacts",
        _artefacts,
        "Step of the workflow: make all figures and tables of a paper, one after the other.",
        "replifed artefacts fedht --settings JSON --scale small --inputs run:simulation1/fedht=FILE "
        "--outputs fig1.csv=fig1.csv fig1.pdf=fig1.pdf fig1.png=fig1.png",
        reads=("inputs",),
        writes=("outputs",),
    )
    parser.add_argument("paper")
    add_settings(parser)
    add_inputs(parser)
    add_files(parser, "outputs")


def _add_report(commands: Any) -> None:
    parser = add_command(
        commands,
        "report",
        _report,
        "Step of the workflow: write the report.",
        "replifed report --claims results/claims.csv --figures-dir figures --scale paper --out report.html",
        reads=("claims", "errata"),
        writes=("out",),
    )
    parser.add_argument("--claims", type=Path, required=True, metavar="FILE")
    parser.add_argument("--errata", type=Path, nargs="*", default=[], metavar="FILE")
    add_settings(parser, required=False)
    parser.add_argument("--figures-dir", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--scale", required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")


def _add_manifest(commands: Any) -> None:
    manifest = commands.add_parser("manifest", description="Hashes of what was made; see `snakemake verify`.")
    parts = manifest.add_subparsers(title="commands", metavar="COMMAND", required=True)
    write = add_command(
        parts,
        "write",
        _manifest_write,
        "Step of the workflow: list files, and those in folders, by the hashes that their jobs recorded.",
        "replifed manifest write results/claims.csv --folders data/raw --out results/manifest.csv",
        writes=("out",),
    )
    write.add_argument("files", nargs="+", metavar="FILE")
    write.add_argument(
        "--folders", nargs="*", default=[], metavar="FOLDER", help="with all files below; may be absent"
    )
    write.add_argument("--out", type=Path, required=True, metavar="FILE")
    verify = add_command(
        parts,
        "verify",
        _manifest_verify,
        "Hash every file again; exits with status 1 if one has changed, is missing or was made by no job.",
        "replifed manifest verify results/manifest.csv --folders results/fedht figures/fedht",
    )
    verify.add_argument("manifest", type=Path, metavar="FILE")
    verify.add_argument(
        "--folders", nargs="*", default=[], metavar="FOLDER", help="with files of the workflow alone"
    )


def _artefact(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    outputs = {suffix: file for suffix in _SUFFIXES if (file := getattr(arguments, suffix)) is not None}
    if not outputs:
        raise ConfigError(
            f"nothing to write; give at least one of {', '.join(f'--{name}' for name in _SUFFIXES)}"
        )
    jobs.artefact(
        arguments.paper,
        arguments.name,
        arguments.settings,
        arguments.scale,
        by_key(arguments.inputs),
        outputs,
    )


def _artefacts(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    jobs.artefacts(
        arguments.paper,
        arguments.settings,
        arguments.scale,
        by_key(arguments.inputs),
        dict(arguments.outputs),
    )


def _report(arguments: argparse.Namespace) -> None:
    from replifed.report import page

    page.build(
        arguments.claims,
        arguments.figures_dir,
        arguments.scale,
        arguments.out,
        config=arguments.settings,
        errata=arguments.errata,
    )


def _manifest_write(arguments: argparse.Namespace) -> None:
    from replifed import manifest

    manifest.write(arguments.files, arguments.out, arguments.folders)


def _manifest_verify(arguments: argparse.Namespace) -> int:
    from replifed import manifest

    checked, faults = manifest.verify(arguments.manifest, arguments.folders)
    print("\n".join([*faults, f"{checked} files of {arguments.manifest} checked, {len(faults)} faults"]))
    return 1 if faults else 0
