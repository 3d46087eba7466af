"""The jobs of the workflow as `Plan` has them: what each is made from, and which of them a change reruns.

Snakemake takes seconds to say so. That its rules say the same is tested on dry runs of all papers, of an edit
and of a setting; all other questions are asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from replifed.settings import needs
from replifed.store import provenance
from replifed.workflow import Plan

SRC = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Job:
    """A job by its message: the files that it makes, those that it needs (sources too), and its settings."""

    message: str
    makes: frozenset[str]
    needs: frozenset[str]
    settings: str = ""


def plan_of(config: Mapping[str, Any]) -> Plan:
    """Return the plan of a checked configuration, with the source files in place of their stamps."""
    return Plan(config, lambda *modules: _stamped(modules))


@cache
def _stamped(modules: tuple[str, ...]) -> list[str]:
    """Names of the files that stand in the stamp of modules, such as ``replifed/simulate.py``."""
    with TemporaryDirectory() as folder:
        text = Path(provenance.source_stamp(modules, SRC, Path(folder))).read_text()
    return [line.partition("  ")[2] for line in text.splitlines()]


def planned(plan: Plan) -> dict[str, Job]:
    """Return the jobs behind `all` by their messages, where each makes one thing."""
    makers = {file: job for job in _jobs(plan) for file in job.makes}
    results = [plan.in_results(name) for name in ("claims.csv", "report.html", "manifest.csv")]
    waiting, found = [*plan.artefact_files(*plan.papers), *results], {}
    while waiting:
        job = makers.get(waiting.pop())
        if job and job.message not in found:
            found[job.message] = job
            waiting += job.needs
    return found


def rerun(before: Mapping[str, Job], after: Mapping[str, Job], edited: Iterable[str] = ()) -> set[str]:
    """Return the messages of the jobs that run anew once settings have changed or files have been edited."""
    changed = set(edited)
    again: set[str] = set()
    while True:
        due = {
            message
            for message, job in after.items()
            if job != before.get(message) or not changed.isdisjoint(job.needs)
        }
        if due == again:
            return again
        again = due
        changed.update(*(after[message].makes for message in due))


def _job(message: str, makes: Iterable[str], inputs: Mapping[str, Any], settings: str = "") -> Job:
    files = ([one] if isinstance(one, str) else one for one in inputs.values())
    return Job(message, frozenset(makes), frozenset(file for some in files for file in some), settings)


def _jobs(plan: Plan) -> Iterator[Job]:
    """All jobs that files could be made by."""
    for dataset in needs.used_datasets(plan.config):
        record = plan.in_data(f"raw/{dataset}.json")
        yield _job(f"{dataset}: fetch", [record], {"source": plan.source("replifed.data.fetch")})
        parsed = {"record": record, "source": plan.source("replifed.data.parse")}
        yield _job(f"{dataset}: parse and check", [plan.parsed(dataset)], parsed)
    for paper in plan.papers:
        for experiment in plan.config[paper]["experiments"]:
            yield from _of_experiment(plan, paper, experiment)
        for name, entry in needs.artefacts(plan.config[paper]).items():
            word = "draw" if entry["kind"] == "figure" else "write"
            made, inputs = plan.files_of_artefact(paper, name), plan.artefact_inputs(paper, name)
            yield _job(f"{paper}: {word} {name}", made, inputs, plan.artefact_settings(paper, name))
        made = [plan.in_results(f"{paper}/{name}") for name in ("claims.csv", "environment.json")]
        inputs = plan.claims_inputs(paper)
        yield _job(f"{paper}: measure the claims", made, inputs, plan.claims_settings(paper))
        errata = {"source": plan.paper_source("measure_errata", "errata", paper)}
        yield _job(f"{paper}: check the errata", [plan.in_results(f"{paper}/errata.csv")], errata)
    yield from _closing(plan)


def _of_experiment(plan: Plan, paper: str, name: str) -> Iterator[Job]:
    def job(message: str, key: str, inputs: Mapping[str, Any], step: str) -> Job:
        return _job(
            f"{paper}: {message}", plan.files_of(paper, key), inputs, plan.step_settings(step, paper, name)
        )

    section = plan.experiment(paper, name)
    if "partition" in section:
        message, inputs = f"split the data of {name} between the clients", plan.partition_inputs(paper, name)
        yield job(message, f"partition:{name}", inputs, "partition")
    for method in section["methods"]:
        of, key = f"{method} on {name}", f"{name}/{method}"
        if "tuning" in section:
            yield job(f"tune {of}", f"tuned:{key}", plan.tune_inputs(paper, name, method), "tune")
        inputs = plan.run_inputs(paper, name, method)
        if (shares := plan.shares(paper, name, method)) == 1:
            yield job(f"run {of}", f"run:{key}", inputs, "run")
            continue
        files = plan.share_files(paper, name, method)
        for number, file in enumerate(files, 1):
            message = f"{paper}: run {of}, share {number}/{shares}"
            yield _job(message, [file], inputs, plan.step_settings("run", paper, name))
        inputs = {"files": files, "source": plan.source("replifed.store.histories")}
        yield _job(f"{paper}: join the shares of {of}", plan.files_of(paper, f"run:{key}"), inputs)


def _closing(plan: Plan) -> Iterator[Job]:
    def of_each(name: str) -> list[str]:
        return [plan.in_results(f"{paper}/{name}.csv") for paper in plan.papers]

    collected = [plan.in_results(f"{name}.csv") for name in ("claims", "statements", "not_claimed")]
    inputs = {"claims": of_each("claims"), "source": plan.collection_source()}
    yield _job("collect the claims of all papers", collected, inputs)
    shown = [collected[0], *of_each("errata"), *plan.artefact_files(*plan.papers)]
    inputs = {"files": shown, "source": plan.report_source(*plan.papers)}
    yield _job("write the report", plan.report_outputs().values(), inputs, plan.report_settings())
    inputs = {"files": plan.manifest_files(), "source": plan.source("replifed.store.manifest")}
    yield _job("list what was made, by hash", [plan.in_results("manifest.csv")], inputs)
