"""Inputs, outputs and settings of every kind of job."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from replifed import settings
from replifed.algorithms.registry import METHODS
from replifed.errors import ConfigError
from replifed.papers import part
from replifed.provenance import canonical_json
from replifed.workflow.files import Files, flags

_SUFFIXES = {"figure": ("csv", "pdf", "png"), "table": ("csv", "md", "tex")}
_MEMORY_MB = 2000


class Plan(Files):
    """Which file is made from which.

    Parameters
    ----------
    config : mapping
        From `replifed.settings.validate`.
    source : callable
        Gives the inputs that stand for the source files of modules.
    """

    def __init__(self, config: Mapping[str, Any], source: Callable[..., list[str]]) -> None:
        super().__init__(config)
        self.source = source

    # --- Partitions, searches, runs ---

    def experiment_names(self) -> set[str]:
        """Return the names of the experiments of all papers."""
        return {name for paper in self.papers for name in self.config[paper]["experiments"]}

    def memory(self, paper: str, experiment: str) -> int:
        """Return the megabytes that a job on an experiment declares."""
        return self.experiment(paper, experiment).get("memory_mb", _MEMORY_MB)

    def step_settings(self, step: str, paper: str, experiment: str) -> str:
        """Return the settings of step "partition", "tune" or "run" as JSON."""
        self.experiment(paper, experiment)
        return canonical_json(settings.settings_for(step, self.config[paper], experiment))

    def method_source(self, step: str, paper: str, method: str) -> list[str]:
        """Return the sources of a step (MODULE:FUNCTION), of the paper's experiments and of one method."""
        module = METHODS[method].partition(":")[0]
        return self.source(f"replifed.papers.{step}", part(paper, "experiments"), module)

    def partition_inputs(self, paper: str, experiment: str) -> dict[str, Any]:
        """Return what a partition is made from."""
        section = self.experiment(paper, experiment)
        if "partition" not in section:
            raise ConfigError(
                f"experiment {experiment} of {paper} has no section `partition` to make one from"
            )
        return {
            "data": self.parsed(section["dataset"]),
            "source": self.source("replifed.partition.build"),
        }

    def problem_keys(self, paper: str, experiment: str) -> list[str]:
        """Return the keys of what an experiment's problem is made from, if anything."""
        kinds = {"data": "dataset", "partition": "partition"}
        section = self.experiment(paper, experiment)
        return [f"{kind}:{experiment}" for kind, key in kinds.items() if key in section]

    def problem_files(self, paper: str, experiment: str) -> dict[str, str]:
        """Return parsed data and partition, where a problem has them."""
        keys = self.problem_keys(paper, experiment)
        return {key.partition(":")[0]: self.files_of(paper, key)[0] for key in keys}

    def run_files(self, paper: str, experiment: str, method: str) -> dict[str, str]:
        """Return what a run reads: the files of its problem, and its method's tuned step, if any."""
        files = self.problem_files(paper, experiment)
        if "tuning" in self.experiment(paper, experiment):
            (files["tuned"],) = self.files_of(paper, f"tuned:{experiment}/{method}")
        return files

    def tune_inputs(self, paper: str, experiment: str, method: str) -> dict[str, Any]:
        """Return what a search is made from."""
        source = self.method_source("jobs:tune", paper, method)
        return {**self.problem_files(paper, experiment), "source": source}

    def run_inputs(self, paper: str, experiment: str, method: str) -> dict[str, Any]:
        """Return what a run is made from."""
        source = self.method_source("jobs:run", paper, method)
        return {**self.run_files(paper, experiment, method), "source": source}

    def tune_flags(self, paper: str, experiment: str) -> str:
        """Return the flags of what a search reads."""
        return flags(self.problem_files(paper, experiment))

    def run_flags(self, paper: str, experiment: str, method: str) -> str:
        """Return the flags of what a run reads."""
        return flags(self.run_files(paper, experiment, method))

    # --- Figures and tables ---

    def artefact(self, paper: str, artefact: str) -> Mapping[str, Any]:
        """Return an artefact's entry; one that is no target is a `ConfigError`."""
        try:
            return settings.artefacts(self.config[paper])[artefact]
        except KeyError:
            raise ConfigError(f"paper {paper} has no artefact {artefact}") from None

    def artefact_names(self, kind: str) -> set[str]:
        """Return the names of the figures or the tables of all papers."""
        sections = [settings.artefacts(self.config[paper]) for paper in self.papers]
        return {name for section in sections for name, entry in section.items() if entry["kind"] == kind}

    def artefact_outputs(self, paper: str, folder: str | None = None) -> dict[str, str]:
        """Return every file of every artefact of a paper by keys such as ``fig1.csv``."""
        return {
            f"{name}.{suffix}": self.in_figures(f"{folder or paper}/{name}.{suffix}")
            for name, entry in settings.artefacts(self.config[paper]).items()
            for suffix in _SUFFIXES[entry["kind"]]
        }

    def artefact_files(self, *papers: str) -> list[str]:
        """Return all files of all artefacts of papers."""
        return [file for paper in papers for file in self.artefact_outputs(paper).values()]

    def artefact_inputs(self, paper: str, artefact: str) -> dict[str, Any]:
        """Return what an artefact is made from."""
        entry = self.artefact(paper, artefact)
        modules = "replifed.papers.jobs:artefact", part(paper, f"{entry['kind']}s")
        return {
            "files": self.files_of(paper, *settings.artefact_keys(entry)),
            "source": self.source(*modules),
        }

    def artefact_settings(self, paper: str, artefact: str) -> str:
        """Return an artefact's settings as JSON."""
        self.artefact(paper, artefact)
        return canonical_json(settings.settings_for("artefact", self.config[paper], artefact))

    def artefact_flags(self, paper: str, artefact: str) -> str:
        """Return the flags of what an artefact is made from."""
        return self.inputs_flag(paper, settings.artefact_keys(self.artefact(paper, artefact)))

    # --- Claims ---

    def claims_inputs(self, paper: str) -> dict[str, Any]:
        """Return what a paper's claims are measured on."""
        modules = "replifed.papers.jobs:measure_claims", part(paper, "claims")
        keys = settings.claim_keys(self.config[paper])
        return {"files": self.files_of(paper, *keys), "source": self.source(*modules)}

    def claims_settings(self, paper: str) -> str:
        """Return the settings that a paper's claims are measured with as JSON."""
        return canonical_json(settings.settings_for("claims", self.config[paper]))

    def claims_flags(self, paper: str) -> str:
        """Return the flags of what a paper's claims are measured on."""
        return self.inputs_flag(paper, settings.claim_keys(self.config[paper]))

    def errata_source(self, paper: str) -> list[str]:
        """Return the sources of a paper's errata, which are made from nothing else."""
        return self.source("replifed.papers.jobs:measure_errata", part(paper, "errata"))

    def timed_figures(self) -> dict[str, str]:
        """Return the CSVs of the figures that show measured seconds, by paper and name."""
        return {
            f"{paper}/{name}": self.in_figures(f"{paper}/{name}.csv")
            for paper in self.papers
            for name in settings.artefacts(self.config[paper])
            if name.endswith("_seconds")
        }

    def timing_outputs(self) -> list[str]:
        """Return the file of the claims on seconds, if any paper has such."""
        return [self.in_results("claims_timing.csv")] if self.timed_figures() else []

    def timing_inputs(self) -> dict[str, Any]:
        """Return what the claims on seconds are measured on."""
        papers = dict.fromkeys(key.split("/")[0] for key in self.timed_figures())
        modules = [part(paper, "claims") for paper in papers]
        return {
            "files": list(self.timed_figures().values()),
            "source": self.source("replifed.papers.jobs:measure_timing", *modules),
        }

    def timing_flags(self) -> str:
        """Return the flags of what the claims on seconds are measured on."""
        given = [f"{key}={file}" for key, file in self.timed_figures().items()]
        return " ".join(["--inputs", *map(shlex.quote, given)])

    # --- Report and manifest ---

    def report_settings(self) -> str:
        """Return what the report shows beside claims and pictures: the artefacts, and those not computed."""
        keys = ("artefacts", "not_computed", "only")
        papers = {
            name: {key: self.config[name][key] for key in keys if key in self.config[name]}
            for name in self.papers
        }
        return canonical_json({"papers": self.papers, **papers})

    def manifest_files(self) -> list[str]:
        """Return all files that rules read or write, but for logs, benchmarks and measured seconds."""
        files = [file for file in self.artefact_files(*self.papers) if "_seconds." not in file]
        for paper in self.papers:
            keys = [*settings.claim_keys(self.config[paper]), *self._earlier_keys(paper)]
            files += self.files_of(paper, *keys)
            files += [self.in_results(f"{paper}/{name}.csv") for name in ("claims", "errata")]
        for dataset in settings.used_datasets(self.config):
            files += [self.in_data(f"raw/{dataset}.json"), self.parsed(dataset)]
        files += [self.in_results(name) for name in ("claims.csv", "report.html")]
        return list(dict.fromkeys(files))

    def _earlier_keys(self, paper: str) -> list[str]:
        """Return the keys of the searches and the partitions before the runs that artefacts read."""
        keys = []
        for key in settings.claim_keys(self.config[paper]):
            kind, _, name = key.partition(":")
            experiment = name.partition("/")[0]
            section = self.experiment(paper, experiment)
            if kind == "run" and "tuning" in section:
                keys.append(f"tuned:{name}")
            if "partition" in section:
                keys.append(f"partition:{experiment}")
        return keys

    def raw_folders(self) -> list[str]:
        """Return the folders of the downloaded files."""
        return [self.in_data(f"raw/{dataset}") for dataset in settings.used_datasets(self.config)]

    def verified_folders(self) -> list[str]:
        """Return the folders in which nothing may lie that no job made."""
        papers = [folder for name in self.papers for folder in (self.in_results(name), self.in_figures(name))]
        return [*papers, *self.raw_folders(), self.in_data("parsed")]

    def closing_line(self) -> str:
        """Say how many of the data sets in use are not the papers' own, and where the report is."""
        from replifed.data.commands import not_original, status_rows

        used = settings.used_datasets(self.config)
        known = [name for name in used if Path(self.in_data(f"raw/{name}.json")).is_file()]
        parts = [not_original(status_rows(self.in_data("raw"), known))] if known else []
        report = self.in_results("report.html")
        if Path(report).is_file():
            parts.append(f"report: {report}")
        return "; ".join(parts)
