"""`replifed make`: an artefact, a paper or everything, by its name."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command, add_snakemake, call_snakemake, load_config
from replifed.errors import ConfigError, unknown_name

SMALL = "config/small.yaml"


def add(commands: Any) -> None:
    """Add this command to the parser."""
    make = add_command(
        commands,
        "make",
        _make,
        "Make one figure or table, all of a paper, or all, with Snakemake; then say where it is, and the "
        "verdicts of its claims where they have been measured.",
        "replifed make fedplt/fig3 --small --cores 2",
    )
    make.add_argument("name", metavar="PAPER/ARTEFACT", help="or PAPER, or all; see `replifed list`")
    make.add_argument("--small", action="store_true", help=f"at the reduced scale of {SMALL}")
    add_snakemake(make)


def _make(arguments: argparse.Namespace) -> int:
    if arguments.small:
        arguments.configfile = [SMALL, *arguments.configfile]
    config = load_config(arguments)
    paths = files(arguments.name, config)
    status = call_snakemake(paths[0] if paths else arguments.name, arguments)
    if status == 0 and not arguments.dry_run:
        print("\n".join([*paths, *_verdicts(arguments.name, config)]))
    return status


def files(name: str, config: Mapping[str, Any]) -> list[str]:
    """The files of an artefact, the first of which is the target; none for a paper and for all.

    Raises
    ------
    ConfigError
        There is no such name; with those that come near.
    """
    from replifed.settings.cuts import artefacts
    from replifed.workflow.plan import SUFFIXES

    paper, slash, artefact = name.partition("/")
    if not slash and name == "all":
        return []
    if paper not in config["papers"]:
        raise ConfigError(unknown_name("paper", paper, [*config["papers"], "all"]))
    if not slash:
        return []
    known = artefacts(config[paper])
    if artefact not in known:
        raise ConfigError(unknown_name(f"artefact of {paper}", artefact, known))
    numbers, *shown = SUFFIXES[known[artefact]["kind"]]
    folder = f"{config['paths']['figures']}/{paper}/{artefact}"
    return [f"{folder}.{suffix}" for suffix in (*shown, numbers)]


def _verdicts(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """A line a claim on what was made, from where the paper's claims have been measured."""
    from replifed.claims.files import read

    paper, _, artefact = name.partition("/")
    results = Path(config["paths"]["results"])
    measured = results / "claims.csv" if name == "all" else results / paper / "claims.csv"
    if not measured.is_file():
        yield f"its claims are measured by: snakemake --cores 2 {measured}"
        return
    for row in read(measured):
        if not artefact or row["artefact"] == artefact:
            yield f"{row['verdict']:12}  {row['id']}"
