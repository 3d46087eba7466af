"""Where the files of the workflow lie, and how a command line names them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from replifed.errors import ConfigError


class Files:
    """Files under one checked configuration.

    A key names what a paper's jobs make: "run:EXPERIMENT/METHOD", "tuned:EXPERIMENT/METHOD",
    "partition:EXPERIMENT" (two files), and "data:EXPERIMENT" for its parsed data set.

    Parameters
    ----------
    config : mapping
        From `replifed.settings.validate`.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    @property
    def papers(self) -> list[str]:
        """Names of the listed papers."""
        return self.config["papers"]

    def in_data(self, path: str) -> str:
        """Return a file of the data sets, which all scales share."""
        return f"{self.config['paths']['data']}/{path}"

    def in_results(self, path: str) -> str:
        """Return a file of the results."""
        return f"{self.config['paths']['results']}/{path}"

    def in_figures(self, path: str) -> str:
        """Return a file of the figures and tables."""
        return f"{self.config['paths']['figures']}/{path}"

    def in_logs(self, path: str) -> str:
        """Return the log of a job."""
        return f"logs/{self.config['scale']}/{path}.log"

    def in_benchmarks(self, path: str) -> str:
        """Return what Snakemake measures of a job."""
        return self.in_results(f"benchmarks/{path}.tsv")

    def parsed(self, dataset: str) -> str:
        """Return a parsed data set."""
        return self.in_data(f"parsed/{dataset}.npz")

    def experiment(self, paper: str, experiment: str) -> Mapping[str, Any]:
        """Return an experiment's section; an unknown one is a `ConfigError`."""
        try:
            return self.config[paper]["experiments"][experiment]
        except KeyError:
            raise ConfigError(f"paper {paper} has no experiment {experiment}") from None

    def files_of(self, paper: str, *keys: str) -> list[str]:
        """Return the files of keys."""
        return [file for key in keys for file in self._files_of(paper, key)]

    def _files_of(self, paper: str, key: str) -> list[str]:
        kind, _, name = key.partition(":")
        if kind == "data":
            return [self.parsed(self.experiment(paper, name)["dataset"])]
        suffixes = {
            "run": [".parquet"],
            "tuned": [".tuned.json"],
            "partition": ["/partition.npz", "/partition.csv"],
        }
        return [self.in_results(f"{paper}/{name}{suffix}") for suffix in suffixes[kind]]

    def inputs_flag(self, paper: str, keys: list[str]) -> str:
        """Return ``--inputs KEY=FILE ...``, or nothing where there are no keys."""
        pairs = [f"{key}={file}" for key in keys for file in self.files_of(paper, key)]
        return " ".join(["--inputs", *map(shlex.quote, pairs)]) if pairs else ""


def flags(files: Mapping[str, str]) -> str:
    """Return ``--NAME FILE ...``.

    >>> flags({"data": "a b.npz", "tuned": "fedht.tuned.json"})
    "--data 'a b.npz' --tuned fedht.tuned.json"
    """
    return " ".join(f"--{name} {shlex.quote(file)}" for name, file in files.items())


def pairs(files: Mapping[str, str]) -> str:
    """Return ``KEY=FILE ...``.

    >>> pairs({"run:mnist": "mnist/fedht.parquet"})
    'run:mnist=mnist/fedht.parquet'
    """
    return " ".join(shlex.quote(f"{key}={file}") for key, file in files.items())


def one_of(names: Any) -> str:
    """Return a pattern of names. Of no name at all it matches nothing: an empty pattern would match all.

    >>> one_of(["fedmm", "fedht"]), one_of([])
    ('fedht|fedmm', '(?!)')
    """
    return "|".join(sorted(names)) or "(?!)"
