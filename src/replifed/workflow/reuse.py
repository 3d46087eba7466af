"""Built-in methods of a comparison, taken from the reference run where it would come out the same anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from replifed.algorithms.registry import METHODS
from replifed.errors import DataError
from replifed.parts import COMPARED, part
from replifed.runs.opened import Run
from replifed.settings.comparison import comparison
from replifed.settings.needs import settings_for
from replifed.store import hashes
from replifed.store.atomic import replacing
from replifed.store.histories import read_history
from replifed.store.provenance import canonical_json, source_hash
from replifed.workflow.jobs import files


class Reused(NamedTuple):
    """Runs that were taken, as "EXPERIMENT/METHOD", and why the others were not, by method."""

    runs: list[str]
    reasons: dict[str, str]


def reuse(config: Mapping[str, Any], reference: Run, make: Callable[[list[str]], int]) -> Reused:
    """Copy the reference's runs of the comparison of `config` to a folder of their own among the results.

    A run is taken if it is not made yet, and its settings, its sources, its data and their split are those of
    the reference. `make` makes files of the workflow, such as the split; it returns a status.
    """
    section = comparison(config) or {"experiments": {}}
    runs: list[str] = []
    reasons: dict[str, str] = {}
    for experiment, one in section["experiments"].items():
        if experiment not in config[COMPARED]["experiments"]:
            continue
        # What is custom, or installed, or made already, has no place here.
        names = [
            method
            for method in one["methods"]
            if f"histories/{COMPARED}/{experiment}/{method}.parquet" in reference
            and not _made(config, f"run:{COMPARED}/{experiment}/{method}").is_file()
        ]
        reason = _of_the_split(config, experiment, one, reference, make) if names else ""
        for method in names:
            if why := reason or _of_the_run(config, experiment, method, reference):
                reasons[method] = why
            else:
                _copy(config, experiment, method, reference)
                runs.append(f"{experiment}/{method}")
    return Reused(runs, reasons)


def _of_the_split(
    config: Mapping[str, Any],
    experiment: str,
    one: Mapping[str, Any],
    reference: Run,
    make: Callable[[list[str]], int],
) -> str:
    """Say why no run on an experiment is taken: its clients hold other samples than the reference's."""
    if "partition" not in one:
        return ""
    file = _made(config, f"partition:{COMPARED}/{experiment}")
    if not file.is_file() and make([str(file)]):
        return "its data could not be split"
    digest = hashes.file_hash(file)
    listed = {
        row["sha256"]
        for row in reference.rows("manifest.csv")
        if row["file"].endswith(f"/{COMPARED}/{experiment}/partition.npz")
    }
    return "" if digest in listed else "other data, or other clients"


def _of_the_run(config: Mapping[str, Any], experiment: str, method: str, reference: Run) -> str:
    """Say why a run is not taken; "" if it would come out the same."""
    name = f"histories/{COMPARED}/{experiment}/{method}.parquet"
    try:
        _, meta = read_history(Path(name), reference.read(name))
    except DataError as error:
        return str(error)
    settings = settings_for("run", config[COMPARED], experiment)
    if canonical_json(settings) != canonical_json(meta["settings"]):
        changed = [
            key for key in {**settings, **meta["settings"]} if settings.get(key) != meta["settings"].get(key)
        ]
        return f"other settings: {', '.join(changed)}"
    if meta["data"]["kind"] not in ("original", "synthetic"):
        return f"the reference has {meta['data']['kind']} data"
    now = {
        module: source_hash(module)
        for module in (METHODS[method].split(":")[0], part(COMPARED, "experiments"))
    }
    changed = [module for module, digest in now.items() if meta["source"].get(module) != digest]
    return f"other sources: {', '.join(changed)}" if changed else ""


def _copy(config: Mapping[str, Any], experiment: str, method: str, reference: Run) -> None:
    for kind, end, suffix in (("histories", ".parquet", ".parquet"), ("tuned", ".json", ".tuned.json")):
        name = f"{kind}/{COMPARED}/{experiment}/{method}{end}"
        if name in reference:
            file = _made(config, f"lent:{experiment}/{method}{suffix}")
            content = reference.read(name)
            if (
                not file.is_file() or file.read_bytes() != content
            ):  # else its time stays, and no figure is made anew
                with replacing(file) as temporary:
                    temporary.write_bytes(content)
            hashes.record([file])


def _made(config: Mapping[str, Any], key: str) -> Path:
    """Return the first file that a job makes."""
    kind, _, name = key.partition(":")
    return Path(files(kind, name, config["paths"])[0])
