"""`replifed init`, `new` and `export`: folders for work of one's own, and for federations."""

from __future__ import annotations

import argparse
import shlex
import shutil
from pathlib import Path
from typing import Any

from replifed import __version__
from replifed.claims.evidence import OWN
from replifed.cli.arguments import add_command
from replifed.errors import ConfigError
from replifed.parts import name_error
from replifed.store.folders import fill, new_folder

_COLUMNS = {
    "method": "the methods' names",
    "seed": "the repetitions' names",
    "round": "rounds or steps; line counts lines",
    "bits": "all bits that were sent so far",
    "client": "clients' names, where each line is a client",
    "weight": "clients' weights, such as their samples",
}
_COPIED = "Snakefile", "environment.yml", "workflow", "config", "profiles"


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    text = "Write a folder in which the workflow runs, without a checkout: Snakefile, settings and profiles."
    init = add_command(commands, "init", _init, text, "my_work")
    init.add_argument("folder", type=Path, metavar="FOLDER")

    new = commands.add_parser("new", description="Write a folder with a template.")
    kinds = new.add_subparsers(title="what", metavar="WHAT", required=True)
    text = "Write a paper of your own that runs at once: experiments, a figure, claims and settings."
    paper = add_command(kinds, "paper", _paper, text, "demo --to my_papers")
    paper.add_argument("name", help="small letters, digits and underscores")
    paper.add_argument("--to", type=Path, metavar="FOLDER", help="the folder of your papers")
    text = "make it a paper on logs of runs made elsewhere: those in this folder, which are copied"
    paper.add_argument("--from-logs", type=Path, metavar="FOLDER", help=text)
    stated = paper.add_argument_group("logs", "what the logs mean, where that is not clear by itself")

    def add_several(option: str, what: str, text: str) -> None:
        stated.add_argument(f"--{option}", action="extend", nargs="+", default=[], metavar=what, help=text)

    text = "which of these logs, such as '{method}_rcv1_{seed}.csv'; other names in braces are columns"
    add_several("files", "PATTERN", text)
    for side in ("lower", "higher"):
        text = f"columns of the logs that are better when {side}"
        add_several(side, "METRIC", text)
    for meaning, text in _COLUMNS.items():
        stated.add_argument(f"--{meaning}", metavar="COLUMN", help=f"column of {text}")
    text = "names of columns that are runs each, such as '{method}' or '{method} - {metric}'"
    stated.add_argument("--wide", metavar="PATTERN", help=text)
    text = "only lines whose columns have these values, such as data=a9a epsilon=0.1"
    add_several("where", "COLUMN=VALUE", text)
    stated.add_argument("--until", type=int, metavar="ROUND", help="the last round that counts")
    text = "runs stop once they are done: one that ends early keeps its last values"
    stated.add_argument("--stopped", action="store_true", default=None, help=text)
    text = "the runs are your own: claims rest on own runs, not on the authors' logs"
    stated.add_argument("--own", action="store_const", const=OWN, help=text)
    text = "the setting over which each line is the best, such as eta: such a line is no run"
    stated.add_argument("--best-over", metavar="NAME", help=text)

    export = commands.add_parser("export", description="Write a method for another runtime.")
    runtimes = export.add_subparsers(title="runtime", metavar="RUNTIME", required=True)
    text = "Write an app for `flwr run` from a method, built in or your own, that has a client and a server."
    flower = add_command(runtimes, "flower", _flower, text, "fedlin --to app")
    flower.add_argument("method", metavar="METHOD", help="name of a method, or FILE:CLASS")
    flower.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="a new folder")


def _init(arguments: argparse.Namespace) -> None:
    from replifed.settings.reading import project

    source = project()
    if source is None:
        raise ConfigError("the workflow has not been installed with the package; use a checkout")
    for name in _COPIED:
        if arguments.folder.joinpath(name).exists():
            raise ConfigError(f"{arguments.folder / name} exists already; choose another folder")
    # All is copied before anything has its name, so that one broken off can be made again.
    part = arguments.folder / ".replifed-init"
    shutil.rmtree(part, ignore_errors=True)
    with new_folder(part):
        for name in _COPIED:
            copy = shutil.copytree if source.joinpath(name).is_dir() else shutil.copy
            copy(source / name, part / name)
        for name in _COPIED:
            part.joinpath(name).rename(arguments.folder / name)
    part.rmdir()
    there = arguments.folder.resolve() == Path.cwd()
    step = "" if there else f"`cd {shlex.quote(str(arguments.folder))}`, "
    print(f"next: {step}`replifed make all --small --cores 2`")


def _paper(arguments: argparse.Namespace) -> None:
    if arguments.from_logs is None and arguments.to is None:
        raise ConfigError("which folder are your papers in? give --to FOLDER")
    stated = _stated(arguments)
    if arguments.from_logs is None and (stated or arguments.lower or arguments.higher):
        raise ConfigError("--files, --lower, --higher and the like are about logs; give --from-logs FOLDER")
    name, folder = arguments.name, (arguments.to or Path()) / arguments.name
    if wrong := name_error(name):
        raise ConfigError(f"{wrong}; give yours another name")
    if arguments.from_logs is not None:
        from replifed.logs.template import write

        if both := sorted(set(arguments.lower) & set(arguments.higher)):
            raise ConfigError(f"{both[0]} cannot be better when lower and when higher; give one side")
        better = dict.fromkeys(arguments.lower, "lower") | dict.fromkeys(arguments.higher, "higher")
        write(name, folder, arguments.from_logs, stated, better)
        print(f"judge it: replifed judge {folder}")
        return
    minor = __version__.rpartition(".")[0]
    with new_folder(folder):
        files = [
            file
            for kind in ("any_paper", "paper")
            for file in fill(folder, kind, lambda text: text.replace("NAME", name).replace("VERSION", minor))
        ]
    print(*sorted(files), sep="\n")
    setting = shlex.quote(f"paper_folders=[{arguments.to}]")
    print(f"run it: `snakemake --cores 2 {name} --config {setting}`")


def _stated(arguments: argparse.Namespace) -> dict[str, Any]:
    """Settings of the experiment that the options state (`logs.settings.Experiment`)."""
    from replifed.logs.values import number_or_text

    columns = {key: value for key in _COLUMNS if (value := getattr(arguments, key)) is not None}
    where: dict[str, Any] = {}
    for one in arguments.where:
        column, equals, text = one.partition("=")
        if not equals or not column:
            raise ConfigError(f"--where {one}: give COLUMN=VALUE, such as data=a9a")
        value = number_or_text(text)
        if where.setdefault(column, value) != value:
            raise ConfigError(f"--where {one}: {column} is to be {where[column]}, too; give one value")
    files = arguments.files
    given = {
        "logs": files[0] if len(files) == 1 else files,
        "wide": arguments.wide,
        "columns": columns,
        "where": where,
        "until": arguments.until,
        "stopped": arguments.stopped,
        "best_over": arguments.best_over,
        "evidence": arguments.own,
    }
    return {key: value for key, value in given.items() if value not in (None, {}, [])}


def _flower(arguments: argparse.Namespace) -> None:
    from replifed.wire.export import export

    for file in export(arguments.method, arguments.to):
        print(file)
    print("replifed must be installed on each node, and where the server runs: see README.md")
