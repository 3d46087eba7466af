"""Checking a merged configuration: each key by itself, and what must fit together."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, create_model

from replifed.algorithms.registry import METHODS, register
from replifed.data.catalogue import CATALOGUE
from replifed.errors import ConfigError, shown, unknown_name
from replifed.parts import COMPARE, paper_names, part
from replifed.settings import comparison, fields
from replifed.settings.cuts import PILOT, with_pilots
from replifed.settings.faults import Fault, dotted, faults_in, file_to_edit, schema_of
from replifed.settings.reading import (
    MAIN_FILE,
    PAPER_FOLDER,
    deep_merge,
    listed_papers,
    paper_file,
    read_file,
)
from replifed.settings.retired import unknown_artefact
from replifed.store.atomic import write_text


def configuration_of(papers: Sequence[str]) -> type[fields.Settings]:
    """Return the class of a configuration that has sections of `papers`."""
    known = paper_names()
    one: Any = Literal[tuple(known)]
    described = "papers to replicate; each has a file config/papers/<paper>.yaml"
    sections: dict[str, Any] = {
        paper: (_section_of(paper), Field(description=f"experiments and artefacts of {paper}"))
        for paper in papers
    }
    sections["papers"] = (fields.Several[one], Field(default_factory=lambda: known, description=described))
    return create_model("Configuration", __base__=fields.Main, **sections)


def _section_of(paper: str) -> type[fields.Section]:
    """Return ``Section`` of the paper's module ``settings``, or one whose experiments may hold anything.

    A paper without that module is not imported: every call of Snakemake would wait for it.
    """
    module = part(paper, "settings")
    free = fields.Paper[fields.FreeExperiment, fields.ArtefactWith[dict[str, Any]]]
    return getattr(import_module(module), "Section", free) if module.endswith(".settings") else free


def typed(paper: str, given: Mapping[str, Any]) -> fields.Experiment:
    """Return the settings that a job of a paper is `given` as an object of the paper's class."""
    return _section_of(paper).of_job(given)


def write_schema(out: Path) -> None:
    """Write the JSON schema from which editors complete and check the files in ``config/``."""
    schema = schema_of(configuration_of(paper_names()))
    # Every file holds a part: sections have files of their own.
    del schema["required"]
    write_text(out, json.dumps(schema, indent=1) + "\n")


def load(
    configfiles: Sequence[str | os.PathLike[str]] = (), root: str | os.PathLike[str] = "."
) -> dict[str, Any]:
    """Read and check the configuration as the workflow does.

    `configfiles` are overrides such as ``config/small.yaml``, merged in this order over the files of the
    workflow; `root` is the folder that holds ``config/``.
    """
    main, folder = Path(root, MAIN_FILE), Path(root, PAPER_FOLDER)
    files = [Path(file) for file in configfiles]
    overrides = [read_file(file) for file in files]
    config = deep_merge(read_file(main), *overrides)
    config["papers"] = listed_papers(config, folder)
    papers = [paper_file(paper, folder) for paper in config["papers"]]
    config = deep_merge(
        config,
        *(content for file in papers for content in (read_file(file), *overrides)),
        {"papers": config["papers"]},  # with one's own, which no file lists
    )
    return validate(config, [main, *papers, *files])


def validate(config: Mapping[str, Any], sources: Sequence[Path | Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return a checked copy of a merged configuration, with defaults, without papers that are not listed.

    `sources` are what it was merged from, in this order: files, and for ``--config`` what it holds. They are
    read only to say which of them to edit: a `ConfigError` has one line for each fault.
    """
    known = paper_names()
    config = {key: value for key, value in config.items() if key != COMPARE}
    # Where the list itself is a fault, all sections that are there are checked.
    listed = config.get("papers", known)
    papers = [paper for paper in known if paper in (listed if isinstance(listed, list) else config)]
    # Overrides such as config/small.yaml hold parts of the sections of papers that may not be listed.
    config = {key: value for key, value in config.items() if key in papers or key not in known}
    config = comparison.with_offered(config)
    configuration = configuration_of(papers)
    faults: list[Fault] = []
    try:
        config = configuration.model_validate(config).plain()
    except ValidationError as error:
        faults = faults_in(error, configuration, known)
    broken = [path for path, _ in faults]
    # A fault inside a section must not hide those of its neighbours, nor make their checks stumble.
    for paper in papers:
        if isinstance(config.get(paper), Mapping):
            faults_here = [*_paper_faults(paper, config[paper], broken)]
            if not faults_here and not broken:  # else names that are mistaken would be told twice
                faults_here = [*_undrawn(paper, config[paper])]
            faults += faults_here
    if not faults:
        faults += [*comparison.faults(config), *_own_methods(config["methods"])]
    if faults:
        lines = (
            _told(path, text, sources) + (f"; edit {file_to_edit(path, sources)}" if sources else "")
            for path, text in faults
        )
        raise ConfigError("\n".join(dict.fromkeys(lines)))
    for name in papers:
        config[name]["experiments"] = with_pilots(config[name]["experiments"])
    compared = comparison.comparison(config)
    return config if compared is None else {**config, COMPARE: compared}


def _told(path: tuple, text: str, sources: Sequence[Path | Mapping[str, Any]]) -> str:
    """Say what is wrong where.

    An experiment without `problem` that the paper's own file does not have is a misspelt one of an override.
    """
    match path:
        case (paper, "experiments", name, "problem") if text.startswith("missing; "):
            files = (one for one in sources if isinstance(one, Path) and one == paper_file(paper, one.parent))
            known = next((read_file(one).get(paper, {}).get("experiments") for one in files), None)
            if isinstance(known, Mapping) and name not in known:
                return f"{paper}.experiments: {unknown_name('experiment', str(name), map(str, known))}"
    return f"{dotted(path)}: {text}"


def _own_methods(methods: Mapping[str, str]) -> Iterator[Fault]:
    """Register methods of one's own; yield what is wrong with them."""
    if methods:
        from replifed.contract import first_fault

        for name, source in methods.items():
            if fault := first_fault(source):
                yield ("methods", name), fault
        register(methods)


def _paper_faults(paper: str, section: Mapping[str, Any], broken: Sequence[tuple]) -> Iterator[Fault]:
    """Yield what no key shows by itself; parts that are broken are passed over."""

    def sound(*path: str) -> bool:
        full = (paper, *path)
        return not any(fault[: len(full)] == full[: len(fault)] for fault in broken)

    kinds = (section.get("experiments"), section.get("artefacts"))
    experiments, artefacts = (one if isinstance(one, dict) else {} for one in kinds)
    whole = {name: one for name, one in experiments.items() if sound("experiments", name)}
    # A configuration that has been checked has them.
    pilots = with_pilots({name: one for name, one in whole.items() if not name.endswith(PILOT)})
    for name, experiment in experiments.items():
        if name.endswith(PILOT) and experiment != pilots.get(name):
            yield (paper, "experiments", name), f"names that end in {PILOT} are those of pilots"
    for name, experiment in whole.items():
        for path, text in _experiment_faults(experiment):
            yield (paper, "experiments", name, *path), text
    for name, artefact in artefacts.items():
        if sound("artefacts", name):
            for path, text in _artefact_faults(artefact, experiments):
                yield (paper, "artefacts", name, *path), text
    for name in section.get("only", ()) if sound("only") else ():
        if name not in artefacts:
            yield (paper, "only"), unknown_artefact(paper, section, name, artefacts)


def _undrawn(paper: str, section: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield methods that no figure shows, of experiments of which some figure shows others."""
    drawing = [one for one in section["artefacts"].values() if one["kind"] == "figure"]
    figures = [one.get("runs", {}) for one in drawing if not one.get("summary")]
    for name, experiment in section["experiments"].items():
        drawn = {method for runs in figures for method in runs.get(name, ())}
        where = f"expected in the runs of {name} of a figure in {paper}.artefacts"
        for method in experiment["methods"] if drawn else ():
            if method not in drawn:
                path = (paper, "experiments", name, "methods")
                yield path, f"{method} would be run and not be seen; {where}"


def _experiment_faults(experiment: Mapping[str, Any]) -> Iterator[Fault]:
    for method in experiment["methods"]:
        if method not in METHODS:
            yield ("methods",), unknown_name("method", method, METHODS)

    def at_most(limit: int | None, what: str, *keys: str) -> Iterator[Fault]:
        for key in keys:
            given = experiment.get(key)
            for value in given if isinstance(given, list) else [given]:
                if limit is not None and isinstance(value, int | float) and value > limit:
                    yield (key,), f"{value} is not allowed; expected at most {limit} ({what})"

    parameters, dataset = experiment.get("features"), experiment.get("dataset")
    if dataset is not None and dataset in CATALOGUE:
        counts = CATALOGUE[dataset].counts
        parameters = counts.features
        if experiment.get("loss") == "softmax":
            parameters = parameters * counts.classes if parameters and counts.classes else None
    elif dataset is not None:
        yield ("dataset",), unknown_name("data set", dataset, CATALOGUE)
    clients = experiment.get("agents", experiment.get("clients"))
    yield from at_most(parameters, "number of weights", "sparsity", "planted")
    yield from at_most(experiment.get("samples"), "samples of a client", "batch", "first_batch", "positives")
    yield from at_most(clients, "number of clients", "cohort", "cohorts", "active")
    yield from at_most(experiment.get("rounds"), "rounds of a run", "tail")

    def shared(names: Iterable[int], others: Iterable[int]) -> str:
        return ", ".join(map(str, sorted({*names}.intersection(others))))

    tuned = experiment.get("tuning", {}).get("replicates", ())
    reported = {*experiment.get("replicates", ()), *experiment.get("full_batch_replicates", ())}
    pilot, most = experiment.get("pilot", ()), len(experiment.get("replicates", ()))
    if both := shared(pilot, tuned):
        yield ("pilot",), f"{shown(pilot)} is not allowed; {both} would be tuned on, too"
    if len(pilot) > most:
        yield ("pilot",), f"{shown(pilot)} is not allowed; expected at most {most} (number of `replicates`)"
    unreported = {("tuning", "replicates"): (tuned, "tuned on"), ("pilot",): (pilot, "a pilot")}
    for path, (names, role) in unreported.items():
        if both := shared(names, reported):
            text = f"expected none of the reported repetitions, but {both} would be both {role} and reported"
            yield path, f"{shown(names)} is not allowed; {text}"


# What an artefact may read of an experiment, which key this needs, and what the experiment then does.
_READ = {
    "runs": ("", ""),
    "tuned": ("tuning", "tunes"),
    "partitions": ("partition", "deals a data set to clients"),
}


def _artefact_faults(artefact: Mapping[str, Any], experiments: Mapping[str, Any]) -> Iterator[Fault]:
    sections = {name: one for name, one in experiments.items() if isinstance(one, dict)}
    for kind, (needed, does) in _READ.items():
        read = artefact.get(kind, {})
        for name in read:
            if name not in experiments:
                yield (kind,), unknown_name("experiment", name, experiments)
            if name not in sections:
                continue
            known: Any = sections[name].get("methods")
            # A misspelt method is told once, where it stands: what an artefact asks for is judged after that.
            sound = isinstance(known, list) and all(method in METHODS for method in known)
            for method in read[name] if isinstance(read, Mapping) and sound else ():
                if method not in known:
                    yield (kind, name), unknown_name("method of this experiment", method, map(str, known))
            if needed and needed not in sections[name]:
                fit = ", ".join(other for other, section in sections.items() if needed in section)
                yield (kind,), f"{shown(name)} is not allowed; expected an experiment that {does}: {fit}"
