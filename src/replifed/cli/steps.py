"""`replifed run`, and the other steps that the workflow calls, from a partition to the manifest."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    SUFFIXES,
    add_command,
    add_file,
    add_out,
    add_snakemake,
    add_step,
    call,
    call_snakemake,
    check_known,
    load_config,
)
from replifed.errors import ConfigError, counted


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    step = partial(add_step, commands)

    step(
        "partition",
        "replifed.partition.build:partition",
        "Step of the workflow: split a data set between clients.",
        "fedht mnist --settings JSON --data data/parsed/mnist.npz --out partition.npz --table partition.csv",
        names=("paper", "experiment"),
        reads=("data",),
        writes=("out", "table"),
    )

    step(
        "tune",
        "replifed.papers.jobs:tune",
        "Step of the workflow: choose a method's step size.",
        "fedht simulation1 fedavg --settings JSON --out fedavg.tuned.json",
        names=("paper", "experiment", "method"),
        reads=("data", "partition", "leader"),
        optional=("data", "partition", "leader"),
    )

    run = step(
        "run",
        _run,
        "Run one method on one experiment, with all its repetitions. With names alone, Snakemake makes the "
        "inputs of the run (data, partition, tuned steps), runs it with the settings of the configuration, "
        "and prints the path of the history. With --settings and --out, and the files of its problem, this "
        "is a step that the workflow calls.",
        "fedht simulation1 fediterht --cores 2 --configfile config/small.yaml",
        names=("paper", "experiment", "method"),
        reads=("data", "partition", "tuned"),
        optional=("settings", "data", "partition", "tuned", "out"),
    )
    text = "the share of the repetitions that this job runs, for `join-shares`"
    run.add_argument("--share", type=_share, metavar="NUMBER/OF", help=text)
    add_snakemake(run)

    join = add_command(
        commands,
        "join-shares",
        "replifed.store.histories:join",
        "Step of the workflow: write the history of a run from those of its shares.",
        "fedht.1.parquet fedht.2.parquet --out fedht.parquet",
        writes=("out",),
    )
    join.add_argument("files", nargs="+", type=Path, metavar="FILE")
    add_out(join)

    step(
        "run-together",
        "replifed.papers.jobs:tune_and_run",
        "Step of the workflow: tune and run one method on several experiments of a paper, in turn.",
        'cross fedavg --settings \'{"tune": {"a9a": JSON}, "run": {"a9a": JSON}}\' '
        "--inputs data:a9a=a9a.npz partition:a9a=partition.npz "
        "--outputs tuned:a9a=fedavg.tuned.json run:a9a=fedavg.parquet",
        names=("paper", "method"),
        reads=("inputs",),
        writes=("outputs",),
    )

    step(
        "artefact",
        _artefact,
        "Step of the workflow: make a figure or a table.",
        "fedht fig1 --settings JSON --scale paper --inputs run:simulation1/fedht=FILE "
        "--csv fig1.csv --pdf fig1.pdf --png fig1.png",
        names=("paper", "name"),
        reads=("inputs",),
        writes=SUFFIXES,
        optional=SUFFIXES,
        scaled=True,
    )

    step(
        "artefacts",
        "replifed.papers.jobs:artefacts",
        "Step of the workflow: make figures and tables of a paper, one after the other.",
        "fedht --settings JSON --scale small --inputs run:simulation1/fedht=FILE "
        "--outputs fig1.csv=fig1.csv fig1.pdf=fig1.pdf fig1.png=fig1.png",
        names=("paper",),
        reads=("inputs",),
        writes=("outputs",),
        scaled=True,
    )

    report = step(
        "report",
        "replifed.report.page:build",
        "Step of the workflow: write the report.",
        "--claims results/claims.csv --figures-dir figures --scale paper --settings JSON --out report.html",
        reads=("claims", "errata"),
        writes=("out", "curves", "run"),
        optional=("claims", "curves", "run"),
        scaled=True,
    )
    report.add_argument("--single", action="store_true", help="put the pictures into the page")

    gallery = step(
        "gallery",
        "replifed.report.gallery:write",
        "Step of the workflow: write a page of Markdown with every picture. `replifed make gallery` does so, "
        "at the papers' scale alone.",
        "--claims results/claims.csv --figures-dir figures --settings JSON --out docs/pictures.md",
        reads=("claims",),
    )
    for parser in (report, gallery):
        parser.add_argument("--figures-dir", type=Path, required=True, metavar="FOLDER")
    _add_manifest(commands)


def _add_manifest(commands: Any) -> None:
    manifest = commands.add_parser(
        "manifest", description="Hashes of all files made; see `snakemake verify --cores 1`."
    )
    parts = manifest.add_subparsers(title="commands", metavar="COMMAND", required=True)
    text = "Step of the workflow: list files, and those in folders, by the hashes that their jobs recorded."
    example = "results/claims.csv --folders data/raw --out results/manifest.csv"
    writes = ("out", "environment")
    write = add_command(parts, "write", "replifed.store.manifest:write", text, example, writes=writes)
    write.add_argument("files", nargs="+", metavar="FILE")
    add_out(write)
    text = "the file to write with commit, versions, processor and threads"
    add_file(write, "--environment", help=text)
    text = "Hash every file again; exits with status 1 if one has changed, is missing or was made by no job."
    example = "results/manifest.csv --folders results/fedht figures/fedht"
    verify = add_command(parts, "verify", _manifest_verify, text, example)
    add_file(verify, "manifest")
    for part, text in (
        (write, "with all files below; may be absent"),
        (verify, "with files of the workflow"),
    ):
        part.add_argument("--folders", nargs="*", default=[], metavar="FOLDER", help=text)
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
    if (arguments.settings is None) != (arguments.out is None):
        raise ConfigError("--settings and --out are given together (by the workflow) or not at all")
    if arguments.settings is not None:
        if arguments.share:
            arguments.writes = ()  # it goes with the join, which checks the hash inside: a record would stay
        return call("replifed.papers.jobs:run", arguments)
    of_workflow = ("data", "partition", "tuned", "share")
    if given := [name for name in of_workflow if getattr(arguments, name)]:
        raise ConfigError(f"--{given[0]} is only for the workflow, together with --settings")
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


def _share(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r}: must be NUMBER/OF with NUMBER from 1 to OF, such as 2/5")
    return int(number), int(of)


def _artefact(arguments: argparse.Namespace) -> int:
    arguments.outputs = [(suffix, file) for suffix in SUFFIXES if (file := getattr(arguments, suffix))]
    if {suffix for suffix, _ in arguments.outputs} not in ({"csv", "pdf", "png"}, {"csv", "md", "tex"}):
        raise ConfigError("give --csv with --pdf and --png for a figure, with --md and --tex for a table")
    return call("replifed.papers.jobs:artefact", arguments)
