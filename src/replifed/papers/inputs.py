"""What an artefact or a claim may look at: histories, tuned settings, partitions and data."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from replifed.errors import ReplifedError
from replifed.store.histories import read_history
from replifed.store.tuned import read_tuned

# As `twins.TWINS`; not imported, since no figure or table is made anew for a change of the engine.
TWINS = ("of_start", "of_step")


class Inputs:
    """Files of one paper by key, loaded on demand and once, and the settings of the artefact or the claims.

    Keys are "run:EXPERIMENT/METHOD", "tuned:EXPERIMENT/METHOD", "partition:EXPERIMENT" (a list of the
    partition and its table), "data:EXPERIMENT" and "artefact:NAME".
    """

    def __init__(self, files: dict[str, list[Path]], settings: dict[str, Any] | None = None) -> None:
        self._files, self.settings = files, settings or {}
        self.run = cache(self._run)
        self.partition = cache(self._partition)
        self.data = cache(self._data)
        self.artefact = cache(self._artefact)

    def of_twins(self) -> list[Inputs]:
        """The same, with what either twin recorded in the place of each run, where that was kept."""
        found = []
        for twin in TWINS:
            moved = Inputs(self._files, self.settings)
            moved.run = cache(lambda *names, twin=twin: _of_twin(self.run(*names), twin))
            found.append(moved)
        return found

    def _path(self, key: str, suffix: str) -> Path:
        for path in self._files.get(key, []):
            if path.suffix == suffix:
                return path
        raise ReplifedError(
            f"this step was given no {suffix} file for {key!r}; add it to the artefact's inputs"
        )

    def experiments(self) -> list[str]:
        """Experiments among the inputs, in the order given."""
        names = (key.split(":", 1)[1].split("/")[0] for key in self._files)
        return list(dict.fromkeys(names))

    def methods(self, experiment: str) -> list[str]:
        """Methods whose histories of `experiment` are among the inputs."""
        return self._methods("run", experiment)

    def _methods(self, kind: str, experiment: str) -> list[str]:
        prefix = f"{kind}:{experiment}/"
        return [key.removeprefix(prefix) for key in self._files if key.startswith(prefix)]

    def has(self, key: str) -> bool:
        """Whether `key` is among the inputs."""
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

    def _artefact(self, name: str):
        """The CSV of a figure."""
        return pd.read_csv(self._path(f"artefact:{name}", ".csv"), keep_default_na=False, na_values=["nan"])

    def data_kind(self, experiment: str) -> tuple[str, str]:
        """Kind of an experiment's data (`claims.claim.DATA_KINDS`), and what a picture says of them."""
        run, tuned = (self._methods(kind, experiment) for kind in ("run", "tuned"))
        if run:
            data = read_history(self._path(f"run:{experiment}/{run[0]}", ".parquet"))[1]["data"]
        elif tuned:
            data = self.tuned(experiment, tuned[0])["meta"]["data"]
        else:
            data = self.partition(experiment).meta["data"]
        return data["kind"], data["stamp"]


def _of_twin(history: pd.DataFrame, twin: str) -> pd.DataFrame:
    metrics = [name.removesuffix(f".{twin}") for name in history if name.endswith(f".{twin}")]
    if not metrics:
        return history
    there = history[f"{metrics[0]}.{twin}"].notna()
    moved = {name: history[f"{name}.{twin}"].where(there, history[name]) for name in metrics}
    return history.assign(**moved, chaotic=history["chaotic"] & ~there)
