"""`replifed run` and `replifed tune`: one method on one experiment."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    add_command,
    add_files,
    add_job,
    add_settings,
    add_snakemake,
    by_key,
    call_snakemake,
    check_known,
    load_config,
)
from replifed.errors import ConfigError


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    _add_run(commands)
    _add_run_together(commands)
    _add_tune(commands)


def _add_run(commands: Any) -> None:
    parser = add_command(
        commands,
        "run",
        _run,
        "Run one method on one experiment, with all its repetitions. With names alone, Snakemake makes what "
        "the run needs (data, partition, tuned steps), runs it with the settings of the configuration, and "
        "prints the path of the history. With --settings and --out this is a step that the workflow calls.",
        "replifed run fedht simulation1 fediterht --cores 2 --configfile config/small.yaml",
        reads=("data", "partition", "tuned"),
        writes=("out",),
    )
    add_job(parser, method=True, needs_settings=False)
    _add_problem(parser, " (workflow)")
    parser.add_argument("--tuned", type=Path, metavar="FILE", help="the method's tuned step (workflow)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the .parquet to write (workflow)")
    add_snakemake(parser)


def _add_run_together(commands: Any) -> None:
    parser = add_command(
        commands,
        "run-together",
        _run_together,
        "Step of the workflow: tune and run one method on several experiments of a paper, one after the "
        "other.",
        "replifed run-together cross fedavg --settings "
        '\'{"tune": {"a9a": JSON}, "run": {"a9a": JSON}}\' '
        "--inputs data:a9a=a9a.npz partition:a9a=partition.npz "
        "--outputs tuned:a9a=fedavg.tuned.json run:a9a=fedavg.parquet",
        reads=("inputs",),
        writes=("outputs",),
    )
    parser.add_argument("paper")
    parser.add_argument("method")
    add_settings(parser)
    add_files(parser, "inputs")
    add_files(parser, "outputs")


def _add_tune(commands: Any) -> None:
    parser = add_command(
        commands,
        "tune",
        _tune,
        "Step of the workflow: choose a method's step size.",
        "replifed tune fedht simulation1 fedavg --settings JSON --out fedavg.tuned.json",
        reads=("data", "partition"),
        writes=("out",),
    )
    add_job(parser, method=True)
    _add_problem(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the .json to write")


def _add_problem(parser: argparse.ArgumentParser, by_hand: str = "") -> None:
    parser.add_argument("--data", type=Path, metavar="FILE", help=f"parsed data set{by_hand}")
    parser.add_argument("--partition", type=Path, metavar="FILE", help=f"partition of the data set{by_hand}")


def _run(arguments: argparse.Namespace) -> int | None:
    if (arguments.settings is None) != (arguments.out is None):
        raise ConfigError("--settings and --out are given together (by the workflow) or not at all")
    if arguments.settings is not None:
        from replifed.papers import jobs

        jobs.run(
            arguments.paper,
            arguments.experiment,
            arguments.method,
            arguments.settings,
            arguments.data,
            arguments.partition,
            arguments.tuned,
            arguments.out,
        )
        return None
    if arguments.data or arguments.partition or arguments.tuned:
        raise ConfigError(
            "--data, --partition and --tuned are only for the workflow, together with --settings"
        )
    config = load_config(arguments)
    check_known("paper", arguments.paper, config["papers"])
    experiments = config[arguments.paper]["experiments"]
    check_known("experiment", arguments.experiment, experiments)
    check_known("method of this experiment", arguments.method, experiments[arguments.experiment]["methods"])
    target = (
        f"{config['paths']['results']}/{arguments.paper}/{arguments.experiment}/{arguments.method}.parquet"
    )
    status = call_snakemake(target, arguments)
    if status == 0 and not arguments.dry_run:
        print(target)
    return status


def _run_together(arguments: argparse.Namespace) -> None:
    from replifed.papers.together import tune_and_run

    tune_and_run(
        arguments.paper,
        arguments.method,
        arguments.settings,
        by_key(arguments.inputs),
        dict(arguments.outputs),
    )


def _tune(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    jobs.tune(
        arguments.paper,
        arguments.experiment,
        arguments.method,
        arguments.settings,
        arguments.data,
        arguments.partition,
        arguments.out,
    )
