"""One job in place of many, where each takes but seconds.

Such a job is for the speed of `all`, never a dependency: it is a rule of the workflow where all that it makes
is wanted, or where it has made its files already and nothing has changed since. Otherwise each file has a job
of its own. (Snakemake asks a file's own rule whether the file is up to date, so what a grouped job has made
must go on being that job's.)
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from replifed.parts import COMPARE, part
from replifed.settings import cuts
from replifed.store.provenance import canonical_json
from replifed.workflow.plan import Plan, one_of

# The rules of jobs of their own; a job on another machine is asked for by its rule.
SINGLE_RULES = ("run_method", "tune", "figure", "table")


@dataclass
class GroupedJob:
    """One job in place of many: the rule `rule`, whose log and benchmark are called `name`.

    It reads the files of `keys` and writes `outputs`, files by key; `patterns` are these with a wildcard: a
    rule without would be listed as a target of its own. It is worth it if all files of `worth` are wanted.
    The jobs `before` may make what it reads. Those that search and run have a `method` and `experiments`, and
    a `number`, which counts those of a paper.
    """

    plan: Plan
    paper: str
    rule: str
    name: str
    keys: list[str]
    outputs: dict[str, str]
    patterns: list[str]
    worth: list[str]
    cut: Callable[[], Any]  # what gives its settings
    source: Callable[[], list[str]]
    before: Sequence[GroupedJob] = ()
    method: str = ""
    experiments: Sequence[str] = ()
    number: int = 0
    memory: int = 0

    @cached_property
    def settings(self) -> str:
        """Settings of all that it does, as JSON."""
        return canonical_json(self.cut())

    def inputs(self) -> dict[str, list[str]]:
        """Return what it is made from."""
        return self.plan.inputs(self.paper, self.keys, self.source())

    def output_pairs(self) -> str:
        """Return what it writes as ``KEY=FILE ...``."""
        return " ".join(shlex.quote(f"{key}={file}") for key, file in self.outputs.items())

    def digest(self) -> str:
        """Return a hash of its settings and sources, and those of the jobs before it."""
        parts = [self.settings, *self.source(), *(job.digest() for job in self.before)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def note(self) -> Path:
        """The file in which it notes the digest when it is done."""
        return Path(".snakemake/made_together", self.plan.config["scale"], self.rule)

    def note_command(self) -> str:
        """Return the command that does so."""
        return f"mkdir -p {self.note.parent} && echo {self.digest()} > {self.note}"

    def stands(self) -> bool:
        """Whether all files are there, and it has last made its own from what it would make them from now."""
        files = [*self.plan.files_of(self.paper, *self.keys), *self.outputs.values(), str(self.note)]
        return all(Path(file).is_file() for file in files) and self.note.read_text().strip() == self.digest()


def _grouped_run(plan: Plan, paper: str, number: int, method: str, experiments: list[str]) -> GroupedJob:
    """Return the job that searches and runs one method on several experiments, one after the other."""
    tuned = [name for name in experiments if "tuning" in plan.experiment(paper, name)]
    steps = {"tune": tuned, "run": experiments}
    made = [("tuned", name) for name in tuned] + [("run", name) for name in experiments]

    def outputs(method: str) -> dict[str, str]:
        files = plan.files_of(paper, *(f"{kind}:{name}/{method}" for kind, name in made))
        return {f"{kind}:{name}": file for (kind, name), file in zip(made, files, strict=True)}

    def settings() -> dict[str, Any]:
        cut, section = cuts.settings_for, plan.config[paper]
        return {step: {name: cut(step, section, name) for name in names} for step, names in steps.items()}

    name = experiments[0] + (f"_and_{len(experiments) - 1}_more" if len(experiments) > 1 else "")
    return GroupedJob(
        plan,
        paper,
        rule=f"run_{paper}_{name}_{method}",
        name=name,
        keys=[
            key
            for one in experiments
            for key in (*plan.problem_keys(paper, one), *plan.leader_keys(paper, one, method))
        ],
        outputs=outputs(method),
        patterns=list(outputs("{method}").values()),
        worth=plan.files_of(paper, *(f"run:{one}/{method}" for one in experiments)),
        cut=settings,
        source=lambda: plan.method_source("tune_and_run", paper, method),
        method=method,
        experiments=experiments,
        number=number,
        memory=max(plan.memory(paper, one) for one in experiments),
    )


@cache
def grouped_runs(plan: Plan, paper: str) -> list[GroupedJob]:
    """Return the jobs that run the methods of a paper, if each is to run in one job."""
    groups = enumerate(cuts.groups(plan.config[paper]).items())
    return [_grouped_run(plan, paper, number, *group) for number, group in groups]


@cache
def grouped_artefacts(plan: Plan, paper: str) -> list[GroupedJob]:
    """Return the job that makes all artefacts of a paper, one after the other, if there is to be one."""
    section = plan.config[paper]
    if not section.get("together"):
        return []
    modules = [part(paper, f"{entry['kind']}s") for entry in cuts.artefacts(section).values()]
    job = GroupedJob(
        plan,
        paper,
        rule=f"artefacts_{paper}",
        name="artefacts",
        keys=cuts.artefacts_keys(section),
        outputs=plan.artefact_outputs(paper),
        patterns=list(plan.artefact_outputs(paper, "{paper}").values()),
        worth=plan.artefact_files(paper),
        cut=lambda: cuts.artefacts_settings(section),
        source=lambda: plan.source("replifed.papers.jobs:artefacts", *modules),
        before=grouped_runs(plan, paper),
    )
    return [job]


class Grouping:
    """The grouped jobs that are rules of the workflow, `runs` and `artefacts`, if `targets` are asked for."""

    def __init__(self, plan: Plan, targets: Iterable[str]) -> None:
        wanted = {file for target in targets for file in _files_for(plan, target)}

        def used(jobs: Callable[[Plan, str], list[GroupedJob]]) -> list[GroupedJob]:
            every = [job for paper in plan.sections for job in jobs(plan, paper)]
            return [job for job in every if wanted.issuperset(job.worth) or job.stands()]

        self._papers, self.runs, self.artefacts = plan.sections, used(grouped_runs), used(grouped_artefacts)

    def papers_of_single_runs(self) -> str:
        """Return a pattern of papers that no run of a grouped job follows: they have a rule already."""
        return self._not_before(
            f"{job.paper}/{name}/{job.method}" for job in self.runs for name in job.experiments
        )

    def papers_of_single_artefacts(self) -> str:
        """Return a pattern of papers that no artefact of a grouped job follows."""
        return self._not_before(
            f"{job.paper}/{Path(file).stem}" for job in self.artefacts for file in job.worth
        )

    def _not_before(self, taken: Iterable[str]) -> str:
        return f"(?!(?:{one_of(set(taken))})[.])(?:{one_of(self._papers)})"


def _files_for(plan: Plan, target: str) -> list[str]:
    """Return a target, if it is of a run or an artefact, and the files that such an artefact is drawn from.

    Of a target that needs more than a figure or a table does, such as `all` or the claims, they are all files
    of its paper, or of all papers.
    """
    if target in SINGLE_RULES or target.startswith(plan.in_data("")):
        return []
    for paper in plan.sections:
        folders = plan.in_results(f"{paper}/"), plan.in_figures(f"{paper}/")
        if target == paper or target.startswith(folders):
            return _files_in(plan, paper, target)
    return [file for paper in plan.papers for file in _all_files(plan, paper)]


def _files_in(plan: Plan, paper: str, target: str) -> list[str]:
    path = Path(target)
    if path.stem in cuts.makeable(plan.config[paper]):
        made = plan.files_of_artefact(paper, path.stem)
        if target in made:
            return [*plan.files_of(paper, *cuts.artefact_keys(plan.artefact(paper, path.stem))), *made]
    if path.parent.name in plan.config[paper]["experiments"]:
        return [target]
    return _all_files(plan, paper)


def _all_files(plan: Plan, paper: str) -> list[str]:
    if paper == COMPARE:
        return plan.files_of(paper, *cuts.artefacts_keys(plan.config[paper]))
    jobs = [*grouped_runs(plan, paper), *grouped_artefacts(plan, paper)]
    return [file for job in jobs for file in job.worth]
