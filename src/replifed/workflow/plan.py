"""Paths of the workflow's files; inputs, outputs and settings of every kind of job."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from replifed.algorithms.registry import INSTALLED, METHODS
from replifed.errors import ConfigError, DataError, unknown_name
from replifed.logs.files import find
from replifed.parts import COMPARE, COMPARED, finding_file, folder_of, part, sentences_file
from replifed.settings import needs, subsets
from replifed.settings.retired import unknown_artefact
from replifed.store.provenance import canonical_json

_FILES = {
    "run": [".parquet"],
    "tuned": [".tuned.json"],
    "partition": ["/partition.npz", "/partition.csv"],
}
SUFFIXES = {"figure": ("csv", "pdf", "png"), "table": ("csv", "md", "tex")}
MEMORY_MB = 2000  # of a job of which nothing is known
# The folder of what jobs that share a run leave, until it is joined.
SHARES = "shares"
# The folder of runs that a comparison takes from the reference run (`lending`). No job makes them.
LENT = "lent"


class Plan:
    """Inputs and outputs of all jobs.

    A key names the files of a paper's job: "run:EXPERIMENT/METHOD", "tuned:EXPERIMENT/METHOD",
    "partition:EXPERIMENT" (two files), and "data:EXPERIMENT" for its parsed data set. Unknown experiments,
    partitions and artefacts are a `ConfigError`.

    `config` is from `replifed.settings.validate`; `source` returns the inputs that stand for the source files
    of modules.
    """

    def __init__(self, config: Mapping[str, Any], source: Callable[..., list[str]]) -> None:
        self.config = config
        self.source = source
        self.papers: list[str] = config["papers"]
        # Sections with experiments and artefacts: the papers, and the comparison with custom methods.
        self.sections = [*self.papers, *([COMPARE] if COMPARE in config else [])]

    # --- Files ---

    def in_data(self, path: str) -> str:
        """Return a file of the data sets, which all scales share."""
        return f"{self.config['paths']['data']}/{path}"

    def parsed(self, dataset: str) -> str:
        """Return a parsed data set."""
        return self.in_data(f"parsed/{dataset}.npz")

    def in_results(self, path: str) -> str:
        """Return a file of the results."""
        return f"{self.config['paths']['results']}/{path}"

    def in_figures(self, path: str) -> str:
        """Return a file of the figures and tables."""
        return f"{self.config['paths']['figures']}/{path}"

    def in_logs(self, path: str) -> str:
        """Return the log of a job."""
        return f"{self.logs_folder()}/{path}.log"

    def logs_folder(self) -> str:
        """Return the folder of the logs of this scale."""
        return f"{self.config['paths']['logs']}/{self.config['scale']}"

    def in_benchmarks(self, path: str) -> str:
        """Return the file with Snakemake's measurements of a job."""
        return self.in_results(f"benchmarks/{path}.tsv")

    def files_of(self, paper: str, *keys: str) -> list[str]:
        """Return the files of keys."""
        files = []
        for kind, _, name in (key.partition(":") for key in keys):
            if kind == "data":
                files.append(self.parsed(self.experiment(paper, name)["dataset"]))
            else:
                folder = self._owner(paper, name)
                files += [self.in_results(f"{folder}/{name}{suffix}") for suffix in _FILES[kind]]
        return files

    def _owner(self, paper: str, name: str) -> str:
        """Return the folder of an experiment's results: that of `cross` for what it runs, or what is lent."""
        experiment, _, method = name.partition("/")
        if paper != COMPARE or method in {**self.config.get("methods", {}), **INSTALLED}:
            return paper
        if name in (self.config.get("comparison", {}).get("lent") or ()):
            return LENT
        return COMPARED if experiment in self.config[COMPARED]["experiments"] else paper

    def inputs(self, paper: str, keys: Iterable[str], source: list[str]) -> dict[str, list[str]]:
        """Return the inputs of a job: files by key, and its sources."""
        return {**{key: self.files_of(paper, key) for key in keys}, "source": source}

    # --- Custom data sets ---

    def own_dataset_inputs(self, dataset: str) -> dict[str, Any]:
        """Return the inputs of a custom data set."""
        from replifed.data.own import file_of

        file = file_of(self.config["datasets"][dataset])
        return {"file": file, "source": self.source("replifed.data.own")}

    def own_dataset_settings(self, dataset: str) -> str:
        """Return the settings of a custom data set as JSON, but for those of its split."""
        one, requested = self.config["datasets"][dataset], self.config.get("comparison", {})
        kept = {key: value for key, value in one.items() if key not in ("partition", "clients", "sizes")}
        stated = "partition" in one or "partition" in requested
        return canonical_json({**kept, "partition_stated": stated})

    # --- Partitions, searches, runs ---

    def experiment(self, paper: str, experiment: str) -> Mapping[str, Any]:
        """Return an experiment's section."""
        known = self.config[paper]["experiments"]
        if experiment not in known:
            raise ConfigError(unknown_name(f"experiment of {paper}", experiment, known))
        return known[experiment]

    def experiment_names(self) -> set[str]:
        """Return the names of the experiments of all papers."""
        return {name for paper in self.sections for name in self.config[paper]["experiments"]}

    def memory(self, paper: str, experiment: str) -> int | None:
        """Return the megabytes that the settings state for a job on an experiment, if they do."""
        return self.experiment(paper, experiment).get("memory_mb")

    def step_settings(self, step: str, paper: str, experiment: str) -> str:
        """Return the settings of step "partition", "tune" or "run" as JSON."""
        return canonical_json(subsets.settings_for(step, self.config[paper], experiment))

    def method_source(self, step: str, paper: str, method: str) -> list[str]:
        """Return the sources of a job of `papers.jobs`, of the paper's experiments and of one method."""
        module, _, name = METHODS[method].rpartition(":")
        module = f"{module}:{name}" if module.endswith(".py") else module
        return self.source(f"replifed.papers.jobs:{step}", part(paper, "experiments"), module)

    def paper_source(self, step: str, module: str, paper: str) -> list[str]:
        """Return the sources of a job of `papers.jobs` and of one module of a paper, such as its errata."""
        return self.source(f"replifed.papers.jobs:{step}", part(paper, module))

    def partition_inputs(self, paper: str, experiment: str) -> dict[str, Any]:
        """Return the inputs of a partition."""
        section = self.experiment(paper, experiment)
        if "partition" not in section:
            raise ConfigError(
                f"experiment {experiment} of {paper} has no section `partition` to make one from"
            )
        return {"data": self.parsed(section["dataset"]), "source": self.source("replifed.partition.build")}

    def problem_keys(self, paper: str, experiment: str) -> list[str]:
        """Return the keys of an experiment's data set and partition, if it has them."""
        section, kinds = self.experiment(paper, experiment), (("data", "dataset"), ("partition", "partition"))
        return [f"{kind}:{experiment}" for kind, key in kinds if key in section]

    def _by_kind(self, paper: str, keys: Iterable[str]) -> dict[str, str]:
        """Return the first file of each key, by the key's kind."""
        return {key.partition(":")[0]: self.files_of(paper, key)[0] for key in keys}

    def tune_inputs(self, paper: str, experiment: str, method: str) -> dict[str, Any]:
        """Return the inputs of a search."""
        files = self._by_kind(paper, self.problem_keys(paper, experiment))
        if leader := self.leader_keys(paper, experiment, method):
            (files["leader"],) = self.files_of(paper, *leader)
        return {**files, "source": self.method_source("tune", paper, method)}

    def leader_keys(self, paper: str, experiment: str, method: str) -> list[str]:
        """Return the key of the leader's search, whose result this method's search reads, if there is one."""
        leader = self.experiment(paper, experiment).get("tuning", {}).get("leader", method)
        return [] if leader == method else [f"tuned:{experiment}/{leader}"]

    def run_inputs(self, paper: str, experiment: str, method: str) -> dict[str, Any]:
        """Return the inputs of a run: the files of its problem, and its tuned step, or its logs."""
        if (section := self.experiment(paper, experiment)).get("logs"):
            logs = [str(log.path) for log in find(folder_of(paper), section["logs"])]
            return {"logs": logs, "source": self.paper_source("run", "experiments", paper)}
        keys = (*self.problem_keys(paper, experiment), *self._before_run(paper, experiment, method))
        return {**self._by_kind(paper, keys), "source": self.method_source("run", paper, method)}

    def _before_run(self, paper: str, experiment: str, method: str) -> list[str]:
        return [f"tuned:{experiment}/{method}"] if "tuning" in self.experiment(paper, experiment) else []

    def shares(self, paper: str, experiment: str, method: str) -> int:
        """Return the number of jobs that share a run, each some of its repetitions; 1 if there is one job."""
        section = self.experiment(paper, experiment)
        return min(section["split"].get(method, 1), len(section["replicates"])) if "split" in section else 1

    def shared_runs(self) -> set[str]:
        """Return the runs that several jobs share, as PAPER/EXPERIMENT/METHOD."""
        return {
            f"{paper}/{experiment}/{method}"
            for paper in self.sections
            for experiment, section in self.config[paper]["experiments"].items()
            for method in section["methods"]
            if self.shares(paper, experiment, method) > 1
        }

    def in_shares(self, name: str) -> str:
        """Return what a job of a shared run leaves: its history, for another job to join."""
        return self.in_results(f"{SHARES}/{name}.parquet")

    def share_files(self, paper: str, experiment: str, method: str) -> list[str]:
        """Return what all jobs of a shared run leave."""
        numbers = range(1, self.shares(paper, experiment, method) + 1)
        return [self.in_shares(f"{paper}/{experiment}/{method}.{one}") for one in numbers]

    def share(self, paper: str, experiment: str, method: str, share: str) -> str:
        """Return the share of a job as NUMBER/OF."""
        return f"{share}/{self.shares(paper, experiment, method)}"

    # --- Figures and tables ---

    def artefact(self, paper: str, artefact: str) -> Mapping[str, Any]:
        """Return an artefact's entry."""
        known = needs.makeable(self.config[paper])
        if artefact not in known:
            raise ConfigError(unknown_artefact(paper, self.config[paper], artefact, known))
        return known[artefact]

    def artefact_names(self, kind: str) -> set[str]:
        """Return the names of the figures or the tables of all papers."""
        entries = [one for paper in self.sections for one in needs.makeable(self.config[paper]).items()]
        return {name for name, entry in entries if entry["kind"] == kind}

    def artefact_outputs(self, paper: str, folder: str | None = None) -> dict[str, str]:
        """Return every file of every artefact of a paper by keys such as ``fig1.csv``."""
        return self._outputs_of(needs.artefacts(self.config[paper]), folder or paper)

    def joint_outputs(self, paper: str, folder: str | None = None) -> dict[str, str]:
        """As `artefact_outputs`, of the artefacts that one job may make."""
        return self._outputs_of(needs.joint_artefacts(self.config[paper]), folder or paper)

    def _outputs_of(self, made: Mapping[str, Any], folder: str) -> dict[str, str]:
        return {
            f"{name}.{suffix}": self.in_figures(f"{folder}/{name}.{suffix}")
            for name, entry in made.items()
            for suffix in SUFFIXES[entry["kind"]]
        }

    def artefact_files(self, *papers: str) -> list[str]:
        """Return all files of all artefacts of papers."""
        return [file for paper in papers for file in self.artefact_outputs(paper).values()]

    def files_of_artefact(self, paper: str, artefact: str) -> list[str]:
        """Return the files of one artefact."""
        kind = self.artefact(paper, artefact)["kind"]
        return [self.in_figures(f"{paper}/{artefact}.{suffix}") for suffix in SUFFIXES[kind]]

    def on_demand(self) -> dict[str, list[str]]:
        """Return the files of the artefacts that `all` leaves out, by the names of their targets."""
        files = {
            f"{paper}_{name}": self.files_of_artefact(paper, name)
            for paper in self.papers
            for name, entry in self.config[paper]["artefacts"].items()
            if "on_demand" in entry
        }
        if taken := sorted(set(files).intersection(self.papers)):
            raise ConfigError(f"the paper {taken[0]} is called like a target; give it another name")
        return files

    def artefact_inputs(self, paper: str, artefact: str) -> dict[str, list[str]]:
        """Return the inputs of an artefact."""
        entry = self.artefact(paper, artefact)
        source = self.paper_source("artefact", f"{entry['kind']}s", paper)
        return self.inputs(paper, needs.artefact_keys(entry), source)

    def artefact_settings(self, paper: str, artefact: str) -> str:
        """Return an artefact's settings as JSON."""
        return canonical_json(subsets.settings_for("artefact", self.config[paper], artefact))

    # --- Claims ---

    def claims_inputs(self, paper: str) -> dict[str, list[str]]:
        """Return the inputs of a paper's claims."""
        source = self.paper_source("measure_claims", "claims", paper)
        return self.inputs(paper, needs.claim_keys(self.config[paper]), source)

    def claim_inputs(self, paper: str, claim: str) -> dict[str, list[str]]:
        """Return the inputs of one claim and of the orders that share its correction."""
        from replifed.papers.jobs import claim_and_family

        keys = [key for one in claim_and_family(paper, claim) for key in one.needs]
        return self.inputs(paper, keys, self.paper_source("measure_claims", "claims", paper))

    def claims_settings(self, paper: str) -> str:
        """Return the settings of a paper's claims as JSON."""
        return canonical_json(subsets.settings_for("claims", self.config[paper]))

    def collection_source(self) -> list[str]:
        """Return the sources of the files of all claims, and of statements without a claim."""
        modules = (part(one, "claims") for one in self.papers)
        files = [str(file) for one in self.papers if (file := sentences_file(one)).is_file()]
        return self.source("replifed.papers.jobs:collect_claims", *modules, *files)

    # --- Report and manifest ---

    def paper_files(self, paper: str) -> list[str]:
        """Return what a paper's target makes: figures and tables, verdicts, its page of the report."""
        names = ("claims.csv", "environment.json", "errata.csv", "report.html")
        return [*self.artefact_files(paper), *(self.in_results(f"{paper}/{name}") for name in names)]

    def report_source(self, *papers: str) -> list[str]:
        """Return the sources of a report on papers: its modules, their sentences, and their findings."""
        texts = (file for one in papers for file in (sentences_file(one), finding_file(one)))
        files = [str(file) for file in texts if file.is_file()]
        return self.source("replifed.report.page", *(part(one, "claims") for one in papers), *files)

    def report_settings(self, papers: Sequence[str] = ()) -> str:
        """Return the artefacts and settings of experiments that the report shows, as JSON."""
        papers = list(papers or self.papers)
        lent = self.config.get("comparison", {}).get("lent")
        sections = {
            paper: {
                "artefacts": needs.artefacts(self.config[paper]),
                "not_computed": self.config[paper].get("not_computed", {}),
                "experiments": subsets.shown_experiments(self.config[paper]),
                **({"lent": lent} if lent and paper == COMPARE else {}),
            }
            for paper in papers
        }
        return canonical_json({"papers": papers, **sections})

    def comparison_artefacts(self) -> list[str]:
        """Return all files of all artefacts of the comparison, if there is one."""
        return self.artefact_files(COMPARE) if COMPARE in self.config else []

    def comparison_report(self) -> str:
        """Return the page of the comparison."""
        return self.in_figures(f"{COMPARE}/report.html")

    def report_outputs(self) -> dict[str, str]:
        """Return the page and its scripts; that on the run differs from run to run."""
        return {
            "out": self.in_results("report.html"),
            "curves": self.in_results("report_curves.js"),
            "run": self.in_results("report_run.js"),
        }

    def manifest_files(self) -> list[str]:
        """Return all files that rules read or write, but for logs, benchmarks and the facts of a run."""
        files = self.artefact_files(*self.papers)
        for paper in self.papers:
            keys = needs.claim_keys(self.config[paper])
            files += self.files_of(paper, *keys, *self._earlier_keys(paper, keys))
            files += [self.in_results(f"{paper}/{name}.csv") for name in ("claims", "errata")]
        for dataset in needs.used_datasets(self.config):
            files += [self.in_data(f"raw/{dataset}.json"), self.parsed(dataset)]
        files += [self.in_results(f"{name}.csv") for name in ("claims", "statements", "not_claimed")]
        files += [file for name, file in self.report_outputs().items() if name != "run"]
        return list(dict.fromkeys(files))

    def _earlier_keys(self, paper: str, keys: list[str]) -> list[str]:
        """Return the keys of searches and partitions before runs."""
        earlier = []
        for key in keys:
            kind, _, name = key.partition(":")
            experiment, _, method = name.partition("/")
            section = self.experiment(paper, experiment)
            if kind == "run":
                earlier += self._before_run(paper, experiment, method)
            if "partition" in section:
                earlier.append(f"partition:{experiment}")
        return earlier

    def raw_folders(self) -> list[str]:
        """Return the folders of the downloaded files."""
        return [self.in_data(f"raw/{dataset}") for dataset in needs.used_datasets(self.config)]

    def verified_folders(self) -> list[str]:
        """Return the folders in which each file must be one that a job made."""
        papers = [folder for name in self.papers for folder in (self.in_results(name), self.in_figures(name))]
        return [*papers, *self.raw_folders(), self.in_data("parsed")]

    def score_lines(self, papers: Iterable[str]) -> list[str]:
        """Return the score of the statements of papers whose claims have been measured."""
        from replifed.claims import files, scores

        try:
            judged = (self.in_results(f"{paper}/claims.csv") for paper in papers)
            rows = [row for file in judged if Path(file).is_file() for row in files.read(file)]
        except DataError as error:  # a file is damaged
            return [str(error)]
        return scores.in_lines(scores.statements(rows)) if rows else []

    def closing_line(self, used: Iterable[str], pages: Iterable[str]) -> str:
        """Say how many of the `used` data sets are not the papers', and where the report's `pages` are."""
        from replifed.data.records import not_original, status_rows

        raw = Path(self.in_data("raw"))
        known = [name for name in used if (raw / f"{name}.json").is_file()]
        try:
            parts = [not_original(status_rows(raw, known))] if known else []
        except DataError as error:  # a record is damaged
            parts = [str(error)]
        return "; ".join([*parts, *(f"report: {page}" for page in pages)])


def flags(files: Mapping[str, str]) -> str:
    """Return ``--NAME FILE ...``.

    >>> flags({"data": "a b.npz", "tuned": "fedht.tuned.json"})
    "--data 'a b.npz' --tuned fedht.tuned.json"
    """
    return " ".join(f"--{name} {shlex.quote(file)}" for name, file in files.items())


def inputs_flag(inputs: Mapping[str, str | Iterable[str]]) -> str:
    """Return ``--inputs KEY=FILE ...`` of files by key, but for a job's sources; nothing without files.

    >>> inputs_flag({"run:mnist/fedht": ["mnist/fedht.parquet"], "source": ["fedht.py"]})
    '--inputs run:mnist/fedht=mnist/fedht.parquet'
    """
    files = {
        key: [file] if isinstance(file, str) else file for key, file in inputs.items() if key != "source"
    }
    words = [shlex.quote(f"{key}={file}") for key, own in files.items() for file in own]
    return " ".join(["--inputs", *words] if words else [])


def one_of(names: Iterable[str]) -> str:
    """Return a pattern of names, which matches nothing without names: an empty pattern would match all.

    >>> one_of(["fedmm", "fedht"]), one_of([])
    ('fedht|fedmm', '(?!)')
    """
    return "|".join(sorted(names)) or "(?!)"
