"""`replifed run` and `replifed manifest verify`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    add_command,
    add_file,
    add_snakemake,
    call_snakemake,
    check_known,
    load_config,
)
from replifed.errors import counted


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    run = add_command(
        commands,
        "run",
        _run,
        "Run one method on one experiment, with all its repetitions. Snakemake makes the inputs of the run "
        "(data, partition, tuned steps) and runs it with the settings of the configuration. Prints the path "
        "of the history.",
        "fedht simulation1 fediterht --cores 2 --configfile config/small.yaml",
    )
    for name in ("paper", "experiment", "method"):
        run.add_argument(name)
    add_snakemake(run)

    manifest = commands.add_parser(
        "manifest", description="Hashes of all files made; see `snakemake verify --cores 1`."
    )
    parts = manifest.add_subparsers(title="commands", metavar="COMMAND", required=True)
    text = "Hash every file again; exits with status 1 if one has changed, is missing or was made by no job."
    example = "results/manifest.csv --folders results/fedht figures/fedht"
    verify = add_command(parts, "verify", _manifest_verify, text, example)
    add_file(verify, "manifest")
    text = "with files of the workflow"
    verify.add_argument("--folders", nargs="*", default=[], metavar="FOLDER", help=text)
    text = "folder of raw files, to compare with their pins"
    verify.add_argument("--raw-dir", type=Path, metavar="FOLDER", help=text)


def _manifest_verify(arguments: argparse.Namespace) -> int:
    from replifed.data import pins
    from replifed.store import manifest

    checked, faults = manifest.verify(arguments.manifest, arguments.folders)
    if arguments.raw_dir:
        faults += pins.faults(arguments.raw_dir)
    found = counted(len(faults), "fault")
    print("\n".join([*faults, f"{checked} files of {arguments.manifest} checked, {found}"]))
    return 1 if faults else 0


def _run(arguments: argparse.Namespace) -> int:
    paper, experiment, method = arguments.paper, arguments.experiment, arguments.method
    config = load_config(arguments)
    check_known("paper", paper, config["papers"])
    experiments = config[paper]["experiments"]
    check_known("experiment", experiment, experiments)
    check_known("method of this experiment", method, experiments[experiment]["methods"])
    target = f"{config['paths']['results']}/{paper}/{experiment}/{method}.parquet"
    status = call_snakemake(target, arguments)
    if status == 0 and not arguments.dry_run:
        print(target)
    return status
