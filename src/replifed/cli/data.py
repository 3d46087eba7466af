"""`replifed data` and `replifed partition`: data sets, and their split between clients."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    add_command,
    add_file,
    add_job,
    add_out,
    add_snakemake,
    call_snakemake,
)

_POLICIES = ("auto", "real", "surrogate")


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    data = add_command(
        commands,
        "data",
        _default,
        "Fetch, parse and look at data sets.",
        "replifed data status\n  replifed data --refresh\n  replifed data fetch mnist --policy real",
        argument_default=argparse.SUPPRESS,
    )
    _add_source(data)
    parts = data.add_subparsers(
        title="command", metavar="COMMAND", help="fetch, parse, status (default) or all"
    )

    fetch = add_command(
        parts,
        "fetch",
        _fetch,
        "Fetch raw files and record where they come from.",
        "replifed data fetch mnist",
        argument_default=argparse.SUPPRESS,
    )
    fetch.add_argument("ids", nargs="+", metavar="DATASET")
    _add_source(fetch)

    parse = add_command(
        parts,
        "parse",
        _parse,
        "Parse a fetched data set and check it.",
        "replifed data parse mnist --out data/parsed/mnist.npz",
        writes=("out",),
        argument_default=argparse.SUPPRESS,
    )
    parse.add_argument("id", metavar="DATASET")
    _add_raw_dir(parse)
    add_out(parse, required=False, default=None, help="default: parsed/DATASET.npz beside the raw folder")

    status = add_command(
        parts,
        "status",
        _status,
        "Print for each data set what was fetched.",
        "replifed data status",
        argument_default=argparse.SUPPRESS,
    )
    _add_raw_dir(status)

    everything = add_command(
        parts,
        "all",
        _all,
        "Fetch and parse every data set, through Snakemake.",
        "replifed data all --cores 2",
    )
    add_snakemake(everything)

    partition = add_command(
        commands,
        "partition",
        "replifed.partition.build:partition",
        "Step of the workflow: split a data set between clients.",
        "replifed partition fedht mnist --settings JSON --data data/parsed/mnist.npz "
        "--out partition.npz --table partition.csv",
        reads=("data",),
        writes=("out", "table"),
    )
    add_job(partition, "paper", "experiment")
    add_file(partition, "--data", required=True, help="parsed data set")
    add_out(partition, help="the .npz to write")
    add_file(partition, "--table", required=True, help="the .csv of its heterogeneity")


def _add_raw_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--raw-dir",
        type=Path,
        metavar="FOLDER",
        help="folder of raw files; default: raw/ in the data folder of the configuration",
    )


def _add_source(parser: argparse.ArgumentParser) -> None:
    _add_raw_dir(parser)
    parser.add_argument(
        "--policy",
        choices=_POLICIES,
        help="what to do when the original cannot be had; default: that of the configuration",
    )
    parser.add_argument(
        "--mirror",
        type=Path,
        metavar="FOLDER",
        help="folder with copies of the original files; default: the variable REPLIFED_MIRROR",
    )
    parser.add_argument(
        "--substitutes",
        action="store_true",
        help="accept other real data with policy real",
    )
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="look again for the originals of data sets that are not original",
    )


def _default(arguments: argparse.Namespace) -> None:
    if "refresh" in arguments:
        arguments.ids = []
        _fetch(arguments)
    else:
        _status(arguments)


def _fetch(arguments: argparse.Namespace) -> None:
    """Fetch the named data sets, or all of them, and print one line for each."""
    from replifed.data.catalogue import CATALOGUE, get
    from replifed.data.fetch import fetch

    given = vars(arguments)
    # The workflow gives everything that a job may depend on; by hand, the rest is as configured.
    chosen = {} if {"raw_dir", "policy"} <= given.keys() else _configured_data()
    chosen.pop("folder", None)
    chosen |= {key: given[key] for key in ("policy", "mirror", "substitutes", "refresh") if key in given}
    raw_dir = _raw_dir(arguments)
    for dataset in [get(id_) for id_ in arguments.ids] or CATALOGUE.values():
        record = fetch(dataset, raw_dir, progress=sys.stderr.isatty(), **chosen)
        print(", ".join([f"{dataset.id}: {record['kind']}", *(file["name"] for file in record["files"])]))
        if dataset.terms and record["kind"] != "surrogate":
            print(f"{dataset.id}: terms of use: {dataset.terms}")


def _parse(arguments: argparse.Namespace) -> None:
    from replifed.data.catalogue import get
    from replifed.data.parse import parse

    raw_dir = _raw_dir(arguments)
    arguments.out = arguments.out or raw_dir.parent / "parsed" / f"{arguments.id}.npz"
    meta = parse(get(arguments.id), raw_dir, arguments.out)
    counts = ", ".join(f"{value} {name}" for name, value in meta["counts"].items() if value is not None)
    print(f"{arguments.id}: {meta['kind']}, {counts}")


def _status(arguments: argparse.Namespace) -> None:
    from tabulate import tabulate

    from replifed.data.records import not_original, status_rows

    rows = status_rows(_raw_dir(arguments))
    print(f"{tabulate(rows, headers='keys')}\n\n{not_original(rows)}")


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


def _all(arguments: argparse.Namespace) -> int:
    return call_snakemake("data", arguments)
