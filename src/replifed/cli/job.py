"""`replifed job`: what the rules of the workflow call."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from replifed.cli.arguments import add_command
from replifed.errors import ConfigError
from replifed.store import hashes, usage
from replifed.store.provenance import canonical_json

# Of these kinds no hashes are recorded: raw files have pins, and a share goes with the join, which checks the
# hash inside; its record would stay.
_UNRECORDED = ("fetch", "share")
# These are not compared with their records: of pictures and tables reports only show what is there.
_UNCHECKED = (*_UNRECORDED, "figure", "table")
# It compares all files by itself.
_MANIFEST = "manifest"


def add(commands: Any) -> None:
    """Add this command to the parser."""
    text = (
        "Step of the workflow: do jobs, one after the other, by their keys in its table of jobs. What they "
        "read must have been made."
    )
    job = add_command(commands, "job", _job, text, "tune:fedht/mnist/fedavg run:fedht/mnist/fedavg")
    job.add_argument("keys", nargs="+", metavar="KEY")


class Given(NamedTuple):
    """What the function of a job is given: settings, files to read, by their names, and files to write."""

    name: str
    settings: dict[str, Any]
    options: dict[str, Any]
    reads: dict[str, list[Path]]
    out: list[Path]
    paths: dict[str, str]

    def first(self, name: str) -> Path | None:
        """Return the file of that name, or the first of several; None if the job reads none."""
        return self.reads[name][0] if name in self.reads else None


def _job(arguments: argparse.Namespace) -> None:
    from replifed.workflow.jobs import SETTINGS, Table

    file = os.environ.get(SETTINGS)
    if file is None:
        raise ConfigError(f"only the workflow does jobs: {SETTINGS} is not set; ask for what they make")
    table = Table(json.loads(Path(file).read_text(encoding="utf-8")))
    for job in [table[key] for key in arguments.keys]:
        if job.kind != _MANIFEST:
            read = (key for key in job.before if table[key].kind not in _UNCHECKED)
            hashes.check(map(Path, table.files(*read)))
        out = [Path(one) for one in table.files(job.key)]
        given = Given(
            job.name,
            _sorted(job.settings),
            _sorted(job.options),
            {name: [Path(one) for one in table.files(key)] for name, key in job.reads.items()},
            out,
            table.config["paths"],
        )
        with usage.part(job.log.partition("/")[2]) if len(arguments.keys) > 1 else nullcontext():
            _DONE_BY[job.kind](given)
        if job.kind not in _UNRECORDED:
            hashes.record(out)


def _sorted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in the order in which they are hashed and stored."""
    return json.loads(canonical_json({**settings}))


def _fetch(job: Given) -> None:
    from replifed.cli.data import fetch

    fetch([job.name], Path(job.paths["data"], "raw"), **job.options)


def _parse(job: Given) -> None:
    from replifed.cli.data import parse

    parse(job.name, Path(job.paths["data"], "raw"), job.out[0])


def _own_dataset(job: Given) -> None:
    from replifed.data import own

    own.parse(job.name, job.settings, job.out[0])


def _partition(job: Given) -> None:
    from replifed.partition import build

    paper, experiment = job.name.split("/")
    build.partition(paper, experiment, job.settings, job.reads["data"][0], *job.out)


def _tune(job: Given) -> None:
    from replifed.papers import jobs

    paper, experiment, method = job.name.split("/")
    data, partition, leader = job.first("data"), job.first("partition"), job.first("leader")
    jobs.tune(paper, experiment, method, job.settings, data, partition, job.out[0], leader)


def _run(job: Given) -> None:
    from replifed.papers import jobs

    paper, experiment, method = job.name.split("/")
    data, partition, tuned = job.first("data"), job.first("partition"), job.first("tuned")
    share = None
    if "share" in job.options:
        method, number = method.rsplit(".", 1)
        share = int(number), job.options["share"]
    jobs.run(paper, experiment, method, job.settings, data, partition, tuned, job.out[0], share)


def _join(job: Given) -> None:
    from replifed.store import histories

    histories.join([file for [file] in job.reads.values()], job.out[0])


def _artefact(job: Given) -> None:
    from replifed.papers import jobs

    paper, name = job.name.split("/")
    outputs = {file.suffix[1:]: file for file in job.out}
    jobs.artefact(paper, name, job.settings, job.options["scale"], job.reads, outputs)


def _measure_claims(job: Given) -> None:
    from replifed.papers import jobs

    paper, scale, only = job.name.partition("/")[0], job.options["scale"], job.options.get("only")
    out, *more = job.out  # of all claims the environment, too
    environment = more[0] if more else None
    jobs.measure_claims(paper, job.settings, scale, job.reads, out, only=only, environment=environment)


def _errata(job: Given) -> None:
    from replifed.papers import jobs

    jobs.measure_errata(job.name, job.out[0])


def _claims(job: Given) -> None:
    from replifed.papers import jobs

    claims, statements, not_claimed = job.out
    jobs.collect_claims([file for file, *_ in job.reads.values()], claims, statements, not_claimed)


def _report(job: Given) -> None:
    from replifed.report import page

    out, curves, run = job.out
    page.build(**_shown(job), out=out, curves=curves, run=run)


def _single_report(job: Given) -> None:
    from replifed.report import page

    page.build(**_shown(job), out=job.out[0], single=True)


def _shown(job: Given) -> dict[str, Any]:
    """Return what a report shows; that of a comparison shows no claims."""
    shown = {
        "figures_dir": Path(job.paths["figures"]),
        "scale": job.options["scale"],
        "settings": job.settings,
        "errata": [files[0] for name, files in job.reads.items() if name.startswith("errata:")],
    }
    kinds = ("claims", "measure_claims")
    claims = [files[0] for name, files in job.reads.items() if name.partition(":")[0] in kinds]
    return {**shown, "claims": claims[0]} if claims else shown


def _gallery(job: Given) -> None:
    from replifed.report import gallery

    gallery.write(Path(job.paths["figures"]), job.settings, job.reads["claims:"][0], job.out[0])


def _manifest(job: Given) -> None:
    from replifed.store import manifest

    of_run = ("report_run.js", "environment.json")  # which differ from run to run
    listed = (str(file) for files in job.reads.values() for file in files if file.name not in of_run)
    out, environment = job.out
    manifest.write(listed, out, job.options["folders"], environment)


_DONE_BY: dict[str, Callable[[Given], None]] = {
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
