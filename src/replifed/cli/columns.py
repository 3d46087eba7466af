"""`replifed columns`: meanings of the columns of all files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command, add_configfile, add_out, load_config


def add(commands: Any) -> None:
    """Add this command to the parser."""
    columns = add_command(
        commands,
        "columns",
        _columns,
        "Name the columns of results and figures whose meaning is not written down, and exit with status 1 "
        "if there is one; or with --out, write the page with the meanings of all columns.",
        "--configfile config/small.yaml",
    )
    add_out(columns, required=False, help="the page to write, docs/columns.md")
    add_configfile(columns)


def _columns(arguments: argparse.Namespace) -> int:
    from replifed.report.columns import page, unknown
    from replifed.store.atomic import write_text

    if arguments.out is not None:
        write_text(arguments.out, page())
        return 0
    paths = load_config(arguments)["paths"]
    found = unknown(Path(paths["results"]), Path(paths["figures"]))
    print("\n".join([*found, f"{len(found)} columns have no entry in a columns.yaml"]))
    return 1 if found else 0
