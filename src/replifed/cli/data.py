"""`replifed data`: data sets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    NO_DEFAULTS,
    add_command,
    add_out,
    add_snakemake,
    call_snakemake,
)
from replifed.errors import ConfigError
from replifed.store import hashes


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    example = "status\n  replifed data --refresh\n  replifed data fetch mnist --policy real"
    data = add_command(
        commands, "data", _default, "Fetch, parse and look at data sets.", example, **NO_DEFAULTS
    )
    _add_source(data)
    parts = data.add_subparsers(
        title="command", metavar="COMMAND", help="fetch, parse, status (default) or all"
    )

    text = "Fetch raw files and record where they come from."
    fetch = add_command(parts, "fetch", _fetch, text, "mnist", **NO_DEFAULTS)
    fetch.add_argument("ids", nargs="+", metavar="DATASET")
    _add_source(fetch)

    text, example = "Parse a fetched data set and check it.", "mnist --out data/parsed/mnist.npz"
    parse = add_command(parts, "parse", _parse, text, example, **NO_DEFAULTS)
    parse.add_argument("id", metavar="DATASET")
    _add_raw_dir(parse)
    add_out(parse, required=False, default=None, help="default: parsed/DATASET.npz beside the raw folder")

    text = "Print the form and files of each fetched data set."
    _add_raw_dir(add_command(parts, "status", _status, text, "", **NO_DEFAULTS))

    text = "Fetch and parse every data set, through Snakemake."
    add_snakemake(add_command(parts, "all", partial(call_snakemake, "data"), text, "--cores 2"))


def _add_raw_dir(parser: argparse.ArgumentParser) -> None:
    text = "folder of raw files; default: raw/ in the data folder of the configuration"
    parser.add_argument("--raw-dir", type=Path, metavar="FOLDER", help=text)


def _add_source(parser: argparse.ArgumentParser) -> None:
    _add_raw_dir(parser)
    text = "what to do when the original is not available; default: that of the configuration"
    parser.add_argument("--policy", choices=("auto", "real", "surrogate"), help=text)
    text = "folder with copies of the original files; default: the variable REPLIFED_MIRROR"
    parser.add_argument("--mirror", type=Path, metavar="FOLDER", help=text)
    text = "accept other real data with policy real"
    parser.add_argument("--substitutes", action="store_true", help=text)
    text = "look again for the originals of data sets that are not original"
    parser.add_argument("--refresh", action="store_true", help=text)


def _default(arguments: argparse.Namespace) -> None:
    if "refresh" in arguments:
        arguments.ids = []
        _fetch(arguments)
        return
    if given := [name for name in ("policy", "mirror", "substitutes") if name in arguments]:
        raise ConfigError(f"--{given[0]} is of `replifed data fetch DATASET`, or beside --refresh")
    _status(arguments)


def _fetch(arguments: argparse.Namespace) -> None:
    given = vars(arguments)
    # What is not given is as configured.
    chosen = {} if {"raw_dir", "policy"} <= given.keys() else _configured("data")
    chosen = chosen | {
        key: given[key] for key in ("policy", "mirror", "substitutes", "refresh") if key in given
    }
    fetch(arguments.ids, _raw_dir(arguments), **chosen)


def fetch(ids: Sequence[str], raw_dir: Path, **chosen: Any) -> None:
    """Fetch the named data sets, or all of them, and print one line for each."""
    from replifed.data import fetch as fetching
    from replifed.data.catalogue import CATALOGUE, PACKAGED, get

    every = [one for one in CATALOGUE.values() if one.surrogate is not None]
    for dataset in [get(id_) for id_ in ids] or every:
        record = fetching.fetch(dataset, raw_dir, **chosen)
        files = [file["name"] for file in record["files"]]
        copy = ["the copy in the package"] * (record["form"] == PACKAGED)
        print(", ".join([f"{dataset.id}: {record['kind']}", *copy, *files]))
        if dataset.terms and record["kind"] != "surrogate":
            print(f"{dataset.id}: terms of use: {dataset.terms}")


def _parse(arguments: argparse.Namespace) -> None:
    raw_dir = _raw_dir(arguments)
    arguments.out = arguments.out or raw_dir.parent / "parsed" / f"{arguments.id}.npz"
    parse(arguments.id, raw_dir, arguments.out)
    hashes.record([arguments.out])


def parse(id_: str, raw_dir: Path, out: Path) -> None:
    """Parse a fetched data set, check it, and print what it holds."""
    from replifed.data import parse as parsing
    from replifed.data.catalogue import get

    meta = parsing.parse(get(id_), raw_dir, out)
    counts = ", ".join(f"{value} {name}" for name, value in meta["counts"].items() if value is not None)
    print(f"{id_}: {meta['kind']}, {counts}")


def _status(arguments: argparse.Namespace) -> None:
    from tabulate import tabulate

    from replifed.data.records import not_original, status_rows

    rows = status_rows(_raw_dir(arguments))
    print(f"{tabulate(rows, headers='keys')}\n\n{not_original(rows)}")


def _raw_dir(arguments: argparse.Namespace) -> Path:
    if "raw_dir" in arguments:
        return arguments.raw_dir
    return Path(_configured("paths").get("data", "data"), "raw")


def _configured(section: str) -> dict[str, Any]:
    """Return a section of the configuration; it is empty outside a checkout."""
    from replifed.settings.checks import load
    from replifed.settings.reading import MAIN_FILE

    return load()[section] if MAIN_FILE.is_file() else {}
