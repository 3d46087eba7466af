"""One job in place of many, where each takes but seconds.

Such a job is for the speed of `all`, never a dependency: it is a rule of the workflow where all that it makes
is wanted, or where it has made its files already and nothing has changed since. Otherwise each file has a job
of its own. (Snakemake asks a file's own rule whether the file is up to date, so what a grouped job has made
must go on being that job's.)
"""

from __future__ import annotations

import hashlib
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from replifed.parts import part
from replifed.settings import cuts
from replifed.store.provenance import canonical_json
from replifed.workflow.plan import Plan, one_of

# The rules of jobs of their own; a job on another machine is asked for by its rule.
SINGLE_RULES = ("run_method", "tune", "figure", "table")


class GroupedJob(ABC):
    """One job in place of many: the rule `rule`, whose log and benchmark are called `name`.

    It reads the files of `keys` and writes `outputs`, files by key; `patterns` are these with a wildcard: a
    rule without would be listed as a target of its own. It is worth it if all files of `worth` are wanted.
    """

    plan: Plan
    paper: str
    rule: str
    name: str
    keys: list[str]
    outputs: dict[str, str]
    patterns: list[str]
    worth: list[str]
    before: Iterable[GroupedJob] = ()  # jobs that may make what it reads

    @cached_property
    @abstractmethod
    def settings(self) -> str:
        """Settings of all that it does, as JSON."""

    @abstractmethod
    def source(self) -> list[str]:
        """Return its sources."""

    def inputs(self) -> dict[str, Any]:
        """Return what it is made from."""
        return {"files": self.plan.files_of(self.paper, *self.keys), "source": self.source()}

    def inputs_flag(self) -> str:
        """Return the flag of what it reads."""
        return self.plan.inputs_flag(self.paper, self.keys)

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
        files = [*self.plan.files_of(self.paper, *self.keys), *self.outputs.values()]
        if not all(path.is_file() for path in (self.note, *map(Path, files))):
            return False
        return self.note.read_text().strip() == self.digest()


class GroupedRun(GroupedJob):
    """Searches and runs one method on several experiments, one after the other; a paper's have a `number`."""

    def __init__(self, plan: Plan, paper: str, number: int, method: str, experiments: list[str]) -> None:
        self.plan, self.paper = plan, paper
        self.number, self.method, self.experiments = number, method, experiments
        # Of the first experiment, and how many more there are.
        more = f"_and_{len(experiments) - 1}_more" if len(experiments) > 1 else ""
        self.name = f"{experiments[0]}{more}"
        self.rule = f"run_{paper}_{self.name}_{method}"
        self.tuned = [name for name in experiments if "tuning" in plan.experiment(paper, name)]
        self.keys = [
            key
            for name in experiments
            for key in (*plan.problem_keys(paper, name), *plan.leader_keys(paper, name, method))
        ]
        self.outputs = self._outputs(method)
        self.patterns = list(self._outputs("{method}").values())
        self.worth = [file for key, file in self.outputs.items() if key.startswith("run:")]
        self.memory = max(plan.memory(paper, name) for name in experiments)

    def _outputs(self, method: str) -> dict[str, str]:
        made = [("tuned", name) for name in self.tuned] + [("run", name) for name in self.experiments]
        files = self.plan.files_of(self.paper, *(f"{kind}:{name}/{method}" for kind, name in made))
        return {f"{kind}:{name}": file for (kind, name), file in zip(made, files, strict=True)}

    @cached_property
    def settings(self) -> str:
        section = self.plan.config[self.paper]
        steps = {"tune": self.tuned, "run": self.experiments}
        return canonical_json(
            {
                step: {name: cuts.settings_for(step, section, name) for name in names}
                for step, names in steps.items()
            }
        )

    def source(self) -> list[str]:
        return self.plan.method_source("tune_and_run", self.paper, self.method)


class GroupedArtefacts(GroupedJob):
    """Makes all artefacts of a paper, one after the other."""

    def __init__(self, plan: Plan, paper: str) -> None:
        self.plan, self.paper = plan, paper
        self.name, self.rule = "artefacts", f"artefacts_{paper}"
        self.keys = cuts.artefacts_keys(plan.config[paper])
        self.outputs = plan.artefact_outputs(paper)
        self.patterns = list(plan.artefact_outputs(paper, "{paper}").values())
        self.worth = list(self.outputs.values())
        self.before = grouped_runs(plan, paper)

    @cached_property
    def settings(self) -> str:
        return canonical_json(cuts.artefacts_settings(self.plan.config[self.paper]))

    def source(self) -> list[str]:
        entries = cuts.artefacts(self.plan.config[self.paper]).values()
        modules = [part(self.paper, f"{entry['kind']}s") for entry in entries]
        return self.plan.source("replifed.papers.jobs:artefacts", *modules)


@cache
def grouped_runs(plan: Plan, paper: str) -> list[GroupedRun]:
    """Return the jobs that run the methods of a paper, if each is to run in one job."""
    groups = enumerate(cuts.groups(plan.config[paper]).items())
    return [GroupedRun(plan, paper, number, *group) for number, group in groups]


@cache
def grouped_artefacts(plan: Plan, paper: str) -> list[GroupedArtefacts]:
    """Return the job that makes all artefacts of a paper, if there is to be one."""
    return [GroupedArtefacts(plan, paper)] if plan.config[paper].get("together") else []


class Grouping:
    """The grouped jobs that are rules of the workflow, `runs` and `artefacts`, if `targets` are asked for."""

    def __init__(self, plan: Plan, targets: Iterable[str]) -> None:
        wanted = {file for target in targets for file in _files_for(plan, target)}

        def is_used(job: GroupedJob) -> bool:
            return wanted.issuperset(job.worth) or job.stands()

        papers = self._papers = plan.papers
        self.runs = [job for paper in papers for job in grouped_runs(plan, paper) if is_used(job)]
        self.artefacts = [job for paper in papers for job in grouped_artefacts(plan, paper) if is_used(job)]

    def papers_of_single_runs(self) -> str:
        """Return a pattern of papers that no run of a grouped job follows: they have a rule already."""
        taken = [f"{job.paper}/{name}/{job.method}" for job in self.runs for name in job.experiments]
        return f"(?!(?:{one_of(taken)})[.])(?:{one_of(self._papers)})"

    def papers_of_single_artefacts(self) -> str:
        """Return a pattern of papers of which each artefact has a job of its own."""
        return one_of(set(self._papers) - {job.paper for job in self.artefacts})


def _files_for(plan: Plan, target: str) -> list[str]:
    """Return a target, if it is of a run or an artefact, and the files that such an artefact is drawn from.

    Of a target that needs more than a figure or a table does, such as `all` or the claims, they are all files
    of its paper, or of all papers.
    """
    if target in SINGLE_RULES or target.startswith(plan.in_data("")):
        return []
    for paper in plan.papers:
        folders = plan.in_results(f"{paper}/"), plan.in_figures(f"{paper}/")
        if target == paper or target.startswith(folders):
            return _files_in(plan, paper, target)
    return [file for paper in plan.papers for file in _all_files(plan, paper)]


def _files_in(plan: Plan, paper: str, target: str) -> list[str]:
    path, outputs = Path(target), plan.artefact_outputs(paper).values()
    if target in outputs:
        drawn_from = plan.files_of(paper, *cuts.artefact_keys(plan.artefact(paper, path.stem)))
        return [*drawn_from, *(file for file in outputs if Path(file).stem == path.stem)]
    if path.parent.name in plan.config[paper]["experiments"]:
        return [target]
    return _all_files(plan, paper)


def _all_files(plan: Plan, paper: str) -> list[str]:
    jobs = [*grouped_runs(plan, paper), *grouped_artefacts(plan, paper)]
    return [file for job in jobs for file in job.worth]
