"""One job in place of many, where each takes but seconds.

Such a job is for the speed of `all`, never a dependency: it is a rule of the workflow where all that it makes
is wanted, or where it has made its files already and nothing has changed since. Otherwise each file has a job
of its own. (Snakemake asks a file's own rule whether the file is up to date, so what a grouped job has made
must go on being that job's.)
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from replifed import settings
from replifed.papers import part
from replifed.provenance import canonical_json
from replifed.workflow.files import one_of, pairs
from replifed.workflow.plan import Plan

# The rules of jobs of their own; a job on another machine is asked for by its rule.
SINGLE_RULES = ("run_method", "tune", "figure", "table")


class GroupedJob(ABC):
    """One job in place of many.

    Attributes
    ----------
    plan : Plan
    paper : str
    rule : str
        The rule's name.
    name : str
        Of its log and its benchmark.
    keys : list of str
        Of the files that it reads.
    outputs : dict of str to str
        Files by key.
    patterns : list of str
        The same files with a wildcard: a rule without would be listed as a target of its own.
    worth : list of str
        The files that must all be wanted for the job to be worth it.
    settings : str
        Of all that it does, as JSON.
    """

    plan: Plan
    paper: str
    rule: str
    name: str
    keys: list[str]
    outputs: dict[str, str]
    patterns: list[str]
    worth: list[str]

    @cached_property
    @abstractmethod
    def settings(self) -> str: ...

    @abstractmethod
    def source(self) -> list[str]:
        """Return its sources."""

    def before(self) -> list[GroupedJob]:
        """Return the jobs that may make what it reads."""
        return []

    def inputs(self) -> dict[str, Any]:
        """Return what it is made from."""
        return {"files": self.plan.files_of(self.paper, *self.keys), "source": self.source()}

    def inputs_flag(self) -> str:
        """Return the flag of what it reads."""
        return self.plan.inputs_flag(self.paper, self.keys)

    def output_pairs(self) -> str:
        """Return what it writes as ``KEY=FILE ...``."""
        return pairs(self.outputs)

    def digest(self) -> str:
        """Return a hash of its settings and sources, and those of the jobs before it."""
        parts = [self.settings, *self.source(), *(job.digest() for job in self.before())]
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
    """Searches and runs one method on several experiments, one after the other.

    Parameters
    ----------
    plan : Plan
    paper : str
    number : int
        Its place among those of the paper.
    method : str
    experiments : tuple of str
    """

    def __init__(
        self, plan: Plan, paper: str, number: int, method: str, experiments: tuple[str, ...]
    ) -> None:
        self.plan, self.paper = plan, paper
        self.number, self.method, self.experiments = number, method, experiments
        # Of the first experiment, and how many more there are.
        more = f"_and_{len(experiments) - 1}_more" if len(experiments) > 1 else ""
        self.name = f"{experiments[0]}{more}"
        self.rule = f"run_{paper}_{self.name}_{method}"
        self.tuned = [name for name in experiments if "tuning" in plan.experiment(paper, name)]
        self.keys = [key for name in experiments for key in plan.problem_keys(paper, name)]
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
                step: {name: settings.settings_for(step, section, name) for name in names}
                for step, names in steps.items()
            }
        )

    def source(self) -> list[str]:
        """Return its sources."""
        return self.plan.method_source("together", self.paper, self.method)


class GroupedArtefacts(GroupedJob):
    """Makes all artefacts of a paper, one after the other.

    Parameters
    ----------
    plan : Plan
    paper : str
    """

    def __init__(self, plan: Plan, paper: str) -> None:
        self.plan, self.paper = plan, paper
        self.name, self.rule = "artefacts", f"artefacts_{paper}"
        self.keys = settings.artefacts_keys(plan.config[paper])
        self.outputs = plan.artefact_outputs(paper)
        self.patterns = list(plan.artefact_outputs(paper, "{paper}").values())
        self.worth = list(self.outputs.values())

    @cached_property
    def settings(self) -> str:
        return canonical_json(settings.artefacts_settings(self.plan.config[self.paper]))

    def source(self) -> list[str]:
        """Return its sources."""
        entries = settings.artefacts(self.plan.config[self.paper]).values()
        modules = [part(self.paper, f"{entry['kind']}s") for entry in entries]
        return self.plan.source("replifed.papers.jobs:artefacts", *modules)

    def before(self) -> list[GroupedJob]:
        """Return the jobs that may make what it reads."""
        return [*grouped_runs(self.plan, self.paper)]


@cache
def grouped_runs(plan: Plan, paper: str) -> list[GroupedRun]:
    """Return the jobs that run the methods of a paper, if each is to run in one job."""
    groups = enumerate(settings.groups(plan.config[paper]))
    return [GroupedRun(plan, paper, number, *group) for number, group in groups]


@cache
def grouped_artefacts(plan: Plan, paper: str) -> list[GroupedArtefacts]:
    """Return the job that makes all artefacts of a paper, if there is to be one."""
    return [GroupedArtefacts(plan, paper)] if settings.drawn_together(plan.config[paper]) else []


class Grouping:
    """The grouped jobs that are rules of the workflow: `runs` and `artefacts`.

    Parameters
    ----------
    plan : Plan
    targets : iterable of str
        What is asked for: files, rules, or both.
    """

    def __init__(self, plan: Plan, targets: Iterable[str]) -> None:
        wanted = files_for(plan, targets)

        def is_used(job: GroupedJob) -> bool:
            return wanted.issuperset(job.worth) or job.stands()

        self._papers = plan.papers
        self.runs = [job for paper in plan.papers for job in grouped_runs(plan, paper) if is_used(job)]
        self.artefacts = [
            job for paper in plan.papers for job in grouped_artefacts(plan, paper) if is_used(job)
        ]

    def papers_of_single_runs(self) -> str:
        """Return a pattern of papers that no run of a grouped job follows: they have a rule already."""
        taken = [f"{job.paper}/{name}/{job.method}" for job in self.runs for name in job.experiments]
        return f"(?!(?:{one_of(taken)})[.])(?:{one_of(self._papers)})"

    def papers_of_single_artefacts(self) -> str:
        """Return a pattern of papers of which each artefact has a job of its own."""
        return one_of(set(self._papers) - {job.paper for job in self.artefacts})


def files_for(plan: Plan, targets: Iterable[str]) -> set[str]:
    """Return the runs' and artefacts' files among targets, and those that such artefacts are drawn from.

    Of a target that needs more than a figure or a table does, such as `all` or the claims, they are all files
    of its paper, or of all papers.
    """
    return {file for target in targets for file in _files_for(plan, target)}


def _files_for(plan: Plan, target: str) -> list[str]:
    if target in SINGLE_RULES or target.startswith(plan.in_data("")):
        return []
    for paper in plan.papers:
        if target == paper:
            return _all_files(plan, paper)
        if target.startswith((plan.in_results(f"{paper}/"), plan.in_figures(f"{paper}/"))):
            return _files_in(plan, paper, target)
    return [file for paper in plan.papers for file in _all_files(plan, paper)]


def _files_in(plan: Plan, paper: str, target: str) -> list[str]:
    outputs = plan.artefact_outputs(paper).values()
    if target in outputs:
        name = Path(target).stem
        drawn_from = plan.files_of(paper, *settings.artefact_keys(plan.artefact(paper, name)))
        return [*drawn_from, *(file for file in outputs if Path(file).stem == name)]
    if Path(target).parent.name in plan.config[paper]["experiments"]:
        return [target]
    return _all_files(plan, paper)


def _all_files(plan: Plan, paper: str) -> list[str]:
    jobs = [*grouped_runs(plan, paper), *grouped_artefacts(plan, paper)]
    return [file for job in jobs for file in job.worth]
