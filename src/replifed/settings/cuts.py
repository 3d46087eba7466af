"""Subsets of the configuration: the settings that one job depends on, so that only real changes rerun it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from replifed.errors import ConfigError
from replifed.settings.reading import deep_merge


def artefacts(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the artefacts that `all` makes: all but those on demand, or those that ``only`` names."""
    every, only = paper_config["artefacts"], paper_config.get("only")
    if only is not None:
        return {name: one for name, one in every.items() if name in only}
    return {name: one for name, one in every.items() if "on_demand" not in one}


def makeable(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return all artefacts that can be made, those on demand too."""
    every = paper_config["artefacts"]
    return artefacts(paper_config) | {name: one for name, one in every.items() if "on_demand" in one}


def artefact_keys(artefact: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that an artefact is made from.

    >>> artefact_keys({"kind": "figure", "runs": {"mnist": ["fedht"]}, "partitions": ["mnist"]})
    ['run:mnist/fedht', 'partition:mnist', 'data:mnist']
    """
    keys = [
        f"{kind}:{experiment}/{method}"
        for kind, key in (("run", "runs"), ("tuned", "tuned"))
        for experiment, methods in artefact.get(key, {}).items()
        for method in methods
    ]
    split = artefact.get("partitions", ())
    return [*keys, *(f"{kind}:{name}" for name in split for kind in ("partition", "data"))]


def artefacts_keys(paper_config: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that all artefacts of a paper are made from."""
    keys = [key for artefact in artefacts(paper_config).values() for key in artefact_keys(artefact)]
    return list(dict.fromkeys(keys))


def claim_keys(paper_config: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that claims are measured on: those of artefacts, but no parsed data."""
    return [key for key in artefacts_keys(paper_config) if not key.startswith("data:")]


def used_experiments(artefact: Mapping[str, Any]) -> list[str]:
    """Return the experiments that an artefact reads, in order of first mention."""
    names = [*artefact.get("runs", {}), *artefact.get("tuned", {}), *artefact.get("partitions", ())]
    return list(dict.fromkeys(names))


def shown_experiments(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the experiments that targets read, without their searches."""
    used = _read_by_targets(paper_config)
    return {
        name: {key: value for key, value in one.items() if key not in _NOT_SHOWN}
        for name, one in paper_config["experiments"].items()
        if name in used
    }


def used_datasets(config: Mapping[str, Any]) -> list[str]:
    """Return the data sets that the targets of all listed papers need, sorted."""
    sections = [config[paper] for paper in config["papers"]]
    used = [section["experiments"][name] for section in sections for name in _read_by_targets(section)]
    return sorted({one["dataset"] for one in used if "dataset" in one})


def _read_by_targets(paper_config: Mapping[str, Any]) -> set[str]:
    return {name for artefact in artefacts(paper_config).values() for name in used_experiments(artefact)}


def groups(paper_config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return by method the experiments on which one job tunes and runs it, if ``together`` is true.

    Experiments that no target reads, and those that wait for a pilot, are not grouped.
    """
    by_method: dict[str, list[str]] = {}
    used = _read_by_targets(paper_config) if paper_config.get("together") is True else ()
    for name, experiment in paper_config["experiments"].items():
        for method in experiment["methods"] if name in used and "pilot" not in experiment else ():
            by_method.setdefault(method, []).append(name)
    return by_method


def with_pilots(experiments: Mapping[str, Any]) -> dict[str, Any]:
    """Return experiments, and for each that has a pilot another one, of the pilot's repetitions.

    >>> with_pilots({"a": {"rounds": 9, "replicates": [1, 2, 3], "pilot": [101, 102]}})["a_pilot"]
    {'rounds': 9, 'replicates': [101, 102]}
    """
    dropped = ("pilot", "twin_replicates")  # all repetitions of a pilot have perturbed runs
    pilots = {
        f"{name}{PILOT}": {key: value for key, value in one.items() if key not in dropped}
        | {"replicates": one["pilot"]}
        for name, one in experiments.items()
        if "pilot" in one
    }
    return {**experiments, **pilots}


def artefacts_settings(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return `settings_for` step "artefact" by artefact, each with the keys of its ``inputs``, in order."""
    return {
        name: {**settings_for("artefact", paper_config, name), "inputs": artefact_keys(artefact)}
        for name, artefact in artefacts(paper_config).items()
    }


# Settings of reported runs that tuning does not use.
_REPORTED_ONLY = (
    *("replicates", "full_batch_replicates", "twin_replicates"),
    *("rounds", "baseline_rounds", "full_batch_rounds", "record_every", "objective_every"),
)
# Settings that change no number by themselves: the list of methods, the memory that a job declares, and a
# pilot, whose runs are an experiment with its own settings.
_NO_RESULT = ("methods", "memory_mb", "pilot")
# Settings that the report does not show of an experiment.
_NOT_SHOWN = ("methods", "memory_mb", "tuning", "twin_replicates")
# Ending of the experiments that `with_pilots` adds.
PILOT = "_pilot"


def settings_for(step: str, paper_config: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
    """Return the settings that a job depends on, and no others.

    Steps "partition", "tune" and "run" get those of the experiment called `name`: a partition its own keys,
    a search no methods and nothing that only reported runs use, a run no methods and no ``tuning``.
    "artefact" gets the artefact called `name`, "claims" all artefacts, with the settings of the steps that
    made the files which they read.
    """
    seed = {"seed": paper_config["seed"]}
    if step in ("artefact", "claims"):
        one = paper_config["artefacts"][name] if step == "artefact" else None
        chosen = {} if one else artefacts(paper_config)
        entries = {"artefact": one} if one else {"artefacts": chosen}
        read = _read_settings([one] if one else chosen.values(), paper_config)
        return {**seed, **entries, "experiments": read}
    experiment = dict(paper_config["experiments"][name])
    tuning = experiment.pop("tuning", None)
    if step == "partition":
        split = {key: experiment[key] for key in ("dataset", "partition", "replicates")}
        return {**seed, **split, **({"tuning": {"replicates": tuning["replicates"]}} if tuning else {})}
    dropped = {"tune": (*_REPORTED_ONLY, *_NO_RESULT), "run": _NO_RESULT}[step]
    settings = {**seed, **{key: value for key, value in experiment.items() if key not in dropped}}
    if step == "tune":
        if tuning is None:
            raise ConfigError(f"experiment {name} has no section `tuning`, so nothing can be tuned")
        settings["tuning"] = tuning
    return settings


def _read_settings(chosen: Iterable[Mapping[str, Any]], paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return for each experiment the settings of every step whose files `chosen` artefacts read."""
    steps = {"runs": "run", "tuned": "tune", "partitions": "partition"}
    read: dict[str, Any] = {}
    for artefact in chosen:
        for key, step in steps.items():
            for name in artefact.get(key, ()):
                settings = settings_for(step, paper_config, name)
                del settings["seed"]
                read[name] = deep_merge(read.get(name, {}), settings)
    return read
