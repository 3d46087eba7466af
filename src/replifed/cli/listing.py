"""`replifed list`: what there is, and what it cost."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command, add_configfile, check_known, load_config


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    _add_list(commands)


def _add_list(commands: Any) -> None:
    parser = add_command(
        commands, "list", _list, "Print what there is.", "replifed list artefacts --paper fedht"
    )
    parser.add_argument(
        "what", nargs="?", default="artefacts", choices=["papers", "artefacts", "datasets", "methods", "jobs"]
    )
    parser.add_argument("--paper", help="only the artefacts of this paper")
    add_configfile(parser)


def _list(arguments: argparse.Namespace) -> None:
    if arguments.what == "methods":
        from replifed.algorithms.registry import METHODS

        print("\n".join(sorted(METHODS)))
    elif arguments.what == "datasets":
        from replifed.data.catalogue import CATALOGUE

        width = max(map(len, CATALOGUE))
        print("\n".join(f"{name:{width}}  {dataset.title}" for name, dataset in CATALOGUE.items()))
    elif arguments.what == "papers":
        config = load_config(arguments)
        print("\n".join(config["papers"]))
    elif arguments.what == "jobs":
        from replifed.costs import read, table

        print(table(read(Path(load_config(arguments)["paths"]["results"], "benchmarks"))))
    else:
        _list_artefacts(arguments)


def _list_artefacts(arguments: argparse.Namespace) -> None:
    from replifed.settings import artefacts, used_experiments

    config = load_config(arguments)
    papers = config["papers"]
    if arguments.paper is not None:
        check_known("paper", arguments.paper, papers)
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
