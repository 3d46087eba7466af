"""`replifed run`, `run-together` and `tune`: methods on experiments."""

from __future__ import annotations

import argparse
from typing import Any

from replifed.cli.arguments import (
    add_command,
    add_file,
    add_files,
    add_job,
    add_out,
    add_settings,
    add_snakemake,
    call,
    call_snakemake,
    check_known,
    load_config,
)
from replifed.errors import ConfigError


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    run = add_command(
        commands,
        "run",
        _run,
        "Run one method on one experiment, with all its repetitions. With names alone, Snakemake makes what "
        "the run needs (data, partition, tuned steps), runs it with the settings of the configuration, and "
        "prints the path of the history. With --settings and --out this is a step that the workflow calls.",
        "replifed run fedht simulation1 fediterht --cores 2 --configfile config/small.yaml",
        reads=("data", "partition", "tuned", "seeds"),
        writes=("out",),
    )
    for name in ("paper", "experiment", "method"):
        run.add_argument(name)
    add_settings(run, required=False, help="settings of this step (workflow)")
    add_file(run, "--data", help="parsed data set (workflow)")
    add_file(run, "--partition", help="partition of the data set (workflow)")
    add_file(run, "--tuned", help="the method's tuned step (workflow)")
    add_file(run, "--seeds", help="how many of the repetitions are run (workflow)")
    add_out(run, required=False, help="the .parquet to write (workflow)")
    add_snakemake(run)

    together = add_command(
        commands,
        "run-together",
        "replifed.papers.jobs:tune_and_run",
        "Step of the workflow: tune and run one method on several experiments of a paper, one after the "
        "other.",
        "replifed run-together cross fedavg --settings "
        '\'{"tune": {"a9a": JSON}, "run": {"a9a": JSON}}\' '
        "--inputs data:a9a=a9a.npz partition:a9a=partition.npz "
        "--outputs tuned:a9a=fedavg.tuned.json run:a9a=fedavg.parquet",
        reads=("inputs",),
        writes=("outputs",),
    )
    add_job(together, "paper", "method")
    add_files(together, "--inputs")
    add_files(together, "--outputs")

    tune = add_command(
        commands,
        "tune",
        "replifed.papers.jobs:tune",
        "Step of the workflow: choose a method's step size.",
        "replifed tune fedht simulation1 fedavg --settings JSON --out fedavg.tuned.json",
        reads=("data", "partition", "leader"),
        writes=("out",),
    )
    add_job(tune, "paper", "experiment", "method")
    add_file(tune, "--data", help="parsed data set")
    add_file(tune, "--partition", help="partition of the data set")
    add_file(tune, "--leader", help="tuned step of the method that the settings call the leader")
    add_out(tune, help="the .json to write")


def _run(arguments: argparse.Namespace) -> int:
    if (arguments.settings is None) != (arguments.out is None):
        raise ConfigError("--settings and --out are given together (by the workflow) or not at all")
    if arguments.settings is not None:
        return call("replifed.papers.jobs:run", arguments)
    if arguments.data or arguments.partition or arguments.tuned or arguments.seeds:
        raise ConfigError(
            "--data, --partition, --tuned and --seeds are only for the workflow, together with --settings"
        )
    paper, experiment, method = arguments.paper, arguments.experiment, arguments.method
    config = load_config(arguments)
    check_known("paper", paper, config["papers"])
    experiments = config[paper]["experiments"]
    check_known("experiment", experiment, experiments)
    check_known("method of this experiment", method, experiments[experiment]["methods"])
    target = f"{config['paths']['results']}/{paper}/{experiment}/{method}.parquet"
    status = call_snakemake(target, arguments)
    if status == 0 and not arguments.dry_run:
        print(target)
    return status
