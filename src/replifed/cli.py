"""The one command line, for people and for the workflow's jobs.

Handlers import what they need when they run: a job pays for no import that it does not use.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from replifed import __version__
from replifed.errors import ConfigError, ReplifedError, unknown_name

_POLICIES = ("auto", "real", "surrogate")
_SUFFIXES = ("csv", "pdf", "png", "md", "tex")

_EPILOG = """\
commands for people:
  list        what can be made: papers, artefacts, data sets, methods; what it cost: jobs
  run         run one method on one experiment
  data        fetch, parse and look at data sets
  claims      show the verdicts on the papers' claims
  manifest verify   see whether anything has changed since it was made

steps that the workflow calls (each writes the files it is told to, and nothing else):
  partition   split a data set between clients
  tune        choose a method's step size
  run         with --settings: run one method on one experiment
  artefact    make a figure or a table from runs
  claims measure, claims collect, errata, manifest write
  report      write the report

examples:
  replifed list artefacts
  replifed run fedht simulation1 fediterht --cores 2
  replifed claims --verdict deviates

Everything of all papers: snakemake --cores 2 all
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        0 on success, 2 after an error that the user can act on, 130 after Ctrl-C, else the status
        of the Snakemake call that the command stands for.
    """
    arguments = _parser().parse_args(argv)
    try:
        return arguments.handler(arguments) or 0
    except ReplifedError as error:
        first, *more = str(error).splitlines() or [""]
        print("\n".join([f"replifed: error: {first}", *(f"  {line}" for line in more)]), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("replifed: interrupted; give the same command again to go on", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output (`| head`) has gone; keep Python from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


# --- Arguments -----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="replifed",
        description="Replicates federated-optimisation papers: figures, tables and claims.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"replifed {__version__}")
    # The commands are listed by hand, grouped, in the epilog.
    commands = parser.add_subparsers(
        title="command", metavar="COMMAND", help="one of those below", required=True
    )
    _add_list(commands)
    _add_run(commands)
    _add_data(commands)
    _add_claims(commands)
    _add_errata(commands)
    _add_manifest(commands)
    _add_partition(commands)
    _add_tune(commands)
    _add_artefact(commands)
    _add_report(commands)
    return parser


def _add(
    commands: Any, name: str, handler: Callable[[argparse.Namespace], int | None], text: str, example: str
) -> argparse.ArgumentParser:
    """Add a command whose help ends with an example."""
    parser = commands.add_parser(
        name,
        description=text,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(handler=handler)
    return parser


def _add_list(commands: Any) -> None:
    parser = _add(commands, "list", _list, "Print what there is.", "replifed list artefacts --paper fedht")
    parser.add_argument(
        "what", nargs="?", default="artefacts", choices=["papers", "artefacts", "datasets", "methods", "jobs"]
    )
    parser.add_argument("--paper", help="only the artefacts of this paper")
    _add_configfile(parser)


def _add_run(commands: Any) -> None:
    parser = _add(
        commands,
        "run",
        _run,
        "Run one method on one experiment, with all its repetitions. With names alone, Snakemake makes what "
        "the run needs (data, partition, tuned steps), runs it with the settings of the configuration, and "
        "prints the path of the history. With --settings and --out this is a step that the workflow calls.",
        "replifed run fedht simulation1 fediterht --cores 2 --configfile config/small.yaml",
    )
    _add_job(parser, method=True, needs_settings=False)
    parser.add_argument("--data", type=Path, metavar="FILE", help="parsed data set (workflow)")
    parser.add_argument("--partition", type=Path, metavar="FILE", help="partition of the data set (workflow)")
    parser.add_argument("--tuned", type=Path, metavar="FILE", help="the method's tuned step (workflow)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the .parquet to write (workflow)")
    _add_snakemake(parser)


def _add_data(commands: Any) -> None:
    data = _add(
        commands,
        "data",
        _data_default,
        "Fetch, parse and look at data sets.",
        "replifed data status\n  replifed data --refresh\n  replifed data fetch mnist --policy real",
    )
    _add_source(data)
    parts = data.add_subparsers(
        title="command", metavar="COMMAND", help="fetch, parse, status (default) or all"
    )

    fetch = _add(
        parts,
        "fetch",
        _data_fetch,
        "Fetch raw files and record where they come from.",
        "replifed data fetch mnist",
    )
    fetch.add_argument("ids", nargs="+", metavar="DATASET")
    _add_source(fetch)

    parse = _add(
        parts,
        "parse",
        _data_parse,
        "Parse a fetched data set and check it.",
        "replifed data parse mnist --out data/parsed/mnist.npz",
    )
    parse.add_argument("id", metavar="DATASET")
    _add_raw_dir(parse)
    parse.add_argument(
        "--out", type=Path, metavar="FILE", help="default: parsed/DATASET.npz beside the raw folder"
    )

    status = _add(
        parts, "status", _data_status, "Print for each data set what was fetched.", "replifed data status"
    )
    _add_raw_dir(status)

    everything = _add(
        parts,
        "all",
        _data_all,
        "Fetch and parse every data set, through Snakemake.",
        "replifed data all --cores 2",
    )
    _add_configfile(everything)
    _add_snakemake(everything, configfile=False)


def _add_claims(commands: Any) -> None:
    claims = _add(
        commands,
        "claims",
        _claims_show,
        "Show the verdicts on the papers' claims (made by `snakemake all`); exits with status 1 if one that "
        "held in the reference holds no longer.",
        "replifed claims --paper fedht --verdict deviates",
    )
    claims.add_argument("--file", type=Path, metavar="FILE", help="default: claims.csv in the results folder")
    claims.add_argument("--paper", help="only this paper")
    claims.add_argument(
        "--verdict", help="only this verdict: reproduced, deviates, inconclusive or unchecked"
    )
    claims.add_argument(
        "--golden",
        type=Path,
        metavar="FILE",
        help="the reference; default: tests/golden/SCALE.csv, if it exists",
    )
    _add_configfile(claims)
    parts = claims.add_subparsers(title="references, and steps that the workflow calls", metavar="COMMAND")

    check = _add(
        parts,
        "check",
        _claims_check,
        "Compare what was measured with reference numbers; exits with status 1 if something moved.",
        "replifed claims check --golden tests/golden/small.csv --file results/small/claims.csv",
    )
    accept = _add(
        parts,
        "accept",
        _claims_accept,
        "Make what was measured the reference, printing old, new and difference.",
        "replifed claims accept --golden tests/golden/small.csv --file results/small/claims.csv",
    )
    for part in (check, accept):
        part.add_argument("--golden", type=Path, required=True, metavar="FILE", help="the reference")
        part.add_argument("--file", type=Path, required=True, metavar="FILE", help="the measured claims")

    log = _add(
        parts,
        "log",
        _claims_log,
        "Enter new and changed tolerances in their log, printing old and new.",
        "replifed claims log tests/golden/tolerances.csv --reason 'the interval of 30 seeds is known now'",
    )
    log.add_argument("log", type=Path, metavar="FILE")
    log.add_argument("--reason", default="", metavar="TEXT", help="why a number was changed")

    measure = _add(
        parts,
        "measure",
        _claims_measure,
        "Measure the claims of one paper.",
        "replifed claims measure fedht --settings JSON --scale paper "
        "--inputs run:simulation1/fedht=FILE --out results/fedht/claims.csv",
    )
    measure.add_argument("paper")
    _add_settings(measure)
    _add_inputs(measure)
    measure.add_argument("--out", type=Path, required=True, metavar="FILE")

    timing = _add(
        parts,
        "timing",
        _claims_timing,
        "Measure the claims on seconds, on the figures that show them.",
        "replifed claims timing --scale paper "
        "--inputs fedgradmp/fig3_seconds=FILE --out results/claims_timing.csv",
    )
    _add_inputs(timing)
    timing.add_argument("--out", type=Path, required=True, metavar="FILE")

    collect = _add(
        parts,
        "collect",
        _claims_collect,
        "Join the claims of all papers.",
        "replifed claims collect results/fedht/claims.csv --out results/claims.csv",
    )
    collect.add_argument("files", nargs="+", type=Path, metavar="FILE")
    collect.add_argument("--out", type=Path, required=True, metavar="FILE")


def _add_errata(commands: Any) -> None:
    parser = _add(
        commands,
        "errata",
        _errata,
        "Step of the workflow: check the errata of one paper.",
        "replifed errata fedht --out results/fedht/errata.csv",
    )
    parser.add_argument("paper")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")


def _add_manifest(commands: Any) -> None:
    manifest = commands.add_parser("manifest", description="Hashes of what was made; see `snakemake verify`.")
    parts = manifest.add_subparsers(title="commands", metavar="COMMAND", required=True)
    write = _add(
        parts,
        "write",
        _manifest_write,
        "Step of the workflow: hash files, and all files in folders.",
        "replifed manifest write results/claims.csv --folders data/raw --out results/manifest.csv",
    )
    write.add_argument("files", nargs="+", metavar="FILE")
    write.add_argument(
        "--folders", nargs="*", default=[], metavar="FOLDER", help="with all files below; may be absent"
    )
    write.add_argument("--out", type=Path, required=True, metavar="FILE")
    verify = _add(
        parts,
        "verify",
        _manifest_verify,
        "Hash every file again; exits with status 1 if one has changed or is missing.",
        "replifed manifest verify results/manifest.csv",
    )
    verify.add_argument("manifest", type=Path, metavar="FILE")


def _add_partition(commands: Any) -> None:
    parser = _add(
        commands,
        "partition",
        _partition,
        "Step of the workflow: split a data set between clients.",
        "replifed partition fedht mnist --settings JSON --data data/parsed/mnist.npz "
        "--out partition.npz --table partition.csv",
    )
    _add_job(parser)
    parser.add_argument("--data", type=Path, required=True, metavar="FILE", help="parsed data set")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the .npz to write")
    parser.add_argument(
        "--table", type=Path, required=True, metavar="FILE", help="the .csv of its heterogeneity"
    )


def _add_tune(commands: Any) -> None:
    parser = _add(
        commands,
        "tune",
        _tune,
        "Step of the workflow: choose a method's step size.",
        "replifed tune fedht simulation1 fedavg --settings JSON --out fedavg.tuned.json",
    )
    _add_job(parser, method=True)
    parser.add_argument("--data", type=Path, metavar="FILE", help="parsed data set")
    parser.add_argument("--partition", type=Path, metavar="FILE", help="partition of the data set")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the .json to write")


def _add_artefact(commands: Any) -> None:
    parser = _add(
        commands,
        "artefact",
        _artefact,
        "Step of the workflow: make a figure or a table.",
        "replifed artefact fedht fig1 --settings JSON --scale paper "
        "--inputs run:simulation1/fedht=FILE --csv fig1.csv --pdf fig1.pdf --png fig1.png",
    )
    parser.add_argument("paper")
    parser.add_argument("name", metavar="artefact")
    _add_settings(parser)
    _add_inputs(parser)
    for suffix in _SUFFIXES:
        parser.add_argument(f"--{suffix}", type=Path, metavar="FILE", help=f"the .{suffix} to write")


def _add_report(commands: Any) -> None:
    parser = _add(
        commands,
        "report",
        _report,
        "Step of the workflow: write the report.",
        "replifed report --claims results/claims.csv --figures-dir figures --scale paper --out report.html",
    )
    parser.add_argument("--claims", type=Path, required=True, metavar="FILE")
    parser.add_argument("--errata", type=Path, nargs="*", default=[], metavar="FILE")
    _add_settings(parser, required=False)
    parser.add_argument("--figures-dir", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--scale", required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")


def _add_job(parser: argparse.ArgumentParser, *, method: bool = False, needs_settings: bool = True) -> None:
    parser.add_argument("paper")
    parser.add_argument("experiment")
    if method:
        parser.add_argument("method")
    _add_settings(parser, required=needs_settings)


def _add_settings(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    by_hand = "" if required else " (workflow)"
    parser.add_argument(
        "--settings", type=_json, required=required, metavar="JSON", help=f"settings of this step{by_hand}"
    )


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", required=True, help="scale of the run: paper, small or tiny")
    parser.add_argument("--inputs", type=_pair, nargs="+", action="extend", default=[], metavar="KEY=FILE")


# Options of `data` are accepted before and after its subcommand. Absent ones leave no attribute:
# a default of the subcommand would overwrite what was given before it.


def _add_raw_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--raw-dir",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="FOLDER",
        help="folder of raw files; default: raw/ in the data folder of the configuration",
    )


def _add_source(parser: argparse.ArgumentParser) -> None:
    _add_raw_dir(parser)
    parser.add_argument(
        "--policy",
        choices=_POLICIES,
        default=argparse.SUPPRESS,
        help="what to do when the original cannot be had; default: that of the configuration",
    )
    parser.add_argument(
        "--mirror",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="FOLDER",
        help="folder with copies of the original files; default: the variable REPLIFED_MIRROR",
    )
    parser.add_argument(
        "--substitutes",
        action="store_true",
        default=argparse.SUPPRESS,
        help="accept other real data with policy real",
    )
    parser.add_argument(
        "--refresh",
        action="store_true",
        default=argparse.SUPPRESS,
        help="look again for the originals of data sets that are not original",
    )


def _add_configfile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--configfile",
        action="append",
        default=[],
        metavar="FILE",
        help="settings that override those of config/, e.g. config/small.yaml; may be repeated",
    )


def _add_snakemake(parser: argparse.ArgumentParser, *, configfile: bool = True) -> None:
    if configfile:
        _add_configfile(parser)
    parser.add_argument("-c", "--cores", type=int, default=1, metavar="N", help="jobs at a time; default 1")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what would be done")


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


def _pair(text: str) -> tuple[str, Path]:
    key, equals, file = text.partition("=")
    if not (key and equals and file):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=FILE")
    return key, Path(file)


# --- Handlers ------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> None:
    if arguments.what == "methods":
        from replifed.algorithms.registry import METHODS

        print("\n".join(sorted(METHODS)))
    elif arguments.what == "datasets":
        from replifed.data.catalogue import CATALOGUE

        width = max(map(len, CATALOGUE))
        print("\n".join(f"{name:{width}}  {dataset.title}" for name, dataset in CATALOGUE.items()))
    elif arguments.what == "papers":
        config = _load(arguments)
        print("\n".join(config["papers"]))
    elif arguments.what == "jobs":
        from replifed.costs import read, table

        print(table(read(Path(_load(arguments)["paths"]["results"], "benchmarks"))))
    else:
        _list_artefacts(arguments)


def _list_artefacts(arguments: argparse.Namespace) -> None:
    from replifed.config import artefacts, used_experiments

    config = _load(arguments)
    papers = config["papers"]
    if arguments.paper is not None:
        _known("paper", arguments.paper, papers)
        papers = [arguments.paper]
    figures, flags = (
        config["paths"]["figures"],
        "".join(f" --configfile {name}" for name in arguments.configfile),
    )
    for paper in papers:
        print(f"{paper}: all of this paper")
        made = artefacts(config[paper])
        paths = {
            name: f"{figures}/{paper}/{name}.{'pdf' if artefact['kind'] == 'figure' else 'md'}"
            for name, artefact in made.items()
        }
        width = max(map(len, paths.values()))
        for name, artefact in made.items():
            print(f"  {paths[name]:{width}}  from {', '.join(used_experiments(artefact))}")
        for name, reason in config[paper].get("not_computed", {}).items():
            print(f"  ({name} is not computed: {reason})")
    if arguments.paper is None:
        print("all: every paper, the claims and the report")
        print("data: fetch and parse every data set")
    print(f"\nMake one with: snakemake --cores 2 TARGET{flags}")


def _run(arguments: argparse.Namespace) -> int | None:
    if (arguments.settings is None) != (arguments.out is None):
        raise ConfigError("--settings and --out are given together (by the workflow) or not at all")
    if arguments.settings is not None:
        from replifed.papers import jobs

        jobs.run(
            arguments.paper,
            arguments.experiment,
            arguments.method,
            arguments.settings,
            arguments.data,
            arguments.partition,
            arguments.tuned,
            arguments.out,
        )
        return None
    if arguments.data or arguments.partition or arguments.tuned:
        raise ConfigError(
            "--data, --partition and --tuned are only for the workflow, together with --settings"
        )
    config = _load(arguments)
    _known("paper", arguments.paper, config["papers"])
    experiments = config[arguments.paper]["experiments"]
    _known("experiment", arguments.experiment, experiments)
    _known("method of this experiment", arguments.method, experiments[arguments.experiment]["methods"])
    target = (
        f"{config['paths']['results']}/{arguments.paper}/{arguments.experiment}/{arguments.method}.parquet"
    )
    status = _snakemake(target, arguments)
    if status == 0 and not arguments.dry_run:
        print(target)
    return status


def _data_default(arguments: argparse.Namespace) -> None:
    if getattr(arguments, "refresh", False):
        arguments.ids = []
        _data_fetch(arguments)
    else:
        _data_status(arguments)


def _data_fetch(arguments: argparse.Namespace) -> None:
    from replifed.data.commands import fetch_command

    given = vars(arguments)
    # The workflow gives everything that a job may depend on; by hand, the rest is as configured.
    configured = {} if {"raw_dir", "policy"} <= given.keys() else _configured_data()
    fetch_command(
        arguments.ids,
        _raw_dir(arguments),
        policy=given.get("policy", configured.get("policy", "auto")),
        mirror=given.get("mirror", configured.get("mirror")),
        substitutes=given.get("substitutes", configured.get("substitutes", False)),
        refresh=given.get("refresh", False),
        progress=sys.stderr.isatty(),
    )


def _data_parse(arguments: argparse.Namespace) -> None:
    from replifed.data.commands import parse_command

    raw_dir = _raw_dir(arguments)
    out = arguments.out or raw_dir.parent / "parsed" / f"{arguments.id}.npz"
    parse_command(arguments.id, raw_dir, out)


def _data_status(arguments: argparse.Namespace) -> None:
    from replifed.data.commands import status_table

    print(status_table(_raw_dir(arguments)))


def _raw_dir(arguments: argparse.Namespace) -> Path:
    if "raw_dir" in arguments:
        return arguments.raw_dir
    return Path(_configured_data().get("folder", "data"), "raw")


def _configured_data() -> dict[str, Any]:
    """Return the configuration's section `data` and its folder; nothing outside a checkout."""
    from replifed.config import MAIN_FILE, load

    if not MAIN_FILE.is_file():
        return {}
    config = load()
    return {**config["data"], "folder": config["paths"]["data"]}


def _data_all(arguments: argparse.Namespace) -> int:
    return _snakemake("data", arguments)


def _claims_show(arguments: argparse.Namespace) -> int:
    from replifed.papers import golden, verdicts

    file = arguments.file or Path(_load(arguments)["paths"]["results"], "claims.csv")
    if not file.is_file():
        raise ConfigError(f"{file} does not exist; make it with `snakemake --cores 2 {file}`")
    verdicts.show(file, paper=arguments.paper, verdict=arguments.verdict)
    reference = arguments.golden or golden.reference_of(file)
    lost = golden.lost(file, reference) if reference else []
    if lost:
        print("\n".join(["", "no longer holds:", *lost]))
    return 1 if lost else 0


def _claims_measure(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    jobs.measure_claims(
        arguments.paper, arguments.settings, arguments.scale, _by_key(arguments.inputs), arguments.out
    )


def _claims_check(arguments: argparse.Namespace) -> int:
    from replifed.papers import golden

    compared, faults = golden.compare(arguments.file, arguments.golden)
    if not compared:
        raise ReplifedError(f"{arguments.golden} has no reference for any claim in {arguments.file}")
    print("\n".join([*faults, f"{compared} claims compared with {arguments.golden}, {len(faults)} moved"]))
    return 1 if faults else 0


def _claims_accept(arguments: argparse.Namespace) -> None:
    from replifed.papers import golden

    moved = golden.accept(arguments.file, arguments.golden)
    print("\n".join([*moved, f"{len(moved)} references moved in {arguments.golden}"]))


def _claims_log(arguments: argparse.Namespace) -> None:
    from replifed.papers import tolerances

    changed = tolerances.record(tolerances.all_claims(), arguments.log, arguments.reason)
    for name, (before, now) in changed.items():
        print(f"{name}: {before or 'new'} -> {now or 'gone'}")
    print(f"{len(changed)} entries changed in {arguments.log}")


def _claims_timing(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    jobs.measure_timing(arguments.scale, _by_key(arguments.inputs), arguments.out)


def _claims_collect(arguments: argparse.Namespace) -> None:
    from replifed.papers import verdicts

    verdicts.collect(arguments.files, arguments.out)


def _errata(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    jobs.measure_errata(arguments.paper, arguments.out)


def _manifest_write(arguments: argparse.Namespace) -> None:
    from replifed import manifest

    manifest.write(arguments.files, arguments.out, arguments.folders)


def _manifest_verify(arguments: argparse.Namespace) -> int:
    from replifed import manifest

    checked, faults = manifest.verify(arguments.manifest)
    print("\n".join([*faults, f"{checked} files of {arguments.manifest} checked, {len(faults)} faults"]))
    return 1 if faults else 0


def _partition(arguments: argparse.Namespace) -> None:
    from replifed.partition.commands import partition

    partition(
        arguments.paper,
        arguments.experiment,
        arguments.settings,
        arguments.data,
        arguments.out,
        arguments.table,
    )


def _tune(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    jobs.tune(
        arguments.paper,
        arguments.experiment,
        arguments.method,
        arguments.settings,
        arguments.data,
        arguments.partition,
        arguments.out,
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
        _by_key(arguments.inputs),
        outputs,
    )


def _report(arguments: argparse.Namespace) -> None:
    from replifed.papers import report

    report.build(
        arguments.claims,
        arguments.figures_dir,
        arguments.scale,
        arguments.out,
        config=arguments.settings,
        errata=arguments.errata,
    )


# --- Helpers -------------------------------------------------------------------------------------


def _load(arguments: argparse.Namespace) -> dict[str, Any]:
    from replifed.config import load

    return load(arguments.configfile)


def _by_key(pairs: Sequence[tuple[str, Path]]) -> dict[str, list[Path]]:
    """Return the files of each key, which may have several (a partition and its table)."""
    files: dict[str, list[Path]] = {}
    for key, file in pairs:
        files.setdefault(key, []).append(file)
    return files


def _known(kind: str, name: str, known: Sequence[str] | dict[str, Any]) -> None:
    if name not in known:
        raise ConfigError(unknown_name(kind, name, known))


def _snakemake(target: str, arguments: argparse.Namespace) -> int:
    """Make a target, with the target first: several of Snakemake's options would swallow it."""
    import subprocess

    if not Path("Snakefile").is_file():
        raise ConfigError("there is no Snakefile here; run from the folder that holds it")
    words = [sys.executable, "-m", "snakemake", target, "--cores", str(arguments.cores)]
    if arguments.dry_run:
        words.append("--dry-run")
    if arguments.configfile:
        words += ["--configfile", *arguments.configfile]
    return subprocess.run(words, check=False).returncode
