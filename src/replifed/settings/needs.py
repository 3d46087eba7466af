"""What jobs need of the settings, so that only real changes rerun them: artefacts, files and their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from replifed.errors import ConfigError
from replifed.settings.reading import deep_merge

# Settings of reported runs that tuning does not use.
_REPORTED_ONLY = (
    *("replicates", "full_batch_replicates", "twin_replicates"),
    *("rounds", "baseline_rounds", "full_batch_rounds", "record_every", "objective_every"),
)
# Settings that name reported runs.
_REPETITIONS = ("replicates", "full_batch_replicates")
# Settings that change no number: the list of methods, the memory that a job declares, and the jobs that share
# a run.
_NO_RESULT = ("methods", "memory_mb", "split")
# Settings that the report does not show of an experiment.
_NOT_SHOWN = ("methods", "memory_mb", "split", "tuning", "twin_replicates")


def artefacts(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the artefacts that `all` makes: all but those on demand, or those that ``only`` names."""
    every, only = paper_config["artefacts"], paper_config.get("only")
    if only is not None:
        return {name: entry for name, entry in every.items() if name in only}
    return {name: entry for name, entry in every.items() if "on_demand" not in entry}


def makeable(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return all artefacts that can be made, those on demand too."""
    every = paper_config["artefacts"]
    return artefacts(paper_config) | {name: entry for name, entry in every.items() if "on_demand" in entry}


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
    partitioned = artefact.get("partitions", ())
    return [*keys, *(f"{kind}:{name}" for name in partitioned for kind in ("partition", "data"))]


def claim_keys(paper_config: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that claims are measured on: those of artefacts, but no parsed data."""
    keys = (key for artefact in artefacts(paper_config).values() for key in artefact_keys(artefact))
    return [key for key in dict.fromkeys(keys) if not key.startswith("data:")]


def used_experiments(artefact: Mapping[str, Any]) -> list[str]:
    """Return the experiments that an artefact reads, in order of first mention."""
    names = [*artefact.get("runs", {}), *artefact.get("tuned", {}), *artefact.get("partitions", ())]
    return list(dict.fromkeys(names))


def experiments_read(paper_config: Mapping[str, Any]) -> set[str]:
    """Return the experiments that the targets of a paper read."""
    return {name for artefact in artefacts(paper_config).values() for name in used_experiments(artefact)}


def settings_for(step: str, paper_config: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Return the settings that a job depends on, and no others.

    Steps "partition", "tune" and "run" get those of the experiment called `name`: a partition its own keys,
    a search no methods and nothing that only reported runs use, a run no methods and no ``tuning``.
    "artefact" gets the artefact called `name`, "claims" all artefacts, with the settings of the steps that
    made the files which they read.
    """
    match step:
        case "artefact":
            artefact = paper_config["artefacts"][name]
            settings = {"artefact": artefact, "experiments": _read_settings([artefact], paper_config)}
        case "claims":
            made = artefacts(paper_config)
            settings = {"artefacts": made, "experiments": _read_settings(made.values(), paper_config)}
        case _:
            settings = _experiment_settings(step, name, paper_config["experiments"][name])
    return {"seed": paper_config["seed"], **settings}


def _experiment_settings(step: str, name: str, experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an experiment that its partition, a search or a run depends on."""
    tuning = experiment.get("tuning")
    if step == "partition":
        split = {key: experiment[key] for key in ("dataset", "partition", "replicates")}
        return {**split, **({"tuning": {"replicates": tuning["replicates"]}} if tuning else {})}
    if step == "tune" and tuning is None:
        raise ConfigError(f"experiment {name} has no section `tuning`, so nothing can be tuned")
    dropped = {"tune": (*_REPORTED_ONLY, *_NO_RESULT), "run": ("tuning", *_NO_RESULT)}[step]
    return {key: value for key, value in experiment.items() if key not in dropped}


def _read_settings(read_by: Iterable[Mapping[str, Any]], paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return by experiment the settings of every step whose files the artefacts `read_by` read."""
    steps = {"runs": "run", "tuned": "tune", "partitions": "partition"}
    read: dict[str, Any] = {}
    for artefact in read_by:
        for key, step in steps.items():
            for name in artefact.get(key, ()):
                settings = _experiment_settings(step, name, paper_config["experiments"][name])
                read[name] = deep_merge(read.get(name, {}), settings)
    return read


def share_of_run(settings: Mapping[str, Any], number: int, of: int) -> dict[str, Any]:
    """Return the settings of the share with this `number`, from 1, of `of` that a run's repetitions make.

    Shares follow each other as the repetitions do. Which of these have perturbed runs is as in the whole.

    >>> share_of_run({"twin_replicates": [1], "replicates": [1, 2, 3]}, 1, 2)
    {'twin_replicates': [1], 'replicates': [1]}
    >>> share_of_run({"replicates": [1, 2, 3], "full_batch_replicates": [1]}, 2, 2)
    {'twin_replicates': [1, 2, 3], 'replicates': [2, 3], 'full_batch_replicates': []}
    """
    every, keys = settings["replicates"], [key for key in _REPETITIONS if settings.get(key)]
    first, last = (one * len(every) // of for one in (number - 1, number))
    own = set(every[first:last])
    if number == of:  # of repetitions beyond these the whole run comes last to
        own |= {name for key in keys for name in settings[key]} - set(every)
    named = {key: [name for name in settings[key] if name in own] for key in keys}
    return {"twin_replicates": settings["replicates"], **settings, **named}


def shown_experiments(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the experiments that targets read, without their searches."""
    used = experiments_read(paper_config)
    return {
        name: {key: value for key, value in experiment.items() if key not in _NOT_SHOWN}
        for name, experiment in paper_config["experiments"].items()
        if name in used
    }
