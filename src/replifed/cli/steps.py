"""`replifed run`, and the other steps that the workflow calls, from a partition to the manifest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from replifed.cli.arguments import (
    add_command,
    add_file,
    add_files,
    add_out,
    add_settings,
    add_snakemake,
    call,
    call_snakemake,
    check_known,
    load_config,
)
from replifed.errors import ConfigError, counted

_SUFFIXES = ("csv", "pdf", "png", "md", "tex")
_HELP = {
    "data": "parsed data set",
    "partition": "partition of the data set",
    "tuned": "the method's tuned step",
    "leader": "tuned step of the method that the settings call the leader",
    "seeds": "how many of the repetitions are run",
    "table": "the .csv of a partition's heterogeneity",
    "claims": "verdicts on all claims",
    "errata": "what became of each paper's errata",
    "not_claimed": "statements without a claim",
    "out": "the file to write",
    "curves": "the script to write, with the curves that the page draws",
    "run": "the script to write, with commit, versions, machine and date",
    **{suffix: f"the .{suffix} to write" for suffix in _SUFFIXES},
}


def _run(arguments: argparse.Namespace) -> int:
    if (arguments.settings is None) != (arguments.out is None):
        raise ConfigError("--settings and --out are given together (by the workflow) or not at all")
    if arguments.settings is not None:
        return call("replifed.papers.jobs:run", arguments)
    if arguments.data or arguments.partition or arguments.tuned or arguments.seeds:
        raise ConfigError(
            "--data, --partition, --tuned and --seeds are only for the workflow, together with --settings"
        )
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


def _artefact(arguments: argparse.Namespace) -> int:
    arguments.outputs = [(suffix, file) for suffix in _SUFFIXES if (file := getattr(arguments, suffix))]
    if not arguments.outputs:
        flags = ", ".join(f"--{name}" for name in _SUFFIXES)
        raise ConfigError(f"nothing to write; give at least one of {flags}")
    return call("replifed.papers.jobs:artefact", arguments)


class _Step(NamedTuple):
    """A command on what `names` say, with settings; it reads and writes files, some of them `optional`."""

    handler: Any
    text: str
    example: str
    names: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    optional: tuple[str, ...] = ()
    scaled: bool = False  # whether it is told the scale of the run


_STEPS = {
    "partition": _Step(
        "replifed.partition.build:partition",
        "Step of the workflow: split a data set between clients.",
        "fedht mnist --settings JSON --data data/parsed/mnist.npz --out partition.npz --table partition.csv",
        names=("paper", "experiment"),
        reads=("data",),
        writes=("out", "table"),
    ),
    "tune": _Step(
        "replifed.papers.jobs:tune",
        "Step of the workflow: choose a method's step size.",
        "fedht simulation1 fedavg --settings JSON --out fedavg.tuned.json",
        names=("paper", "experiment", "method"),
        reads=("data", "partition", "leader"),
        writes=("out",),
        optional=("data", "partition", "leader"),
    ),
    "run": _Step(
        _run,
        "Run one method on one experiment, with all its repetitions. With names alone, Snakemake makes what "
        "the run needs (data, partition, tuned steps), runs it with the settings of the configuration, and "
        "prints the path of the history. With --settings and --out, and the files of its problem, this is a "
        "step that the workflow calls.",
        "fedht simulation1 fediterht --cores 2 --configfile config/small.yaml",
        names=("paper", "experiment", "method"),
        reads=("data", "partition", "tuned", "seeds"),
        writes=("out",),
        optional=("settings", "data", "partition", "tuned", "seeds", "out"),
    ),
    "run-together": _Step(
        "replifed.papers.jobs:tune_and_run",
        "Step of the workflow: tune and run one method on several experiments of a paper, in turn.",
        'cross fedavg --settings \'{"tune": {"a9a": JSON}, "run": {"a9a": JSON}}\' '
        "--inputs data:a9a=a9a.npz partition:a9a=partition.npz "
        "--outputs tuned:a9a=fedavg.tuned.json run:a9a=fedavg.parquet",
        names=("paper", "method"),
        reads=("inputs",),
        writes=("outputs",),
    ),
    "artefact": _Step(
        _artefact,
        "Step of the workflow: make a figure or a table.",
        "fedht fig1 --settings JSON --scale paper --inputs run:simulation1/fedht=FILE "
        "--csv fig1.csv --pdf fig1.pdf --png fig1.png",
        names=("paper", "name"),
        reads=("inputs",),
        writes=_SUFFIXES,
        optional=_SUFFIXES,
        scaled=True,
    ),
    "artefacts": _Step(
        "replifed.papers.jobs:artefacts",
        "Step of the workflow: make all figures and tables of a paper, one after the other.",
        "fedht --settings JSON --scale small --inputs run:simulation1/fedht=FILE "
        "--outputs fig1.csv=fig1.csv fig1.pdf=fig1.pdf fig1.png=fig1.png",
        names=("paper",),
        reads=("inputs",),
        writes=("outputs",),
        scaled=True,
    ),
    "report": _Step(
        "replifed.report.page:build",
        "Step of the workflow: write the report.",
        "--claims results/claims.csv --not-claimed results/not_claimed.csv --figures-dir figures "
        "--scale paper --settings JSON --out report.html",
        names=(),
        reads=("claims", "errata", "not_claimed"),
        writes=("out", "curves", "run"),
        optional=("claims", "not_claimed", "curves", "run"),
        scaled=True,
    ),
    "gallery": _Step(
        "replifed.report.gallery:write",
        "Step of the workflow: write a page of Markdown with every picture.",
        "--figures-dir figures --settings JSON --out docs/pictures.md",
        names=(),
        reads=(),
        writes=("out",),
    ),
}


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    for name, step in _STEPS.items():
        files, example = {"reads": step.reads, "writes": step.writes}, f"replifed {name} {step.example}"
        parser = add_command(commands, name, step.handler, step.text, example, **files)
        for argument in step.names:
            parser.add_argument(argument)
        if step.scaled:
            parser.add_argument("--scale", required=True, help="scale of the run: paper, small or tiny")
        add_settings(parser, required="settings" not in step.optional)
        for file in (*step.reads, *step.writes):
            flag = f"--{file.replace('_', '-')}"
            if file in ("inputs", "outputs"):
                add_files(parser, flag)
            elif file == "errata":
                add_file(parser, flag, nargs="*", default=[], help=_HELP[file])
            else:
                add_file(parser, flag, required=file not in step.optional, help=_HELP[file])
        if name == "run":
            add_snakemake(parser)
        if name in ("report", "gallery"):
            parser.add_argument("--figures-dir", type=Path, required=True, metavar="FOLDER")
        if name == "report":
            parser.add_argument("--single", action="store_true", help="put the pictures into the page")
    _add_manifest(commands)


def _add_manifest(commands: Any) -> None:
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
    add_out(write)
    verify = add_command(
        parts,
        "verify",
        _manifest_verify,
        "Hash every file again; exits with status 1 if one has changed, is missing or was made by no job.",
        "replifed manifest verify results/manifest.csv --folders results/fedht figures/fedht",
    )
    add_file(verify, "manifest")
    for part, text in (
        (write, "with all files below; may be absent"),
        (verify, "with files of the workflow"),
    ):
        part.add_argument("--folders", nargs="*", default=[], metavar="FOLDER", help=text)


def _manifest_verify(arguments: argparse.Namespace) -> int:
    from replifed.store import manifest

    checked, faults = manifest.verify(arguments.manifest, arguments.folders)
    found = counted(len(faults), "fault")
    print("\n".join([*faults, f"{checked} files of {arguments.manifest} checked, {found}"]))
    return 1 if faults else 0
