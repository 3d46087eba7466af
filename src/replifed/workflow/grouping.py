"""Grouped jobs: one makes all runs of a method, or all artefacts of a paper that wait for runs.

They only save the start of processes. A grouped job is a rule of the workflow in two cases: all files that
it makes are wanted; or it has made them, and none of its settings and sources has changed since. (Snakemake
asks the rule of a file whether the file is up to date, so the job that made it must remain its rule.) In all
other cases each file has a job of its own.
"""

from __future__ import annotations

import hashlib
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from replifed.parts import COMPARE, part
from replifed.settings import needs, subsets
from replifed.store.provenance import canonical_json
from replifed.workflow.plan import MEMORY_MB, Plan, one_of

# The rules of single jobs; a job on another machine is asked for by its rule.
SINGLE_RULES = ("run_method", "run_share", "join_shares", "tune", "figure", "table")


class GroupedJob(ABC):
    """One job in place of several.

    It reads the files of `keys` and writes `outputs`, files by key. Its rule has `patterns`, which are these
    with a wildcard: Snakemake lists a rule without one as a target. It is used if all files of `wanted` are
    wanted. Its log and its benchmark are called `name`.
    """

    rule: str
    name: str
    keys: list[str]
    outputs: dict[str, str]
    patterns: list[str]
    wanted: list[str]

    def __init__(self, plan: Plan, paper: str) -> None:
        self.plan, self.paper, self.section = plan, paper, plan.config[paper]

    @abstractmethod
    def _settings(self) -> dict[str, Any]: ...

    @abstractmethod
    def _source(self) -> list[str]: ...

    def _earlier(self) -> Sequence[GroupedJob]:
        """Return the grouped jobs that may make what it reads."""
        return ()

    @cached_property
    def settings(self) -> str:
        """Settings of all that it does, as JSON."""
        return canonical_json(self._settings())

    def inputs(self) -> dict[str, list[str]]:
        """Return the files from which it is made."""
        return self.plan.inputs(self.paper, self.keys, self._source())

    def output_pairs(self) -> str:
        """Return what it writes as ``KEY=FILE ...``."""
        return " ".join(shlex.quote(f"{key}={file}") for key, file in self.outputs.items())

    def digest(self) -> str:
        """Return a hash of its settings and sources, and those of earlier jobs."""
        parts = [self.settings, *self._source(), *(job.digest() for job in self._earlier())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def note(self) -> Path:
        """File that holds the digest of the job that last made these files."""
        return Path(f".snakemake/made_together/{self.plan.in_results(self.rule)}")

    def note_command(self) -> str:
        """Return the command that writes the note."""
        folder, note = shlex.quote(str(self.note.parent)), shlex.quote(str(self.note))
        return f"mkdir -p {folder} && echo {self.digest()} > {note}"

    def is_current(self) -> bool:
        """Return whether all its files exist, made with its present settings and sources."""
        files = [*self.plan.files_of(self.paper, *self.keys), *self.outputs.values(), str(self.note)]
        return all(Path(file).is_file() for file in files) and self.note.read_text().strip() == self.digest()


class GroupedRuns(GroupedJob):
    """All searches and runs of a `method` on some `experiments`."""

    def __init__(self, plan: Plan, paper: str, method: str, experiments: list[str]) -> None:
        super().__init__(plan, paper)
        self.method, self.experiments = method, experiments
        self.name = experiments[0] + (f"_and_{len(experiments) - 1}_more" if len(experiments) > 1 else "")
        self.rule = f"run_{paper}_{self.name}_{method}"
        self.keys = [
            key
            for one in experiments
            for key in (*plan.problem_keys(paper, one), *plan.leader_keys(paper, one, method))
        ]
        self.tuned = [one for one in experiments if "tuning" in plan.experiment(paper, one)]
        self.outputs = self._outputs(method)
        self.patterns = list(self._outputs("{method}").values())
        self.wanted = [file for key, file in self.outputs.items() if key.startswith("run:")]
        stated = [plan.memory(paper, one) for one in experiments]
        self.memory = max(one or MEMORY_MB for one in stated) if any(stated) else None

    def _outputs(self, method: str) -> dict[str, str]:
        keys = [*(f"tuned:{one}" for one in self.tuned), *(f"run:{one}" for one in self.experiments)]
        return {key: self.plan.files_of(self.paper, f"{key}/{method}")[0] for key in keys}

    def _settings(self) -> dict[str, Any]:
        steps = {"tune": self.tuned, "run": self.experiments}
        return {
            step: {name: subsets.settings_for(step, self.section, name) for name in names}
            for step, names in steps.items()
        }

    def _source(self) -> list[str]:
        return self.plan.method_source("tune_and_run", self.paper, self.method)


class GroupedArtefacts(GroupedJob):
    """All artefacts of a paper that wait for runs."""

    name = "artefacts"

    def __init__(self, plan: Plan, paper: str) -> None:
        super().__init__(plan, paper)
        self.rule = f"artefacts_{paper}"
        self.keys = needs.joint_keys(self.section)
        self.outputs = plan.joint_outputs(paper)
        self.patterns = list(plan.joint_outputs(paper, "{paper}").values())
        self.wanted = list(self.outputs.values())

    def _settings(self) -> dict[str, Any]:
        return subsets.artefacts_settings(self.section)

    def _source(self) -> list[str]:
        kinds = [one["kind"] for one in needs.joint_artefacts(self.section).values()]
        modules = [part(self.paper, f"{kind}s") for kind in kinds]
        return self.plan.source("replifed.papers.jobs:artefacts", *modules)

    def _earlier(self) -> Sequence[GroupedJob]:
        return grouped_runs(self.plan, self.paper)


@cache
def grouped_runs(plan: Plan, paper: str) -> list[GroupedRuns]:
    """Return the jobs that run the methods of a paper, if all its jobs are grouped."""
    return [GroupedRuns(plan, paper, *group) for group in needs.groups(plan.config[paper]).items()]


@cache
def grouped_artefacts(plan: Plan, paper: str) -> list[GroupedArtefacts]:
    """Return the job that makes the artefacts of a paper, if these, or all its jobs, are grouped."""
    section = plan.config[paper]
    grouped = section.get("together") and needs.joint_artefacts(section)
    return [GroupedArtefacts(plan, paper)] if grouped else []


class Grouping:
    """The grouped jobs that are rules of the workflow, `runs` and `artefacts`, for these `targets`."""

    def __init__(self, plan: Plan, targets: Iterable[str]) -> None:
        wanted = {file for target in targets for file in _files_for(plan, target)}

        def used(job: GroupedJob) -> bool:
            return wanted.issuperset(job.wanted) or job.is_current()

        self._plan, self._papers = plan, plan.sections
        self.runs = [job for paper in plan.sections for job in grouped_runs(plan, paper) if used(job)]
        self.artefacts = [
            job for paper in plan.sections for job in grouped_artefacts(plan, paper) if used(job)
        ]

    def papers_of_single_runs(self) -> str:
        """Return a pattern of papers that no run of a grouped job follows: they have a rule already."""
        return self._not_before(self._grouped_runs())

    def papers_of_whole_runs(self) -> str:
        """Return a pattern of papers that a run follows which is one job, and its own."""
        return self._not_before([*self._grouped_runs(), *self._shared_runs()])

    def papers_of_shared_runs(self) -> str:
        """Return a pattern of papers that a run follows which several jobs share."""
        return f"(?=(?:{one_of(self._shared_runs())})[.])(?:{one_of(self._papers)})"

    def _grouped_runs(self) -> set[str]:
        return {f"{job.paper}/{name}/{job.method}" for job in self.runs for name in job.experiments}

    def _shared_runs(self) -> set[str]:
        return self._plan.shared_runs() - self._grouped_runs()

    def papers_of_single_artefacts(self) -> str:
        """Return a pattern of papers that no artefact of a grouped job follows."""
        return self._not_before(
            f"{job.paper}/{Path(file).stem}" for job in self.artefacts for file in job.wanted
        )

    def _not_before(self, taken: Iterable[str]) -> str:
        return f"(?!(?:{one_of(set(taken))})[.])(?:{one_of(self._papers)})"


def _files_for(plan: Plan, target: str) -> list[str]:
    """Return a target, if it is of a run or an artefact, and the files from which such an artefact is made.

    For a target that needs more than a figure or a table does, such as `all` or the claims, they are all
    files of its paper, or of all papers.
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
    if path.stem in needs.makeable(plan.config[paper]):
        made = plan.files_of_artefact(paper, path.stem)
        if target in made:
            return [*plan.files_of(paper, *needs.artefact_keys(plan.artefact(paper, path.stem))), *made]
    if path.parent.name in plan.config[paper]["experiments"]:
        return [target]
    return _all_files(plan, paper)


def _all_files(plan: Plan, paper: str) -> list[str]:
    if paper == COMPARE:
        return plan.files_of(paper, *needs.artefacts_keys(plan.config[paper]))
    jobs = [*grouped_runs(plan, paper), *grouped_artefacts(plan, paper)]
    return [file for job in jobs for file in job.wanted]
