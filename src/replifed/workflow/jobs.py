"""The table of jobs: what each reads and makes, and the settings and sources on which it depends.

A key is the kind of a job, which is its rule, and its name: "run:fedht/mnist/fediterht", "figure:fedht/fig6",
"report:". The Snakefile makes rules of the table, and `replifed job KEY` does one of its jobs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from replifed.algorithms.registry import INSTALLED, METHODS
from replifed.data.catalogue import CATALOGUE
from replifed.errors import ConfigError
from replifed.logs.files import find
from replifed.parts import COMPARE, COMPARED, finding_file, folder_of, part, sentences_file
from replifed.settings import needs
from replifed.settings.held_out import OFFICIAL, name_of
from replifed.settings.needs import settings_for, shown_experiments
from replifed.store.provenance import canonical_json, source_listing

Settings = Mapping[str, Any]
NOTHING: Mapping[str, Any] = MappingProxyType({})

# The folders of what shares of a run leave, until they are joined, and of runs that a comparison takes from
# the reference (`reuse`).
SHARES, REUSED = "shares", "reused"
SUFFIXES = {"figure": ("csv", "pdf", "png"), "table": ("csv", "md", "tex")}


class Kind(NamedTuple):
    """What jobs of a kind make, what their logs and benchmarks are called, and what they ask for."""

    files: tuple[str, ...]
    log: str
    memory: int = 2000  # megabytes, and minutes, of a job of which nothing is recorded
    minutes: int = 30


KINDS = {
    # The raw files lie beside their record, in <data>/raw/<dataset>/, and are not listed: a record that is
    # made again must not throw downloaded files away.
    "fetch": Kind(("{data}/raw/{name}.json",), "data/{name}.fetch", 500),
    "parse": Kind(("{data}/parsed/{name}.npz",), "data/{name}.parse", 3000),
    "own_dataset": Kind(("{data}/parsed/{name}.npz",), "data/{name}", 3000),
    "partition": Kind(
        ("{results}/{name}/partition.npz", "{results}/{name}/partition.csv"), "{name}/partition"
    ),
    "tune": Kind(("{results}/{name}.tuned.json",), "{name}.tuned", minutes=240),
    "run": Kind(("{results}/{name}.parquet",), "{name}", minutes=240),
    "share": Kind((f"{{results}}/{SHARES}/{{name}}.parquet",), "{name}", minutes=240),
    "join": Kind(("{results}/{name}.parquet",), "{name}.joined", 1000),
    "reused": Kind((f"{{results}}/{REUSED}/{{name}}",), ""),  # no rule makes them
    **{
        kind: Kind(tuple(f"{{figures}}/{{name}}.{end}" for end in ends), "{name}")
        for kind, ends in SUFFIXES.items()
    },
    "measure_claims": Kind(
        ("{results}/{name}/claims.csv", "{results}/{name}/environment.json"), "{name}/claims"
    ),
    "measure_claim": Kind(("{results}/{name}.csv",), "{name}"),
    "errata": Kind(("{results}/{name}/errata.csv",), "{name}/errata", 1000),
    "claims": Kind(
        ("{results}/claims.csv", "{results}/statements.csv", "{results}/not_claimed.csv"), "claims", 500
    ),
    "report": Kind(
        ("{results}/report.html", "{results}/report_curves.js", "{results}/report_run.js"), "report", 1000
    ),
    "paper_report": Kind(("{results}/{name}/report.html",), "{name}/report", 1000),
    "single_report": Kind(("{results}/report-single.html",), "single_report", 1000),
    "comparison_report": Kind((f"{{figures}}/{COMPARE}/report.html",), "comparison_report", 1000),
    "gallery": Kind(("docs/pictures.md",), "gallery", 1000),
    "manifest": Kind(("{results}/manifest.csv", "{results}/environment.json"), "manifest", 200),
}


def files(kind: str, name: str, paths: Mapping[str, str]) -> list[str]:
    """Return the files that the job of a kind with this name makes.

    >>> files("tune", "fedht/mnist/fedavg", {"results": "results/small"})
    ['results/small/fedht/mnist/fedavg.tuned.json']
    """
    return [file.format(name=name, **paths) for file in KINDS[kind].files]


class Job(NamedTuple):
    """A job: what it reads, and on what it depends."""

    key: str
    description: str  # in one line
    # Keys of the jobs that make its inputs, by the names under which its function gets their files.
    reads: Mapping[str, str] = NOTHING
    # Inputs that no job makes.
    files: Sequence[str] = ()
    settings: Settings = NOTHING
    # Further keyword arguments of its function. Like settings and sources, they are part of its digest: if
    # they change, the job runs again.
    options: Settings = NOTHING
    # Modules, functions of modules such as "replifed.papers.jobs:tune", and other files that it depends on.
    sources: Sequence[str] = ()
    memory: int | None = None  # megabytes, if settings state them
    group: str = ""  # name of a batch of jobs, which one process may do in turn

    @property
    def keys(self) -> tuple[str, ...]:
        """Its key: a group of jobs has several."""
        return (self.key,)

    @property
    def upstream(self) -> list[str]:
        """The keys of the jobs that make its inputs."""
        return list(dict.fromkeys(self.reads.values()))

    @property
    def kind(self) -> str:
        """The name of its rule."""
        return self.key.partition(":")[0]

    @property
    def name(self) -> str:
        """What it makes: the path of its files, without suffixes."""
        return self.key.partition(":")[2]

    @property
    def log(self) -> str:
        """What its log and its benchmark are called."""
        return KINDS[self.kind].log.format(name=self.name)


class Table(dict[str, Job]):
    """All jobs by key, in an order in which they could be done; single claims are added when looked up.

    `config` is from `replifed.settings.validate`.
    """

    def __init__(self, config: Settings) -> None:
        self.config = config
        self.papers: list[str] = config["papers"]
        # Sections with experiments and artefacts: the papers, and the comparison with custom methods.
        self.sections = [*self.papers, *([COMPARE] if COMPARE in config else [])]
        super().__init__((job.key, job) for job in _all_jobs(config, self.sections))
        # All that was made on the way to the report, too, but for shares, which are gone.
        made = [key for key in self.needed(["report:"]) if self[key].kind != "share"]
        said, sources = "list what was made, by hash", ["replifed.store.manifest"]
        raw = [f"{config['paths']['data']}/raw/{self[key].name}" for key in made if self[key].kind == "fetch"]
        self["manifest:"] = Job("manifest:", said, _same(made), options={"folders": raw}, sources=sources)

    def __missing__(self, key: str) -> Job:
        kind, _, name = key.partition(":")
        if kind == REUSED:  # what is taken from another run, no job makes
            return Job(key, f"{name}: taken from another run")
        paper, _, claim = name.partition("/claims/")
        if kind != "measure_claim" or paper not in self.papers:
            raise ConfigError(f"there is no job {key} of the papers that are listed")
        self[key] = _claim(self.config, paper, claim)
        return self[key]

    def files(self, *keys: str) -> list[str]:
        """Return the files that jobs make."""
        found = (files(*_split(key), self.config["paths"]) for key in keys)
        return [file for several in found for file in several]

    @cached_property
    def makers(self) -> dict[str, str]:
        """The key of the job that makes a file, by file."""
        return {file: key for key in self for file in self.files(key)}

    def maker(self, file: str) -> str | None:
        """Return the key of the job that makes a file, if one does."""
        results, slash, name = file.removeprefix(f"{self.config['paths']['results']}/").partition("/claims/")
        if slash and results in self.papers and name.endswith(".csv"):
            return self[f"measure_claim:{results}/claims/{name.removesuffix('.csv')}"].key
        return self.makers.get(file)

    def verified_folders(self) -> list[str]:
        """Return the folders in which each file must be one that a job made."""
        paths = self.config["paths"]
        own = [f"{paths[kind]}/{paper}" for paper in self.papers for kind in ("results", "figures")]
        return [*own, *self["manifest:"].options["folders"], f"{paths['data']}/parsed"]

    def needed(self, keys: Iterable[str]) -> list[str]:
        """Return these keys and those of all jobs before them, in the order of the table."""
        found: set[str] = set()
        waiting = [*keys]
        while waiting:
            key = waiting.pop()
            if key not in found:
                found.add(key)
                waiting += self[key].upstream
        return [key for key in self if key in found]

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The keys of jobs that one process may do in turn, by the name of their group."""
        found: dict[str, list[str]] = {}
        for key, job in self.items():
            if job.group:
                found.setdefault(job.group, []).append(key)
        return found

    def digest(self, key: str, root: Path) -> str:
        """Return a hash of all on which a job depends: settings, sources below `root`, and what it reads.

        Jobs in a group have one hash, however many of them are done together: Snakemake makes a file anew
        whose rule has another one than the rule that made it.
        """
        several = [self[one] for one in self.groups.get(self[key].group, [key])]
        stated = [
            [job.key, {**job.settings}, {**job.options}, {**job.reads}, [*job.files]] for job in several
        ]
        sources = source_listing(tuple(dict.fromkeys(one for job in several for one in job.sources)), root)
        return hashlib.sha256(f"{canonical_json(stated)}\n{sources}".encode()).hexdigest()


def _split(key: str) -> tuple[str, str]:
    kind, _, name = key.partition(":")
    return kind, name


# --- The jobs ---


def _all_jobs(config: Settings, sections: Sequence[str]) -> Iterator[Job]:
    yield from _of_data(config)
    for paper in sections:
        yield from _of_paper(config, paper)
    yield from _closing(config)


def _of_data(config: Settings) -> Iterator[Job]:
    """Yield what fetches and parses data sets, and reads custom ones in their place."""
    policy = {key: config["data"][key] for key in ("policy", "substitutes")}
    for name in CATALOGUE:
        key = f"fetch:{name}"
        yield Job(key, f"{name}: fetch", options=policy, sources=["replifed.data.fetch"])
        yield Job(
            f"parse:{name}", f"{name}: parse and check", {"record": key}, sources=["replifed.data.parse"]
        )
    for name, one in config.get("datasets", {}).items():
        from replifed.data.own import file_of

        settings = {key: value for key, value in one.items() if key not in ("partition", "clients", "sizes")}
        settings["partition_stated"] = "partition" in one or "partition" in config.get("comparison", {})
        if "test" in config.get("comparison", {}):  # then it is done where it is known what is trained on
            settings.pop("standardise", None)
        sources, said = ["replifed.data.own"], f"{name}: read and check"
        test, key = settings.pop("test", None), f"own_dataset:{name}"
        yield Job(key, said, {}, [file_of(one)], settings, sources=sources)
        if test is not None:
            own = {k: v for k, v in settings.items() if k not in ("rows", "features")} | {"path": test}
            said = f"{name}: read and check its test set"
            yield Job(f"{key}_test", said, {"data": key}, [file_of(own)], own, sources=sources)


def _of_paper(config: Settings, paper: str) -> Iterator[Job]:
    section = config[paper]
    for name in section["experiments"]:
        yield from _of_experiment(config, paper, name)
    together = section.get("together")
    joint = needs.artefacts(section) if together else {}
    for name, entry in needs.makeable(section).items():
        kind, group = entry["kind"], f"artefacts:{paper}" if name in joint and _waits(entry) else ""
        yield Job(
            f"{kind}:{paper}/{name}",
            f"{paper}: {'draw' if kind == 'figure' else 'write'} {name}",
            _inputs(config, paper, needs.artefact_keys(entry)),
            settings=settings_for("artefact", section, name),
            options={"scale": config["scale"]},
            sources=_sources("artefact", paper, f"{kind}s"),
            group=group,
        )
    if paper != COMPARE:
        yield _claims(config, f"measure_claims:{paper}", "the claims", paper, needs.claim_keys(section))
        sources, said = _sources("measure_errata", paper, "errata"), f"{paper}: check the errata"
        yield Job(f"errata:{paper}", said, sources=sources)


def _waits(entry: Settings) -> bool:
    """Return whether an artefact is made from runs or searches."""
    return "runs" in entry or "tuned" in entry


def _of_experiment(config: Settings, paper: str, name: str) -> Iterator[Job]:
    """Yield the partition of an experiment, its searches and its runs, but for what other sections have."""
    section, path = config[paper]["experiments"][name], f"{paper}/{name}"
    memory = section.get("memory_mb")

    def settings(step: str) -> Settings:
        return settings_for(step, config[paper], name)

    if "partition" in section and owner(config, paper, name) == paper:
        said, reads = (
            f"{paper}: split the data of {name} between the clients",
            _inputs(config, paper, [f"data:{name}"]),
        )
        sources, data = ["replifed.partition.build"], {"data": reads[f"data:{name}"]}
        yield Job(
            f"partition:{path}", said, data, settings=settings("partition"), sources=sources, memory=memory
        )
    grouped = config[paper].get("together") is True and name in needs.experiments_read(config[paper])
    for method in section["methods"]:
        if owner(config, paper, name, method) != paper:
            continue
        of, more = f"{method} on {name}", {"memory": memory, "group": f"runs:{paper}/{method}" * grouped}
        before = problem(config, paper, name)
        if "tuning" in section:
            leader = section["tuning"].get("leader", method)
            led = {} if leader == method else {"leader": _search(config, paper, name, leader)}
            sources = _sources("tune", paper, "experiments", method)
            key, said = f"tune:{path}/{method}", f"{paper}: tune {of}"
            yield Job(key, said, {**before, **led}, settings=settings("tune"), sources=sources, **more)
            before["tuned"] = _search(config, paper, name, method)
        yield from _run(config, paper, name, method, before, more)


def _run(
    config: Settings, paper: str, name: str, method: str, reads: Mapping[str, str], more: dict[str, Any]
) -> Iterator[Job]:
    """Yield the run of a method on an experiment, or several jobs that share it and one that joins them."""
    section, of = config[paper]["experiments"][name], f"{method} on {name}"
    key, said = f"{paper}/{name}/{method}", f"{paper}: run {of}"
    sources, logs = _sources("run", paper, "experiments", method), []
    if section.get("logs"):
        sources, reads = _sources("run", paper, "experiments"), {}
        logs = [str(log.path) for log in find(folder_of(paper), section["logs"])]
    whole = Job(
        f"run:{key}", said, reads, logs, settings_for("run", config[paper], name), {}, sources, **more
    )
    count = shares(config[paper], name, method)
    if count == 1:
        yield whole
        return
    parts = {f"share:{key}.{one}": one for one in range(1, count + 1)}
    for share, one in parts.items():
        yield whole._replace(key=share, description=f"{said}, share {one}/{count}", options={"share": count})
    said, reads = f"{paper}: join the shares of {of}", {one: one for one in parts}
    yield Job(f"join:{key}", said, reads, sources=["replifed.store.histories"])


def shares(section: Settings, name: str, method: str) -> int:
    """Return the number of jobs that share a run, each some of its repetitions; a group shares none."""
    one = section["experiments"][name]
    if "split" not in one or (section.get("together") is True and name in needs.experiments_read(section)):
        return 1
    return min(one["split"].get(method, 1), len(one["replicates"]))


def _claims(config: Settings, key: str, of: str, paper: str, inputs: Iterable[str]) -> Job:
    settings, options = settings_for("claims", config[paper]), {"scale": config["scale"]}
    reads, sources = _inputs(config, paper, inputs), _sources("measure_claims", paper, "claims")
    return Job(key, f"{paper}: measure {of}", reads, (), settings, options, sources)


def _claim(config: Settings, paper: str, claim: str) -> Job:
    """Return the job of one claim, and of the orders that share its correction."""
    from replifed.papers.jobs import claim_and_family

    inputs = [key for one in claim_and_family(paper, claim) for key in one.needs]
    job = _claims(config, f"measure_claim:{paper}/claims/{claim}", claim, paper, inputs)
    return job._replace(options={**job.options, "only": claim})


def _closing(config: Settings) -> Iterator[Job]:
    """Yield what is made of all papers: their claims, the reports and the gallery."""
    papers, figures = config["papers"], {"figures": config["paths"]["figures"]}
    options = {"scale": config["scale"], **figures}
    sources = [part(one, "claims") for one in papers]
    sources += [str(file) for one in papers if (file := sentences_file(one)).is_file()]
    sources = ["replifed.papers.jobs:collect_claims", *sources]
    reads = _same(f"measure_claims:{paper}" for paper in papers)
    yield Job("claims:", "collect the claims of all papers", reads, sources=sources)
    for paper in papers:
        reads = _same([f"measure_claims:{paper}", f"errata:{paper}", *shown(config, paper)])
        said, settings = f"{paper}: write its page of the report", _report_settings(config, [paper])
        yield Job(f"paper_report:{paper}", said, reads, (), settings, options, _report_sources(paper))
    drawn = [key for paper in papers for key in shown(config, paper)]
    reads = _same(["claims:", *(f"errata:{paper}" for paper in papers), *drawn])
    settings, sources = _report_settings(config, papers), _report_sources(*papers)
    yield Job("report:", "write the report", reads, (), settings, options, sources)
    yield Job("single_report:", "write the report as one file", reads, (), settings, options, sources)
    if config["scale"] == "paper":
        reads, sources = _same(["claims:", *drawn]), ["replifed.report.gallery"]
        yield Job("gallery:", "write the page of pictures", reads, (), settings, figures, sources)
    if COMPARE in config:
        said, settings = "write the report of the comparison", _report_settings(config, [COMPARE])
        reads, sources = _same(shown(config, COMPARE)), ["replifed.report.page"]
        yield Job("comparison_report:", said, reads, (), settings, options, sources)


def shown(config: Settings, paper: str) -> list[str]:
    """Return the keys of the figures and tables of a paper that `all` makes."""
    return [f"{one['kind']}:{paper}/{name}" for name, one in needs.artefacts(config[paper]).items()]


def _report_sources(*papers: str) -> list[str]:
    """Return the sources of a report on papers: its modules, their sentences and their findings."""
    texts = (file for one in papers for file in (sentences_file(one), finding_file(one)))
    files = [str(file) for file in texts if file.is_file()]
    return ["replifed.report.page", *(part(one, "claims") for one in papers), *files]


def _same(keys: Iterable[str]) -> dict[str, str]:
    return {key: key for key in keys}


# --- What they read and depend on ---


def _sources(step: str, paper: str, module: str, method: str = "") -> list[str]:
    """Return the sources of a function of `papers.jobs`, of a module of the paper, and of a method."""
    found = [f"replifed.papers.jobs:{step}", part(paper, module)]
    if method:
        file, _, name = METHODS[method].rpartition(":")
        found.append(f"{file}:{name}" if file.endswith(".py") else file)
    return found


def owner(config: Settings, paper: str, experiment: str, method: str = "") -> str:
    """Return the section whose jobs make a partition or a run; a comparison shares those of `cross`."""
    if paper != COMPARE or method in {**config.get("methods", {}), **INSTALLED}:
        return paper
    return COMPARED if experiment in config[COMPARED]["experiments"] else paper


def _is_reused(config: Settings, paper: str, name: str) -> bool:
    return paper == COMPARE and name in (config.get("comparison", {}).get("reused") or ())


def _search(config: Settings, paper: str, experiment: str, method: str) -> str:
    """Return the key of a search."""
    if _is_reused(config, paper, f"{experiment}/{method}"):
        return f"reused:{experiment}/{method}.tuned.json"
    return f"tune:{owner(config, paper, experiment, method)}/{experiment}/{method}"


def _history(config: Settings, paper: str, experiment: str, method: str) -> str:
    """Return the key of a run."""
    if _is_reused(config, paper, f"{experiment}/{method}"):
        return f"reused:{experiment}/{method}.parquet"
    section = owner(config, paper, experiment, method)
    kind = "run" if shares(config[section], experiment, method) == 1 else "join"
    return f"{kind}:{section}/{experiment}/{method}"


def problem(config: Settings, paper: str, experiment: str) -> dict[str, str]:
    """Return the keys of an experiment's data set, its own test set and its partition, if it has them."""
    section = config[paper]["experiments"][experiment]
    found = {}
    if "dataset" in section:
        kind = "own_dataset" if section["dataset"] in config.get("datasets", {}) else "parse"
        found["data"] = f"{kind}:{section['dataset']}"
        if section.get("test") == OFFICIAL:
            found["test"] = f"{kind}:{name_of(section['dataset'])}"
    if "partition" in section:
        found["partition"] = f"partition:{owner(config, paper, experiment)}/{experiment}"
    return found


def _inputs(config: Settings, paper: str, inputs: Iterable[str]) -> dict[str, str]:
    """Return keys by the names that figures and claims have for them, such as "run:mnist/fedht"."""
    found = {}
    for name in inputs:
        kind, _, of = name.partition(":")
        experiment, _, method = of.partition("/")
        if kind in ("run", "tuned"):
            key_of = {"run": _history, "tuned": _search}[kind]
            found[name] = key_of(config, paper, experiment, method)
        else:
            found[name] = problem(config, paper, experiment)[kind]
    return found


def _report_settings(config: Settings, papers: Sequence[str]) -> dict[str, Any]:
    """Return the artefacts and settings of experiments that a report shows."""
    reused = config.get("comparison", {}).get("reused")
    sections = {
        paper: {
            "artefacts": needs.artefacts(config[paper]),
            "not_computed": config[paper].get("not_computed", {}),
            "experiments": shown_experiments(config[paper]),
            **({"reused": reused} if reused and paper == COMPARE else {}),
        }
        for paper in papers
    }
    return {"papers": list(papers), **sections}
