"""`replifed schema`: what editors need to complete and check the settings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command


def add(commands: Any) -> None:
    """Add this command to the parser."""
    parser = add_command(
        commands,
        "schema",
        _schema,
        "Write the JSON schema from which editors complete and check the files in config/.",
        "replifed schema",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the file to write; default config/config.schema.json"
    )


def _schema(arguments: argparse.Namespace) -> None:
    from replifed.settings import SCHEMA_FILE, write_schema

    write_schema(arguments.out or SCHEMA_FILE)
