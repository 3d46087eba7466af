"""`replifed job`: what the rules of the workflow call."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command
from replifed.errors import ReplifedError
from replifed.store import environment, hashes
from replifed.workflow import entries
from replifed.workflow.entries import Entry


def add(commands: Any) -> None:
    """Add this command to the parser."""
    text = (
        "Step of the workflow: do jobs, one after the other, by their keys in its table of jobs. What they "
        "read must have been made."
    )
    job = add_command(commands, "job", _job, text, "tune:fedht/mnist/fedavg run:fedht/mnist/fedavg")
    job.add_argument("keys", nargs="+", metavar="KEY")


def _job(arguments: argparse.Namespace) -> None:
    try:
        for job in entries.read(arguments.keys):
            hashes.check(job.checked)
            several = len(arguments.keys) > 1
            with environment.counted_part(job.log.partition("/")[2]) if several else nullcontext():
                _DONE_BY[job.kind](job)
            if job.is_recorded:
                hashes.record(job.out)
    finally:
        with suppress(ReplifedError, OSError):  # nothing is made of it
            environment.record_usage()


def _fetch(job: Entry) -> None:
    from replifed.cli.data import fetch

    fetch([job.name], job.out[0].parent, **job.options)


def _parse(job: Entry) -> None:
    from replifed.cli.data import parse

    parse(job.name, job.reads["record"][0].parent, job.out[0])


def _own_dataset(job: Entry) -> None:
    from replifed.data import own

    own.parse(job.name, job.settings, job.out[0], job.first("data"))


def _partition(job: Entry) -> None:
    from replifed.partition import build

    paper, experiment = job.name.split("/")
    build.partition(paper, experiment, job.settings, job.reads["data"][0], *job.out)


def _tune(job: Entry) -> None:
    from replifed.papers import jobs

    paper, experiment, method = job.name.split("/")
    data, partition, leader = job.first("data"), job.first("partition"), job.first("leader")
    out, test = job.out[0], job.first("test")
    jobs.tune(paper, experiment, method, job.settings, data, partition, out, leader, test=test)


def _run(job: Entry) -> None:
    from replifed.papers import jobs

    paper, experiment, method = job.name.split("/")
    data, partition, tuned = job.first("data"), job.first("partition"), job.first("tuned")
    share = None
    if "share" in job.options:
        method, number = method.rsplit(".", 1)
        share = int(number), job.options["share"]
    out, test = job.out[0], job.first("test")
    jobs.run(paper, experiment, method, job.settings, data, partition, tuned, out, share, test=test)


def _join(job: Entry) -> None:
    from replifed.store import histories

    histories.join([file for [file] in job.reads.values()], job.out[0])


def _artefact(job: Entry) -> None:
    from replifed.papers import jobs

    paper, name = job.name.split("/")
    outputs = {file.suffix[1:]: file for file in job.out}
    jobs.artefact(paper, name, job.settings, job.options["scale"], job.reads, outputs)


def _measure_claims(job: Entry) -> None:
    from replifed.papers import jobs

    paper, scale, only = job.name.partition("/")[0], job.options["scale"], job.options.get("only")
    out, *more = job.out  # of all claims the environment, too
    environment = more[0] if more else None
    jobs.measure_claims(paper, job.settings, scale, job.reads, out, only=only, environment=environment)


def _errata(job: Entry) -> None:
    from replifed.papers import jobs

    jobs.measure_errata(job.name, job.out[0])


def _claims(job: Entry) -> None:
    from replifed.papers import jobs

    claims, statements, not_claimed = job.out
    jobs.collect_claims([file for file, *_ in job.reads.values()], claims, statements, not_claimed)


def _report(job: Entry) -> None:
    from replifed.report import page

    out, curves, run = job.out
    page.build(**_shown(job), out=out, curves=curves, run=run)


def _single_report(job: Entry) -> None:
    from replifed.report import page

    page.build(**_shown(job), out=job.out[0], single=True)


def _shown(job: Entry) -> dict[str, Any]:
    """Return what a report shows; that of a comparison shows no claims."""
    shown = {
        "figures_dir": Path(job.options["figures"]),
        "scale": job.options["scale"],
        "settings": job.settings,
        "errata": [files[0] for name, files in job.reads.items() if name.startswith("errata:")],
    }
    kinds = ("claims", "measure_claims")
    claims = [files[0] for name, files in job.reads.items() if name.partition(":")[0] in kinds]
    return {**shown, "claims": claims[0]} if claims else shown


def _gallery(job: Entry) -> None:
    from replifed.report import gallery

    gallery.write(Path(job.options["figures"]), job.settings, job.reads["claims:"][0], job.out[0])


def _manifest(job: Entry) -> None:
    from replifed.store import manifest

    of_run = ("report_run.js", "environment.json")  # which differ from run to run
    listed = (str(file) for files in job.reads.values() for file in files if file.name not in of_run)
    out, environment = job.out
    manifest.write(listed, out, job.options["folders"], environment)


_DONE_BY: dict[str, Callable[[Entry], None]] = {
    "fetch": _fetch,
    "parse": _parse,
    "own_dataset": _own_dataset,
    "partition": _partition,
    "tune": _tune,
    "run": _run,
    "share": _run,
    "join": _join,
    "figure": _artefact,
    "table": _artefact,
    "measure_claims": _measure_claims,
    "measure_claim": _measure_claims,
    "errata": _errata,
    "claims": _claims,
    "report": _report,
    "paper_report": _single_report,
    "single_report": _single_report,
    "comparison_report": _single_report,
    "gallery": _gallery,
    "manifest": _manifest,
}
