"""`replifed judge`: verdicts on logs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command
from replifed.errors import ReplifedError


def add(commands: Any) -> None:
    """Add this command to the parser."""
    text = (
        "Judge the claims of a paper on logs of runs that were made elsewhere, without Snakemake. Writes "
        "claims.csv, statements.csv, figures and the page report.html into FOLDER/results. `replifed new "
        "paper NAME --from-logs` writes such a FOLDER; its Python files are run."
    )
    judge = add_command(commands, "judge", _judge, text, "my_paper")
    judge.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the paper")


def _judge(arguments: argparse.Namespace) -> None:
    from replifed.cli.judged import judge

    results = arguments.folder / "results"
    earlier = results.joinpath("claims.csv").is_file()
    try:
        print("\n".join(judge(arguments.folder)))
    except ReplifedError as error:
        if earlier:
            raise ReplifedError(f"{error}; the verdicts in {results} are of an earlier run") from error
        raise
