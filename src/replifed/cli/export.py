"""`replifed export`: methods for other runtimes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command


def add(commands: Any) -> None:
    """Add this command to the parser."""
    export = commands.add_parser("export", description="Write a method for another runtime.")
    runtimes = export.add_subparsers(title="runtime", metavar="RUNTIME", required=True)
    text = "Write an app for `flwr run` from a method, built in or your own, that has a client and a server."
    flower = add_command(runtimes, "flower", _flower, text, "fedlin --to app")
    flower.add_argument("method", metavar="METHOD", help="name of a method, or FILE:CLASS")
    flower.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="a new folder")


def _flower(arguments: argparse.Namespace) -> None:
    from replifed.wire.export import export

    for file in export(arguments.method, arguments.to):
        print(file)
    print("replifed must be installed on each node, and where the server runs: see README.md")
