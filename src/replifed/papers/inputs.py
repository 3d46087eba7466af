"""Inputs of an artefact or a claim: histories, tuned settings, partitions and data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from replifed.errors import ReplifedError
from replifed.parts import typed
from replifed.store.histories import read_history, read_tuned

# As `perturbed.PERTURBED`; not imported, since no figure or table is made anew for a change of the engine.
PERTURBED = ("of_start", "of_step")


class Inputs:
    """Files of one paper by key, loaded on demand and once, and the settings of the artefact or the claims.

    Parameters
    ----------
    files : dict
        Paths by key: "run:EXPERIMENT/METHOD", "tuned:EXPERIMENT/METHOD", "partition:EXPERIMENT" (a list of
        the partition and its table) and "data:EXPERIMENT".
    settings : dict, optional
        What the job is given: "seed", "experiments" by name, and, of an artefact, its own "artefact".
    paper : str
        Whose classes the settings have.
    """

    def __init__(
        self, files: dict[str, list[Path]], settings: dict[str, Any] | None = None, paper: str = ""
    ) -> None:
        self._files, self._settings, self._paper = files, settings or {}, paper
        self.run = cache(self._run)
        self.partition = cache(self._partition)
        self.data = cache(self._data)
        self.experiment = cache(self._experiment)

    def of_perturbed(self) -> list[Inputs]:
        """Inputs with what either perturbed run recorded in the place of each run, where it was stored."""
        return [self._changed(partial(_of_perturbed, which=which)) for which in PERTURBED]

    def with_perturbed(self) -> list[Inputs]:
        """Inputs of the runs alone whose perturbed runs were kept: they, and either perturbed run's."""
        kept = self._changed(_with_perturbed)
        return [kept, *kept.of_perturbed()]

    def _changed(self, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Inputs:
        """Inputs with changed histories."""
        moved = Inputs(self._files, self._settings, self._paper)
        moved.run = cache(lambda *names: change(self.run(*names)))
        return moved

    def _path(self, key: str, suffix: str) -> Path:
        for path in self._files.get(key, []):
            if path.suffix == suffix:
                return path
        raise ReplifedError(
            f"this step was given no {suffix} file for {key!r}; add it to the artefact's inputs"
        )

    @property
    def seed(self) -> int:
        """The seed of the paper."""
        return self._settings["seed"]

    @property
    def options(self) -> Any:
        """The artefact's own settings, as attributes."""
        return SimpleNamespace(**self._settings["artefact"].get("settings", {}))

    def _experiment(self, name: str) -> Any:
        """Settings of an experiment, an object of the paper's class."""
        given = {"seed": self._settings["seed"], **self._settings["experiments"][name]}
        # A split's settings name the repetitions of the search, which may not be read itself.
        if list(given.get("tuning") or ()) == ["replicates"]:
            del given["tuning"]
        return typed(self._paper, given)

    def experiments(self) -> list[str]:
        """Experiments among the inputs, in the order given."""
        names = (key.split(":", 1)[1].split("/")[0] for key in self._files)
        return list(dict.fromkeys(names))

    def runs(self) -> list[tuple[str, str]]:
        """Experiment and method of each history among the inputs: sorted experiments, methods as given."""
        return self._pairs("run")

    def histories(self) -> Iterator[pd.DataFrame]:
        """Yield the histories of `runs`, each with its experiment as a column."""
        for experiment, method in self.runs():
            yield self.run(experiment, method).assign(experiment=experiment)

    def searches(self) -> list[tuple[str, str]]:
        """Experiment and method of each search among the inputs: sorted experiments, methods as given."""
        return self._pairs("tuned")

    def _pairs(self, kind: str) -> list[tuple[str, str]]:
        keys = (key.removeprefix(f"{kind}:") for key in self._files if key.startswith(f"{kind}:"))
        pairs = [(experiment, method) for experiment, _, method in (key.partition("/") for key in keys)]
        return sorted(pairs, key=itemgetter(0))

    def methods(self, experiment: str) -> list[str]:
        """Methods whose histories of `experiment` are among the inputs."""
        return [method for name, method in self.runs() if name == experiment]

    def has(self, key: str) -> bool:
        """True if `key` is among the inputs."""
        return key in self._files

    def _run(self, experiment: str, method: str):
        return read_history(self._path(f"run:{experiment}/{method}", ".parquet"))[0]

    def tuned(self, experiment: str, method: str) -> dict[str, Any]:
        """Outcome of the step-size search."""
        return read_tuned(self._path(f"tuned:{experiment}/{method}", ".json"), method)

    def _partition(self, experiment: str):
        from replifed.partition.store import load

        return load(self._path(f"partition:{experiment}", ".npz"))

    def partition_table(self, experiment: str):
        """The partition's table of clients."""
        return pd.read_csv(self._path(f"partition:{experiment}", ".csv"))

    def _data(self, experiment: str):
        from replifed.data.table import load

        return load(self._path(f"data:{experiment}", ".npz"))

    def data_kind(self, experiment: str) -> tuple[str, str]:
        """Kind of an experiment's data (`claims.claim.DATA_KINDS`), and what a picture says of them."""
        runs = self.methods(experiment)
        searched = [method for name, method in self.searches() if name == experiment]
        if runs:
            data = read_history(self._path(f"run:{experiment}/{runs[0]}", ".parquet"))[1]["data"]
        elif searched:
            data = self.tuned(experiment, searched[0])["meta"]["data"]
        else:
            data = self.partition(experiment).meta["data"]
        return data["kind"], data["stamp"]


def _perturbed(history: pd.DataFrame) -> list[str]:
    """Metrics of which perturbed runs were kept."""
    return [name.removesuffix(f".{PERTURBED[0]}") for name in history if name.endswith(f".{PERTURBED[0]}")]


def _of_perturbed(history: pd.DataFrame, which: str) -> pd.DataFrame:
    """A history with metrics of perturbed runs in place of its own; runs without stay, and stay chaotic."""
    metrics = _perturbed(history)
    if not metrics:
        return history
    there = history[f"{metrics[0]}.{which}"].notna()
    moved = {name: history[f"{name}.{which}"].where(there, history[name]) for name in metrics}
    return history.assign(**moved, chaotic=history["chaotic"] & ~there)


def _with_perturbed(history: pd.DataFrame) -> pd.DataFrame:
    """Lines of the runs whose perturbed runs were kept; all lines where none were."""
    metrics = _perturbed(history)
    if not metrics:
        return history
    kept = history[history[f"{metrics[0]}.{PERTURBED[0]}"].notna()]
    return history if kept.empty else kept
