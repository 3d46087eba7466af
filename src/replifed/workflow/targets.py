"""What a call makes: the names that users ask for, the jobs of one process, and which jobs start first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from replifed.data.catalogue import CATALOGUE
from replifed.errors import ConfigError
from replifed.parts import COMPARE
from replifed.workflow.command import executor
from replifed.workflow.jobs import KINDS, SUFFIXES, Job, Table, files, shown

# Rules of no job: what they do leaves no file.
WITHOUT_FILES = ("help", "verify")


def targets(table: Table) -> dict[str, list[str]]:
    """Return the keys of what a name stands for: `all`, a paper, and whatever else has no wildcard.

    Raises
    ------
    ConfigError
        A paper is called like a target.
    """
    config, papers = table.config, table.papers
    on_demand = {
        f"{paper}_{name}": [f"{one['kind']}:{paper}/{name}"]
        for paper in papers
        for name, one in config[paper]["artefacts"].items()
        if "on_demand" in one
    }
    if taken := sorted(set(on_demand).intersection(papers)):
        raise ConfigError(f"the paper {taken[0]} is called like a target; give it another name")
    compared = [*shown(config, COMPARE), "comparison_report:"] if COMPARE in config else []
    return {
        # Runs and searches, too: Snakemake does not miss what lies before files that are there.
        "all": [*table["manifest:"].reads, "manifest:"],
        **{paper: [*table[f"paper_report:{paper}"].upstream, f"paper_report:{paper}"] for paper in papers},
        **on_demand,
        "compare": compared,
        "data": [f"parse:{one.id}" for one in CATALOGUE.values() if one.surrogate is not None],
        **{job.kind: [job.key] for job in table.values() if not job.name},
        **{name: [] for name in WITHOUT_FILES},
    }


@dataclass(frozen=True)
class Group:
    """Jobs of a paper that one process does in turn: searches and runs of a method, or figures and tables.

    They only save the start of processes, where each takes but seconds: the section of their paper says
    ``together``.
    """

    table: Table
    keys: tuple[str, ...]
    # Whether these are all that `all` does together.
    whole: bool

    @property
    def _first(self) -> Job:
        return self.table[self.keys[0]]

    @property
    def paper(self) -> str:
        """The paper."""
        return self._first.name.partition("/")[0]

    @property
    def draws(self) -> bool:
        """Whether it makes figures and tables."""
        return self._first.kind in SUFFIXES

    @property
    def parts(self) -> list[str]:
        """The names of its figures and tables, or of the experiments on which it runs."""
        return list(dict.fromkeys(self.table[key].name.split("/")[1] for key in self.keys))

    @property
    def log(self) -> str:
        """What its log and its benchmark are called."""
        first, *more = self.parts
        name = first + (f"_and_{len(more)}_more" if more else "")
        if self.draws:
            return f"{self.paper}/{'artefacts' if self.whole else name}"
        return f"{self.paper}/{name}/{self._first.name.split('/')[2]}"

    @property
    def rule(self) -> str:
        """The name of its rule."""
        return f"artefacts_{self.paper}" if self.draws else f"run_{self.log.replace('/', '_')}"

    @property
    def description(self) -> str:
        """What it does, in one line."""
        if self.draws:
            return f"{self.paper}: make figures and tables of runs"
        verb = "run" if any(self.table[key].kind == "run" for key in self.keys) else "tune"
        return f"{self.paper}: {verb} {self._first.name.split('/')[2]} on {', '.join(self.parts)}"

    @property
    def upstream(self) -> list[str]:
        """The keys of the jobs that make its inputs."""
        read = dict.fromkeys(one for key in self.keys for one in self.table[key].upstream)
        return [key for key in read if key not in self.keys]

    @property
    def files(self) -> list[str]:
        """Files that no job makes."""
        return [file for key in self.keys for file in self.table[key].files]

    @property
    def memory(self) -> int | None:
        """The megabytes that settings state of a job in it, if they do of any."""
        stated = [self.table[key].memory for key in self.keys]
        return max(one or KINDS["run"].memory for one in stated) if any(stated) else None

    @property
    def log_pattern(self) -> str:
        """What its log is called, with the wildcard ``{paper}``: rules without one are listed as targets."""
        return f"{{paper}}/{self.log.partition('/')[2]}"

    @property
    def patterns(self) -> list[str]:
        """The files that it makes, with the wildcard ``{paper}``."""
        paths = self.table.config["paths"]
        named = ((self.table[key].kind, self.table[key].name.partition("/")[2]) for key in self.keys)
        return [file for kind, name in named for file in files(kind, f"{{paper}}/{name}", paths)]


def groups(table: Table, asked: Iterable[str]) -> list[Group]:
    """Return the groups of the jobs that are needed for some keys; a job that is alone has its own rule."""
    every, needed = table.needed(targets(table)["all"]), table.needed(asked)
    found = []
    for several in table.groups.values():
        whole, keys = ([one for one in several if one in among] for among in (every, needed))
        if len(keys) > 1:
            found.append(Group(table, tuple(keys), keys == whole))
    return found


def groups_of_call(
    table: Table,
    names: Mapping[str, Sequence[str]],
    wanted: Sequence[str],
    remote: Collection[Any] | None = None,
    renamed: Callable[[str], str] = str,
) -> list[Group]:
    """Return the groups that a call of Snakemake makes rules of.

    Parameters
    ----------
    names : those of `targets`.
    wanted : the targets of the call.
    remote : jobs that another machine is asked to do, each with the name of its rule.
    renamed : gives the name that a rule or a target has where another workflow uses this one as a module.
    """
    if remote:
        rules = {job.rulename for job in remote}
        return [group for group in groups(table, names["all"]) if renamed(group.rule) in rules]
    found = groups(table, asked(table, wanted, {renamed(name): keys for name, keys in names.items()}))
    # Another machine knows a group by the name of its rule alone, which does not say what was asked for.
    return found if executor() == "local" else [group for group in found if group.whole]


def asked(table: Table, wanted: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the keys of what targets stand for, without targets that no job makes."""
    found: list[str] = []
    for target in wanted:
        key = table.maker(target)
        found += [key] if key else names.get(target, ())
    return found


def remaining(seconds: Mapping[int, float | None], before: Mapping[int, Iterable[int]]) -> dict[int, float]:
    """Return the seconds of the longest chain that begins with each job and ends with the last.

    A job waits for those `before` it. Jobs without a known time take none.

    >>> remaining({1: 5.0, 2: 3.0, 3: None, 4: 1.0}, {1: [], 2: [1], 3: [2], 4: []})
    {1: 8.0, 2: 3.0, 3: 0.0, 4: 1.0}
    """
    longest_after = dict.fromkeys(before, 0.0)
    found = {}
    for job in reversed([*TopologicalSorter(before).static_order()]):
        found[job] = (seconds.get(job) or 0.0) + longest_after[job]
        for one in before[job]:
            longest_after[one] = max(longest_after[one], found[job])
    return {job: found[job] for job in before}


def set_priorities(dag: Any, priorities: Mapping[int, float]) -> None:
    """Give jobs of a graph of Snakemake these priorities, by their ids, but for those of ``--prioritize``.

    Snakemake takes a priority from a rule, not from a job. Should it keep those of jobs in another place,
    they stay equal, and jobs start in another order.
    """
    kept = getattr(dag, "_priority", {})
    for job, priority in kept.items():
        if priority == 0 and job.jobid in priorities:
            kept[job] = round(priorities[job.jobid])
