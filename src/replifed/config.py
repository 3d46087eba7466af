"""Configuration: reading, checking, and cutting out what one job needs.

The JSON Schema files in ``config/schemas`` are the single truth for keys, types, ranges and
defaults. What a schema cannot say (names that must exist elsewhere, numbers that must fit
together) is checked here. All faults are reported together, one line each, before any job starts.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from replifed.errors import ConfigError, unknown_name

MAIN_FILE = Path("config/config.yaml")
PAPER_FOLDER = Path("config/papers")
SCHEMA_FOLDER = Path("config/schemas")
_MAIN_SCHEMA = "config.schema.yaml"


# --- Reading -------------------------------------------------------------------------------------


def load(
    configfiles: Sequence[str | os.PathLike[str]] = (), root: str | os.PathLike[str] = "."
) -> dict[str, Any]:
    """Read and check the configuration as the workflow does.

    Parameters
    ----------
    configfiles : sequence of path-like
        Overrides such as ``config/small.yaml``, merged in this order over the files of the workflow.
    root : path-like
        The folder that holds ``config/``.
    """
    root = Path(root)
    overrides = [_read(Path(file)) for file in configfiles]
    config = deep_merge(_read(root / MAIN_FILE), *overrides)
    for paper in paper_names(config, root / PAPER_FOLDER):
        config = deep_merge(config, _read(root / PAPER_FOLDER / f"{paper}.yaml"), *overrides)
    return validate(config, root / SCHEMA_FOLDER)


def deep_merge(base: Mapping[str, Any], *overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `overrides` laid over it: mappings merge, everything else is replaced.

    >>> deep_merge({"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}})
    {'a': {'b': 1, 'c': [3]}}
    """
    merged = copy.deepcopy(dict(base))
    for override in overrides:
        for key, value in override.items():
            if isinstance(value, Mapping):
                below = merged.get(key)
                merged[key] = deep_merge(below if isinstance(below, Mapping) else {}, value)
            else:
                merged[key] = copy.deepcopy(value)
    return merged


def retyped(value: Any) -> Any:
    """Return `value` with its texts read as YAML, so that "7" becomes 7.

    Snakemake takes every value inside ``--config 'key={inner: 7}'`` for a text.
    """
    if isinstance(value, Mapping):
        return {key: retyped(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [retyped(entry) for entry in value]
    if not isinstance(value, str):
        return value

    import yaml

    try:
        read = yaml.load(value, Loader=_loader())
    except yaml.YAMLError:
        return value
    return read if isinstance(read, int | float | bool) or value in ("null", "~") else value


def paper_names(config: Mapping[str, Any], folder: str | os.PathLike[str]) -> list[str]:
    """Return the papers that `config` lists, each of which must have a file in `folder`."""
    papers = config.get("papers", [])
    if not isinstance(papers, list) or not all(isinstance(paper, str) for paper in papers):
        raise ConfigError(f"papers: {_show(papers)} is not allowed; expected a list of names")
    known = sorted(file.stem for file in Path(folder).glob("*.yaml"))
    faults = [f"papers: {unknown_name('paper', paper, known)}" for paper in papers if paper not in known]
    if faults:
        raise ConfigError("\n".join(faults))
    return papers


def _read(file: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=_loader())
    except FileNotFoundError:
        raise ConfigError(
            f"{file} does not exist; run from the folder that holds config/, or correct the name"
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: expected a mapping at the top, got {_show(content)}")
    return content


def _loader() -> Any:
    import yaml

    # The C parser is ten times faster, and every workflow call parses the schemas.
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# --- Checking ------------------------------------------------------------------------------------


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
        from replifed.algorithms.registry import METHODS as methods  # noqa: N811
    if datasets is None:
        from replifed.data.catalogue import CATALOGUE as datasets  # noqa: N811

    schema = _schema(Path(schema_dir))
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
            lines.extend(_paper_faults(paper, filled[paper], broken, methods, datasets))
    if lines:
        raise ConfigError("\n".join(dict.fromkeys(lines)))
    for paper in sections:
        if paper not in papers:
            filled.pop(paper, None)
    return filled


class _Schema:
    """The schema files, and what can be read off them about any place in a configuration."""

    def __init__(self, folder: Path) -> None:
        import jsonschema
        import referencing

        schemas = {file.name: _read(file) for file in sorted(folder.glob("*.schema.yaml"))}
        if _MAIN_SCHEMA not in schemas:
            raise ConfigError(
                f"{folder / _MAIN_SCHEMA} does not exist; run from the folder that holds config/"
            )
        registry = referencing.Registry().with_resources(
            (name, referencing.Resource.from_contents(schema)) for name, schema in schemas.items()
        )
        self._root = schemas[_MAIN_SCHEMA]
        self._resolver = registry.resolver(_MAIN_SCHEMA)
        self._validator = jsonschema.Draft202012Validator(self._root, registry=registry)

    def sections(self) -> list[str]:
        """Return the top-level keys that are papers."""
        return [key for key, below in self._root["properties"].items() if "$ref" in below]

    def faults(self, config: Mapping[str, Any]) -> list[tuple[tuple, str]]:
        """Return the path and the line of every fault, in the order of the paths."""
        found = []
        for error in self._validator.iter_errors(config):
            found.extend(self._explain(error, config))
        return sorted(found, key=lambda fault: [str(part) for part in fault[0]])

    def fill(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of `config` with the schema's defaults where a key is absent."""
        return self._filled(copy.deepcopy(dict(config)), [(self._root, self._resolver)])

    # A place in the schema is a list of (subschema, resolver) pairs that all apply there.

    def _expand(self, schema: Any, resolver: Any, value: Any) -> Iterator[tuple[dict, Any]]:
        if not isinstance(schema, dict):
            return
        yield schema, resolver
        if "$ref" in schema:
            target = resolver.lookup(schema["$ref"])
            yield from self._expand(target.contents, target.resolver, value)
        for branch in schema.get("allOf", ()):
            if "if" not in branch:
                yield from self._expand(branch, resolver, value)
            elif self._validator.evolve(schema=branch["if"]).is_valid(value):
                yield from self._expand(branch.get("then"), resolver, value)

    def _below(self, places: list[tuple[dict, Any]], value: Any, key: Any) -> list[tuple[dict, Any]]:
        found = []
        for start, start_resolver in places:
            for schema, resolver in self._expand(start, start_resolver, value):
                if isinstance(key, int):
                    below = schema.get("items")
                else:
                    below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
                if isinstance(below, dict):
                    found.append((below, resolver))
        return found

    def _entry(self, entry: Any, places: list[tuple[dict, Any]], value: Any, key: Any) -> Any:
        # There is nothing to fill in here, and looking for it takes half a second on lists of repetitions.
        if entry is None or isinstance(entry, int | str):
            return entry
        return self._filled(entry, self._below(places, value, key))

    def _filled(self, value: Any, places: list[tuple[dict, Any]]) -> Any:
        if isinstance(value, dict):
            expanded = [schema for start in places for schema, _ in self._expand(*start, value)]
            for key in dict.fromkeys(key for schema in expanded for key in schema.get("properties", {})):
                below = self._below(places, value, key)
                if (
                    key not in value
                    and (default := self._first(below, None, "default", _ABSENT)) is not _ABSENT
                ):
                    value[key] = copy.deepcopy(default)
            return {key: self._entry(entry, places, value, key) for key, entry in value.items()}
        if isinstance(value, list):
            return [self._entry(entry, places, value, index) for index, entry in enumerate(value)]
        if (
            isinstance(value, float)
            and value.is_integer()
            and self._first(places, value, "type") == "integer"
        ):
            return int(value)  # JSON Schema takes 5.0 for an integer; Python's range() does not
        return value

    def _first(self, places: list[tuple[dict, Any]], value: Any, keyword: str, default: Any = None) -> Any:
        for start in places:
            for schema, _ in self._expand(*start, value):
                if keyword in schema:
                    return schema[keyword]
        return default

    def _explain(self, error: Any, config: Any) -> Iterator[tuple[tuple, str]]:
        path, value = tuple(error.absolute_path), error.instance
        if error.validator == "additionalProperties" and isinstance(value, dict):
            known = error.schema.get("properties", {})
            for key in value:
                if key not in known:
                    yield (*path, key), f"{_dotted((*path, key))}: {_unknown_key(key, value[key], known)}"
        elif error.validator == "required":
            for key in error.validator_value:
                if key not in value:
                    places = self._at((*path, key), config)
                    yield (
                        (*path, key),
                        f"{_dotted((*path, key))}: missing; expected {self._allowed(places, None)}",
                    )
        elif error.validator == "anyOf":
            keys = [key for branch in error.validator_value for key in branch.get("required", ())]
            if keys:
                text = f"{_show(value)} lacks its source; expected at least one of the keys {', '.join(keys)}"
            else:
                text = f"{_show(value)} is not allowed"
            yield path, f"{_dotted(path)}: {text}"
        elif error.parent is not None or "propertyNames" in error.absolute_schema_path:
            pattern = error.schema.get("description", "another name")
            yield (
                (*path, value),
                f"{_dotted((*path, value))}: {_show(value)} is not a valid name; expected {pattern}",
            )
        else:
            places = self._at(path, config)
            text = f"{_show(value)} is not allowed; expected {self._allowed(places, value)}"
            yield path, f"{_dotted(path)}: {text}{_hint(error, value)}"

    def _at(self, path: tuple, config: Any) -> list[tuple[dict, Any]]:
        places, value = [(self._root, self._resolver)], config
        for key in path:
            places = self._below(places, value, key)
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                value = None
        return places

    def _allowed(self, places: list[tuple[dict, Any]], value: Any) -> str:
        """Say in words what the schema allows at a place."""
        rules: dict[str, Any] = {}
        for start in places:
            for schema, _ in self._expand(*start, value):
                rules = {**schema, **rules}
        if "enum" in rules:
            text = f"one of {', '.join(map(str, rules['enum']))}"
        else:
            types = rules.get("type", [])
            text = (
                " or ".join(_TYPES[name] for name in ([types] if isinstance(types, str) else types))
                or "a value"
            )
        for keyword, words in _LIMITS.items():
            if keyword in rules and not (keyword == "minLength" and rules[keyword] == 1):
                text += words.format(rules[keyword])
        if rules.get("uniqueItems"):
            text += ", without repeats"
        return f"{text} ({rules['description']})" if "description" in rules else text


@cache
def _schema(folder: Path) -> _Schema:
    return _Schema(folder)


_ABSENT = object()
_TYPES = {
    "integer": "an integer",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_LIMITS = {
    "minimum": " of at least {}",
    "exclusiveMinimum": " above {}",
    "maximum": " of at most {}",
    "minLength": " of at least {} letters",
    "minItems": ", at least {} long",
    "maxItems": ", at most {} long",
    "minProperties": " with at least {} key",
}


def _dotted(path: Iterable[Any]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the configuration"


def _show(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _unknown_key(key: Any, value: Any, known: Iterable[str]) -> str:
    near = get_close_matches(str(key), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if "." in str(key):
        outer, _, inner = str(key).rpartition(".")
        hint = f"; nested keys are written --config '{outer.replace('.', '={')}={{{inner}: ...}}'"
    return f"unknown key with value {_show(value)}{hint} (known: {', '.join(sorted(known))})"


def _hint(error: Any, value: Any) -> str:
    if error.validator == "enum" and isinstance(value, str):
        near = get_close_matches(
            value, [name for name in error.validator_value if isinstance(name, str)], n=1
        )
        return f"; did you mean {near[0]!r}?" if near else ""
    if error.validator == "type" and isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return ""
        return "; YAML reads this as text: drop the quotes, and write 1e-3 as 1.0e-3"
    return ""


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


def _experiment_faults(
    experiment: Mapping[str, Any], methods: Collection[str], datasets: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for method in experiment["methods"]:
        if method not in methods:
            yield "methods", unknown_name("method", method, methods)

    def at_most(key: str, limit: int | None, what: str) -> Iterator[tuple[str, str]]:
        if limit is not None and key in experiment and experiment[key] > limit:
            yield key, f"{experiment[key]} is not allowed; expected at most {limit} ({what})"

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

    tuning = experiment.get("tuning")
    if tuning:
        reported = {*experiment["replicates"], *experiment.get("full_batch_replicates", ())}
        if shared := sorted(reported.intersection(tuning["replicates"])):
            yield (
                "tuning.replicates",
                f"{_show(tuning['replicates'])} is not allowed; expected none of the reported repetitions, "
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
                    f"{_show(name)} is not allowed; expected an experiment that tunes: {', '.join(tuned)}",
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
                f"{_show(name)} is not allowed; expected an experiment that deals a data set to clients: "
                f"{', '.join(real)}",
            )


# --- Cutting out what one job needs --------------------------------------------------------------


def artefacts(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the artefacts that are targets: all, or those that ``only`` names."""
    only = paper_config.get("only")
    return {name: value for name, value in paper_config["artefacts"].items() if only is None or name in only}


def artefact_keys(artefact: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that an artefact is made from.

    >>> artefact_keys({"kind": "figure", "runs": {"mnist": ["fedht"]}, "partitions": ["mnist"]})
    ['run:mnist/fedht', 'partition:mnist', 'data:mnist']
    """
    keys = []
    for kind, key in (("run", "runs"), ("tuned", "tuned")):
        for experiment, methods in artefact.get(key, {}).items():
            keys.extend(f"{kind}:{experiment}/{method}" for method in methods)
    for experiment in artefact.get("partitions", ()):
        keys.extend(f"{kind}:{experiment}" for kind in ("partition", "data"))
    return keys


def claim_keys(paper_config: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that the claims of a paper are measured on.

    They are those of its artefacts, without the data itself.
    """
    keys = [key for artefact in artefacts(paper_config).values() for key in artefact_keys(artefact)]
    return [key for key in dict.fromkeys(keys) if not key.startswith("data:")]


def used_experiments(artefact: Mapping[str, Any]) -> list[str]:
    """Return the experiments that an artefact reads, in order of first mention."""
    names = [*artefact.get("runs", {}), *artefact.get("tuned", {}), *artefact.get("partitions", ())]
    return list(dict.fromkeys(names))


def used_datasets(config: Mapping[str, Any]) -> list[str]:
    """Return the data sets that the targets of all listed papers need, sorted."""
    used = set()
    for paper in config["papers"]:
        section = config[paper]
        for artefact in artefacts(section).values():
            for name in used_experiments(artefact):
                used.update({section["experiments"][name].get("dataset")} - {None})
    return sorted(used)


# Settings of reported runs that tuning has no use for.
_REPORTED_ONLY = (
    "replicates",
    "full_batch_replicates",
    "rounds",
    "baseline_rounds",
    "full_batch_rounds",
    "record_every",
)
# Settings that change no number: which methods there are, and the memory that a job declares.
_NO_RESULT = ("methods", "memory_mb")


def settings_for(step: str, paper_config: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
    """Return the settings that a job depends on and no others, so that only real changes rerun it.

    Parameters
    ----------
    step : {"partition", "tune", "run", "artefact", "claims"}
        What the job does.
    paper_config : mapping
        The validated section of the paper.
    name : str
        The experiment, or for step "artefact" the artefact; not used by step "claims".

    Returns
    -------
    dict
        For the first three steps the experiment's settings and ``seed`` side by side. "partition"
        keeps only ``dataset``, ``partition``, ``replicates`` and ``tuning.replicates``; "tune" drops
        ``methods`` and what only reported runs use; "run" drops ``methods`` and ``tuning``.
        For "artefact" ``seed``, ``artefact`` (its entry) and ``experiments`` (those it reads, as the
        steps that made its files saw them); for "claims" ``seed``, ``artefacts`` and ``experiments``.
    """
    seed = {"seed": paper_config["seed"]}
    if step == "artefact":
        artefact = paper_config["artefacts"][name]
        return {
            **seed,
            "artefact": copy.deepcopy(artefact),
            "experiments": _read_settings([artefact], paper_config),
        }
    if step == "claims":
        chosen = artefacts(paper_config)
        return {
            **seed,
            "artefacts": copy.deepcopy(chosen),
            "experiments": _read_settings(list(chosen.values()), paper_config),
        }
    experiment = copy.deepcopy(dict(paper_config["experiments"][name]))
    tuning = experiment.pop("tuning", None)
    if step == "partition":
        kept = {key: experiment[key] for key in ("dataset", "partition", "replicates")}
        return {**seed, **kept, **({"tuning": {"replicates": tuning["replicates"]}} if tuning else {})}
    if step == "tune":
        if tuning is None:
            raise ConfigError(f"experiment {name} has no section `tuning`, so nothing can be tuned")
        for key in (*_REPORTED_ONLY, *_NO_RESULT):
            experiment.pop(key, None)
        return {**seed, **experiment, "tuning": tuning}
    if step == "run":
        for key in _NO_RESULT:
            experiment.pop(key, None)
        return {**seed, **experiment}
    raise ValueError(f"unknown step {step!r}")


def _read_settings(chosen: Sequence[Mapping[str, Any]], paper_config: Mapping[str, Any]) -> dict[str, Any]:
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
