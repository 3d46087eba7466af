"""`replifed data` and `replifed partition`: data sets, and their split between clients."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command, add_configfile, add_job, add_snakemake, call_snakemake

_POLICIES = ("auto", "real", "surrogate")


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    _add_data(commands)
    _add_partition(commands)


def _add_data(commands: Any) -> None:
    data = add_command(
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

    fetch = add_command(
        parts,
        "fetch",
        _data_fetch,
        "Fetch raw files and record where they come from.",
        "replifed data fetch mnist",
    )
    fetch.add_argument("ids", nargs="+", metavar="DATASET")
    _add_source(fetch)

    parse = add_command(
        parts,
        "parse",
        _data_parse,
        "Parse a fetched data set and check it.",
        "replifed data parse mnist --out data/parsed/mnist.npz",
        writes=("out",),
    )
    parse.add_argument("id", metavar="DATASET")
    _add_raw_dir(parse)
    parse.add_argument(
        "--out", type=Path, metavar="FILE", help="default: parsed/DATASET.npz beside the raw folder"
    )

    status = add_command(
        parts, "status", _data_status, "Print for each data set what was fetched.", "replifed data status"
    )
    _add_raw_dir(status)

    everything = add_command(
        parts,
        "all",
        _data_all,
        "Fetch and parse every data set, through Snakemake.",
        "replifed data all --cores 2",
    )
    add_configfile(everything)
    add_snakemake(everything, configfile=False)


def _add_partition(commands: Any) -> None:
    parser = add_command(
        commands,
        "partition",
        _partition,
        "Step of the workflow: split a data set between clients.",
        "replifed partition fedht mnist --settings JSON --data data/parsed/mnist.npz "
        "--out partition.npz --table partition.csv",
        reads=("data",),
        writes=("out", "table"),
    )
    add_job(parser)
    parser.add_argument("--data", type=Path, required=True, metavar="FILE", help="parsed data set")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the .npz to write")
    parser.add_argument(
        "--table", type=Path, required=True, metavar="FILE", help="the .csv of its heterogeneity"
    )


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
    arguments.out = arguments.out or raw_dir.parent / "parsed" / f"{arguments.id}.npz"
    parse_command(arguments.id, raw_dir, arguments.out)


def _data_status(arguments: argparse.Namespace) -> None:
    from replifed.data.commands import status_table

    print(status_table(_raw_dir(arguments)))


def _raw_dir(arguments: argparse.Namespace) -> Path:
    if "raw_dir" in arguments:
        return arguments.raw_dir
    return Path(_configured_data().get("folder", "data"), "raw")


def _configured_data() -> dict[str, Any]:
    """Return the configuration's section `data` and its folder; nothing outside a checkout."""
    from replifed.settings import MAIN_FILE, load

    if not MAIN_FILE.is_file():
        return {}
    config = load()
    return {**config["data"], "folder": config["paths"]["data"]}


def _data_all(arguments: argparse.Namespace) -> int:
    return call_snakemake("data", arguments)


def _partition(arguments: argparse.Namespace) -> None:
    from replifed.partition.build import partition

    partition(
        arguments.paper,
        arguments.experiment,
        arguments.settings,
        arguments.data,
        arguments.out,
        arguments.table,
    )
