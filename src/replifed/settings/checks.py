"""Checking a merged configuration: each key by itself, and values that must fit together."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, create_model

from replifed.algorithms.registry import METHODS, register
from replifed.data.catalogue import CATALOGUE
from replifed.errors import ConfigError, shown, unknown_name
from replifed.parts import COMPARE, paper_names, section_of
from replifed.settings import comparison, fields, main, partitions
from replifed.settings.messages import Error, errors_in, line, schema_of
from replifed.settings.reading import (
    MAIN_FILE,
    PAPER_FOLDER,
    deep_merge,
    listed_papers,
    paper_file,
    project,
    read_file,
)
from replifed.store.atomic import write_text

# Settings that stand in no file of ours.
_COMMAND_LINE, _MODULE = "what follows --config", "the `config` of the module"
# Targets of no single paper; papers list their artefacts under `retired`.
_TARGETS = {"claims_timing": "seconds are those of one machine; other claims count the work"}


def configuration_of(papers: Sequence[str]) -> type[fields.Settings]:
    """Return the class of a configuration that has sections of `papers`."""
    known = paper_names()
    one: Any = Literal[tuple(known)]
    described = "papers to replicate; each has a file config/papers/<paper>.yaml"
    sections: dict[str, Any] = {
        paper: (section_of(paper), Field(description=f"experiments and artefacts of {paper}"))
        for paper in papers
    }
    sections["papers"] = (fields.Several[one], Field(default_factory=lambda: known, description=described))
    return create_model("Configuration", __base__=main.Main, **sections)


def write_schema(out: Path) -> None:
    """Write the JSON schema from which editors complete and check the files in ``config/``."""
    schema = schema_of(configuration_of(paper_names()))
    # No file holds all sections: each has a file of its own.
    del schema["required"]
    write_text(out, json.dumps(schema, indent=1) + "\n")


def load(
    configfiles: Sequence[str | os.PathLike[str]] = (),
    root: str | os.PathLike[str] = ".",
    given: Mapping[str, Any] | None = None,
    beside: Path | None = None,
    *,
    as_module: bool = False,
) -> dict[str, Any]:
    """Read and check the configuration, for the workflow and for commands.

    Parameters
    ----------
    configfiles : overrides such as ``config/small.yaml``, laid in this order over all other files.
    root : folder with ``config/``; any of its files may be missing, and any key of ``config.yaml``.
    given : content of ``--config``, laid over all files.
    beside : folder with the files that stand in for missing ones; default: those that came with the package.
    as_module : if another workflow uses this one as a module. Then `given` is what it hands over, and root's
        ``config.yaml`` is its own and not read.
    """
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ConfigError(f"{_MODULE}: {shown(given)} is not allowed; expected a mapping")
    folders = [Path(root), beside or project() or Path(root)]
    own, main = (folder / MAIN_FILE for folder in folders)
    files = [*([own] if own.exists() and not as_module else []), *map(Path, configfiles)]
    overrides = [read_file(file) for file in files]
    content = read_file(main)
    paper_folders = [folder / PAPER_FOLDER for folder in folders]
    listed = {"papers": listed_papers(deep_merge(content, *overrides, given), *paper_folders)}
    papers = [paper_file(paper, *paper_folders) for paper in listed["papers"]]
    merged = deep_merge(content, *map(read_file, papers), *overrides, given, listed)
    return validate(merged, [main, *papers, *files, given], _MODULE if as_module else _COMMAND_LINE)


def validate(
    config: Mapping[str, Any], sources: Sequence[Path | Mapping[str, Any]] = (), origin: str = _COMMAND_LINE
) -> dict[str, Any]:
    """Return a checked copy of a merged configuration, with defaults, without papers that are not listed.

    `sources` are the files that were merged, in this order, and the content of what `origin` names. They are
    read only to say which of them to correct: a `ConfigError` has one line for each error.
    """
    known = paper_names()
    listed = config.get("papers", known)
    # If the list itself is wrong, all sections are checked.
    papers = [paper for paper in known if paper in (listed if isinstance(listed, list) else config)]
    # Overrides such as config/small.yaml hold parts of the sections of papers that may not be listed.
    config = {
        key: value for key, value in config.items() if key in papers or (key not in known and key != COMPARE)
    }
    config = comparison.with_offered(config)
    configuration = configuration_of(papers)
    errors: list[Error] = []
    try:
        config = configuration.model_validate(config).plain()
    except ValidationError as error:
        errors = errors_in(error, configuration, known)
    errors += _section_errors({paper: config.get(paper) for paper in papers}, [path for path, _ in errors])
    errors = errors or [*comparison.errors(config), *_custom_methods(config["methods"])]
    if errors:
        lines = dict.fromkeys(line(path, text, sources, origin) for path, text in errors)
        raise ConfigError("\n".join(lines))
    compared = comparison.comparison(config)
    return config if compared is None else {**config, COMPARE: compared}


def dataset(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked settings of one custom data set, with defaults."""
    from replifed.data.own import form_of

    try:
        checked = main.CustomDataset.model_validate(dict(given)).plain()
        errors = [*partitions.dataset_errors(checked, form_of(checked), named=False, requested=True)]
    except ValidationError as error:
        found = errors_in(error, main.CustomDataset, ())
        errors = [(".".join(map(str, path)), text) for path, text in found]
    if errors:
        raise ConfigError("; ".join(f"{key}: {text}" for key, text in errors))
    return checked


def _custom_methods(methods: Mapping[str, str]) -> Iterator[Error]:
    """Register custom methods; yield the errors in them."""
    if methods:
        from replifed.contract import first_error

        for name, source in methods.items():
            if text := first_error(source):
                yield ("methods", name), text
        register(methods)


def _section_errors(sections: Mapping[str, Any], broken: Sequence[tuple]) -> list[Error]:
    """Return errors that no key shows by itself; values at paths that are `broken` are not looked at."""
    errors: list[Error] = []
    for paper, section in sections.items():
        if isinstance(section, Mapping):
            found = [*_paper_errors(paper, section, broken)]
            # A method with a mistaken name would be called undrawn as well.
            errors += found or ([] if broken else _undrawn(paper, section))
    return errors


def _paper_errors(paper: str, section: Mapping[str, Any], broken: Sequence[tuple]) -> Iterator[Error]:
    def sound(*path: str) -> bool:
        full = (paper, *path)
        return not any(one[: len(full)] == full[: len(one)] for one in broken)

    kinds = (section.get("experiments"), section.get("artefacts"))
    experiments, artefacts = (one if isinstance(one, dict) else {} for one in kinds)
    whole = {name: one for name, one in experiments.items() if sound("experiments", name)}
    for name, experiment in whole.items():
        for path, text in _experiment_errors(experiment):
            yield (paper, "experiments", name, *path), text
    for name, artefact in artefacts.items():
        if sound("artefacts", name):
            for path, text in _artefact_errors(artefact, experiments):
                yield (paper, "artefacts", name, *path), text
    for name in section.get("only", ()) if sound("only") else ():
        if name not in artefacts:
            yield (paper, "only"), unknown_artefact(paper, section, name, artefacts)


def _undrawn(paper: str, section: Mapping[str, Any]) -> Iterator[Error]:
    """Yield methods that no figure shows, of experiments of which some figure shows others."""
    figures = [
        one.get("runs", {})
        for one in section["artefacts"].values()
        if one["kind"] == "figure" and not one.get("summary")
    ]
    for name, experiment in section["experiments"].items():
        drawn = {method for runs in figures for method in runs.get(name, ())}
        where = f"list it in {paper}.artefacts, under runs.{name} of a figure"
        for method in experiment["methods"] if drawn else ():
            if method not in drawn:
                path = (paper, "experiments", name, "methods")
                yield path, f"{method} is run, but no figure shows it; {where}"


def _experiment_errors(experiment: Mapping[str, Any]) -> Iterator[Error]:
    for method in experiment["methods"]:
        if method not in METHODS and "logs" not in experiment:  # logs have methods of their own
            yield ("methods",), unknown_name("method", method, METHODS)
    for method in experiment.get("split", ()):
        if method not in METHODS:
            yield ("split",), unknown_name("method", method, METHODS)
    dataset = experiment.get("dataset")
    if dataset is not None and dataset not in CATALOGUE:
        yield ("dataset",), unknown_name("data set", dataset, CATALOGUE)
    limits: list[tuple[Any, str, tuple[str, ...]]] = [
        (_weights(experiment), "number of weights", ("sparsity", "planted")),
        (experiment.get("samples"), "samples of a client", ("batch", "first_batch", "positives")),
        (
            experiment.get("agents", experiment.get("clients")),
            "number of clients",
            ("cohort", "cohorts", "active"),
        ),
        (experiment.get("rounds"), "rounds of a run", ("tail",)),
    ]
    for limit, name, keys in limits:
        for key in keys:
            given = experiment.get(key)
            for value in given if isinstance(given, list) else [given]:
                if isinstance(limit, int) and isinstance(value, int | float) and value > limit:
                    yield (key,), f"{value} is not allowed; expected at most {limit} ({name})"
    yield from _repetition_errors(experiment)


def _weights(experiment: Mapping[str, Any]) -> int | None:
    """Return the number of weights of an experiment's models, if it is known."""
    dataset = experiment.get("dataset")
    if dataset is None or dataset not in CATALOGUE:
        return experiment.get("features")
    counts = CATALOGUE[dataset].counts
    if experiment.get("loss") != "softmax":
        return counts.features
    return counts.features * counts.classes if counts.features and counts.classes else None


def _repetition_errors(experiment: Mapping[str, Any]) -> Iterator[Error]:
    """Yield repetitions that are both tuned on and reported."""
    tuned = experiment.get("tuning", {}).get("replicates", ())
    reported = {*experiment.get("replicates", ()), *experiment.get("full_batch_replicates", ())}
    if names := ", ".join(map(str, sorted(reported.intersection(tuned)))):
        text = f"expected none of the reported repetitions, but {names} would be both tuned on and reported"
        yield ("tuning", "replicates"), f"{shown(tuned)} is not allowed; {text}"


# Keys of an artefact that name experiments; the key that such an experiment has, and what it then does.
_READ = {
    "runs": ("", ""),
    "tuned": ("tuning", "tunes"),
    "partitions": ("partition", "splits a data set between clients"),
}


def _artefact_errors(artefact: Mapping[str, Any], experiments: Mapping[str, Any]) -> Iterator[Error]:
    sections = {name: one for name, one in experiments.items() if isinstance(one, dict)}
    for kind, (needed, does) in _READ.items():
        read = artefact.get(kind, {})
        for name in read:
            if name not in experiments:
                yield (kind,), unknown_name("experiment", name, experiments)
            if name not in sections:
                continue
            known: Any = sections[name].get("methods")
            # A misspelt method of the experiment has an error already, and artefacts may repeat it.
            logs = "logs" in sections[name]
            texts = isinstance(known, list) and all(isinstance(method, str) for method in known)
            sound = texts and (logs or all(method in METHODS for method in known))
            for method in read[name] if isinstance(read, Mapping) and sound else ():
                if method not in known:
                    yield (kind, name), unknown_name("method of this experiment", method, map(str, known))
            if needed and needed not in sections[name]:
                fit = ", ".join(other for other, section in sections.items() if needed in section)
                yield (kind,), f"{shown(name)} is not allowed; expected an experiment that {does}: {fit}"


def retired(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a line for each target that is no longer made, by all names that it had."""
    lines = {name: f"{name} is no longer made: {why}" for name, why in _TARGETS.items()}
    for paper in config["papers"]:
        for artefact, why in config[paper].get("retired", {}).items():
            names = f"{paper}/{artefact}", f"{paper}_{artefact}"  # the latter, of those on demand
            lines |= dict.fromkeys(names, f"{paper}/{artefact} is no longer made: {why}")
    return lines


def unknown_artefact(paper: str, section: Mapping[str, Any], artefact: str, known: Iterable[str]) -> str:
    """Say that an artefact of a paper is none of the `known`, or that it is no longer made."""
    line = retired({"papers": [paper], paper: section}).get(f"{paper}/{artefact}")
    return line or unknown_name(f"artefact of {paper}", artefact, known)
