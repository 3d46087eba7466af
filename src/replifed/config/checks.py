"""Checking a merged configuration: what the schema says, and what a schema cannot see."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from replifed.config.reading import PAPER_FOLDER
from replifed.config.schema import schema_in
from replifed.config.wording import shown
from replifed.errors import ConfigError, unknown_name


def validate(
    config: Mapping[str, Any],
    schema_dir: str | os.PathLike[str],
    *,
    methods: Collection[str] | None = None,
    datasets: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Check a merged configuration and fill in the defaults.

    Parameters
    ----------
    config : mapping
        The merged configuration.
    schema_dir : path-like
        Folder of the schema files.
    methods : collection of str, optional
        Known methods; those of the registry by default.
    datasets : mapping, optional
        Known data sets by name; those of the catalogue by default.

    Returns
    -------
    dict
        A copy with defaults filled in and without the sections of papers that are not listed.

    Raises
    ------
    ConfigError
        Its message has one line for each fault.
    """
    if methods is None:
        from replifed.algorithms.registry import METHODS

        methods = METHODS
    if datasets is None:
        from replifed.data.catalogue import CATALOGUE

        datasets = CATALOGUE

    schema = schema_in(Path(schema_dir))
    sections = schema.sections()
    if isinstance(config.get("papers"), list):
        # Overrides such as config/small.yaml hold parts of the sections of papers that may not be listed.
        unlisted = set(sections).difference(map(str, config["papers"]))
        config = {key: value for key, value in config.items() if key not in unlisted}
    faults = schema.faults(config)
    broken = [path for path, _ in faults]
    lines = [line for _, line in faults]
    # A fault inside a section must not hide those of its neighbours, nor make their checks stumble.
    filled = schema.fill(config)
    listed = filled["papers"] if isinstance(filled["papers"], list) else []
    papers = [paper for paper in sections if paper in listed]
    for paper in papers:
        if paper not in filled:
            lines.append(
                f"{paper}: missing; expected the experiments of this paper, from {PAPER_FOLDER}/{paper}.yaml"
            )
        elif isinstance(filled[paper], dict):
            lines.extend(
                [*_paper_faults(paper, filled[paper], broken, methods, datasets)]
                # Those of names that are mistaken would only be told twice.
                or ([] if broken else [*_undrawn(paper, **filled[paper])])
            )
    if lines:
        raise ConfigError("\n".join(dict.fromkeys(lines)))
    for paper in sections:
        if paper not in papers:
            filled.pop(paper, None)
    return filled


def _paper_faults(
    paper: str,
    section: Mapping[str, Any],
    broken: Sequence[tuple],
    methods: Collection[str],
    datasets: Mapping[str, Any],
) -> Iterator[str]:
    """Yield what a schema cannot see; parts that the schema found broken are passed over."""

    def sound(*path: str) -> bool:
        full = (paper, *path)
        return not any(fault[: len(full)] == full or full[: len(fault)] == fault for fault in broken)

    experiments = section.get("experiments")
    experiments = experiments if isinstance(experiments, dict) else {}
    for name, experiment in experiments.items():
        if sound("experiments", name):
            for key, text in _experiment_faults(experiment, methods, datasets):
                yield f"{paper}.experiments.{name}.{key}: {text}"
    artefacts = section.get("artefacts")
    artefacts = artefacts if isinstance(artefacts, dict) else {}
    for name, artefact in artefacts.items():
        if sound("artefacts", name):
            for key, text in _artefact_faults(artefact, experiments):
                yield f"{paper}.artefacts.{name}.{key}: {text}"
    if sound("only"):
        for name in section.get("only", ()):
            if name not in artefacts:
                yield f"{paper}.only: {unknown_name('artefact', name, artefacts)}"


def _undrawn(
    paper: str, experiments: Mapping[str, Any], artefacts: Mapping[str, Any], **_: Any
) -> Iterator[str]:
    """Yield methods that no figure shows, of experiments of which some figure shows others."""
    for name, experiment in experiments.items():
        figures = [artefact for artefact in artefacts.values() if artefact["kind"] == "figure"]
        shown = [set(figure["runs"][name]) for figure in figures if name in figure.get("runs", {})]
        for method in experiment["methods"] if shown else ():
            if method not in set.union(*shown):
                yield (
                    f"{paper}.experiments.{name}.methods: {method} would be run and not be seen; expected in "
                    f"the runs of {name} of a figure in {paper}.artefacts"
                )


def _experiment_faults(
    experiment: Mapping[str, Any], methods: Collection[str], datasets: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for method in experiment["methods"]:
        if method not in methods:
            yield "methods", unknown_name("method", method, methods)

    def at_most(key: str, limit: int | None, what: str) -> Iterator[tuple[str, str]]:
        given = experiment.get(key)
        for value in given if isinstance(given, list) else [given]:
            if limit is not None and value is not None and value > limit:
                yield key, f"{value} is not allowed; expected at most {limit} ({what})"

    parameters = experiment.get("features")
    if "dataset" in experiment:
        name = experiment["dataset"]
        if name in datasets:
            counts = datasets[name].counts
            parameters = counts.features
            if experiment.get("loss") == "softmax":
                parameters = parameters * counts.classes if parameters and counts.classes else None
        else:
            yield "dataset", unknown_name("data set", name, datasets)
        yield from _partition_faults(experiment.get("partition", {}))
    yield from at_most("sparsity", parameters, "number of weights")
    yield from at_most("planted", parameters, "number of weights")
    for key in ("batch", "first_batch", "positives"):
        yield from at_most(key, experiment.get("samples"), "samples of a client")
    for key in ("cohort", "cohorts", "active"):
        yield from at_most(key, experiment.get("agents", experiment.get("clients")), "number of clients")
    yield from at_most("tail", experiment.get("rounds"), "rounds of a run")
    for method, found in experiment.get("searched", {}).items():
        if len(found["steps"]) != len(found["uvp"]):
            yield (
                f"searched.{method}.uvp",
                f"{shown(found['uvp'])} is not allowed; expected one for each step",
            )

    tuning = experiment.get("tuning")
    if tuning:
        reported = {*experiment["replicates"], *experiment.get("full_batch_replicates", ())}
        if shared := sorted(reported.intersection(tuning["replicates"])):
            yield (
                "tuning.replicates",
                f"{shown(tuning['replicates'])} is not allowed; expected none of the reported repetitions, "
                f"but {', '.join(map(str, shared))} would be both tuned on and reported",
            )


def _partition_faults(partition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if partition.get("clusters") == "equal_kmeans" and partition["rows"] % partition["count"]:
        yield (
            "partition.count",
            f"{partition['count']} is not allowed; expected a divisor of the {partition['rows']} rows",
        )
    if "shards_per_client" in partition:
        shards = partition["count"] * partition["parts"]
        if shards % partition["shards_per_client"]:
            yield (
                "partition.shards_per_client",
                f"{partition['shards_per_client']} is not allowed; expected a divisor of the {shards} shards",
            )


def _artefact_faults(
    artefact: Mapping[str, Any], experiments: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for kind in ("runs", "tuned"):
        for name, methods in artefact.get(kind, {}).items():
            experiment = experiments.get(name)
            if experiment is None:
                yield kind, unknown_name("experiment", name, experiments)
                continue
            if not isinstance(experiment, dict):
                continue
            known = experiment.get("methods")
            for method in methods:
                if isinstance(known, list) and method not in known:
                    yield f"{kind}.{name}", unknown_name("method of this experiment", method, map(str, known))
            if kind == "tuned" and "tuning" not in experiment:
                tuned = [
                    key for key, value in experiments.items() if isinstance(value, dict) and "tuning" in value
                ]
                yield (
                    kind,
                    f"{shown(name)} is not allowed; expected an experiment that tunes: {', '.join(tuned)}",
                )
    for name in artefact.get("partitions", ()):
        if name not in experiments:
            yield "partitions", unknown_name("experiment", name, experiments)
        elif isinstance(experiments[name], dict) and "partition" not in experiments[name]:
            real = [
                key for key, value in experiments.items() if isinstance(value, dict) and "partition" in value
            ]
            yield (
                "partitions",
                f"{shown(name)} is not allowed; expected an experiment that deals a data set to clients: "
                f"{', '.join(real)}",
            )
