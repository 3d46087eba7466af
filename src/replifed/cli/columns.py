"""`replifed columns`: meanings of the columns of all files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command, add_configfile, add_out, load_config
from replifed.errors import ConfigError


def add(commands: Any) -> None:
    """Add this command to the parser."""
    columns = add_command(
        commands,
        "columns",
        _columns,
        "Print what the columns of a file of results or figures mean. Without a file, name the columns of "
        "all such files whose meaning is not written down, and exit with status 1 if there is one; or with "
        "--out, write the page with the meanings of columns.",
        "figures/small/fedht/fig3.csv",
    )
    text = "a CSV or parquet file of results or figures"
    columns.add_argument("file", nargs="?", type=Path, metavar="FILE", help=text)
    add_out(columns, required=False, help="the page to write, docs/columns.md")
    add_configfile(columns)


def _columns(arguments: argparse.Namespace) -> int:
    from replifed.report.columns import page, unknown
    from replifed.store.atomic import write_text

    if arguments.out is not None:
        write_text(arguments.out, page())
        return 0
    paths = load_config(arguments)["paths"]
    if arguments.file is not None:
        _explain(arguments.file, paths)
        return 0
    found = unknown(Path(paths["results"]), Path(paths["figures"]))
    print("\n".join([*found, f"{len(found)} columns have no entry in a columns.yaml"]))
    return 1 if found else 0


def _explain(file: Path, paths: Mapping[str, str]) -> None:
    """Print each column of a file with its meaning."""
    from replifed.claims.files import say
    from replifed.report.columns import column, names_of

    if file.suffix not in (".csv", ".parquet") or not file.is_file():
        raise ConfigError(f"{file}: give a CSV or parquet file that is there")
    for name in names_of(file):
        meaning = column(_without_scale(file, paths), name)
        if meaning is None:
            say(f"{name}: no meaning is written down")
        else:
            unit = f" [{meaning.unit}]" * bool(meaning.unit)
            say(f"{name}: {meaning.meaning}{unit}{f', {meaning.better} is better' * bool(meaning.better)}")


def _without_scale(file: Path, paths: Mapping[str, str]) -> str:
    """Return figures/... or results/... of a file in these folders, or in one of a scale below them."""
    for kind in ("figures", "results"):
        for folder in (Path(kind, "small"), Path(kind, "tiny"), Path(paths[kind]), Path(kind)):
            if file.resolve().is_relative_to(folder.resolve()):
                return f"{kind}/{file.resolve().relative_to(folder.resolve()).as_posix()}"
    raise ConfigError(f"{file} lies neither in {paths['figures']} nor in {paths['results']}")
