"""`replifed init` and `new`: folders for work of one's own."""

from __future__ import annotations

import argparse
import shlex
import shutil
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command
from replifed.errors import ConfigError
from replifed.parts import name_fault
from replifed.store.atomic import make_folder
from replifed.store.folders import fill, new_folder

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
    text = "which of these logs, such as '{method}_rcv1_{seed}.csv'; default: all of one form"
    paper.add_argument("--files", metavar="PATTERN", help=text)
    for side in ("lower", "higher"):
        text = f"columns of the logs that are better when {side}"
        paper.add_argument(f"--{side}", nargs="+", default=[], metavar="METRIC", help=text)


def _init(arguments: argparse.Namespace) -> None:
    from replifed.settings.reading import project

    source = project()
    if source is None:
        raise ConfigError("the workflow has not been installed with the package; use a checkout")
    for name in _COPIED:
        if arguments.folder.joinpath(name).exists():
            raise ConfigError(f"{arguments.folder / name} exists already; choose another folder")
    make_folder(arguments.folder)
    for name in _COPIED:
        copy = shutil.copytree if source.joinpath(name).is_dir() else shutil.copy
        copy(source / name, arguments.folder / name)
    print(f"next: `cd {shlex.quote(str(arguments.folder))}`, `replifed make all --small --cores 2`")


def _paper(arguments: argparse.Namespace) -> None:
    if arguments.from_logs is None and arguments.to is None:
        raise ConfigError("which folder are your papers in? give --to FOLDER")
    if arguments.from_logs is None and (arguments.files or arguments.lower or arguments.higher):
        raise ConfigError("--files, --lower and --higher are about logs; give --from-logs FOLDER")
    name, folder = arguments.name, (arguments.to or Path()) / arguments.name
    if fault := name_fault(name):
        raise ConfigError(f"{fault}; give yours another name")
    if arguments.from_logs is not None:
        from replifed.logs.template import write

        if both := sorted(set(arguments.lower) & set(arguments.higher)):
            raise ConfigError(f"{both[0]} cannot be better when lower and when higher; give one side")
        better = dict.fromkeys(arguments.lower, "lower") | dict.fromkeys(arguments.higher, "higher")
        with new_folder(folder):
            write(name, folder, arguments.from_logs, arguments.files, better)
        print(f"judge it: replifed judge {folder}")
        return
    with new_folder(folder):
        files = [
            file
            for kind in ("any_paper", "paper")
            for file in fill(folder, kind, lambda text: text.replace("NAME", name))
        ]
    print(*sorted(files), sep="\n")
    setting = shlex.quote(f"paper_folders=[{arguments.to}]")
    print(f"run it: `snakemake --cores 2 {name} --config {setting}`")
