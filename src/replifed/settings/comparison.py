"""The section `compare`: custom methods and built-in ones, on the problems of the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from replifed.algorithms.registry import BUILT_IN, INSTALLED
from replifed.data.catalogue import CATALOGUE, offered
from replifed.errors import unknown_name
from replifed.parts import COMPARED
from replifed.settings.fields import Loss
from replifed.settings.messages import Error

# Kinds of problems that every method can run on, named by their losses.
_EVERY_METHOD = get_args(Loss)


def comparison(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a section like a paper's, or None if the listed papers have no comparison.

    Its experiments are those of `cross` that `comparison.data` names, by default those on which every method
    runs; their methods are those of `comparison.against`, of installed packages too, by default all built-in
    ones, and the custom `methods`.
    """
    if COMPARED not in config:
        return None
    known = problems(config)
    requested, custom = config.get("comparison", {}), list(config.get("methods", {}))
    names = requested.get("data") or [name for name, one in known.items() if one["problem"] in _EVERY_METHOD]
    experiments = {}
    for name in names:
        built_in = known[name]["methods"]
        available = [*built_in, *INSTALLED]
        against = [method for method in requested.get("against") or built_in if method in available]
        experiments[name] = {**known[name], "methods": [*against, *custom]}
    runs = {name: one["methods"] for name, one in experiments.items()}
    table = {"kind": "table", "runs": runs, "tuned": runs}
    artefacts = {"fig1": {"kind": "figure", "runs": runs}, "table1": table, "pairs": table}
    return {"seed": config[COMPARED]["seed"], "experiments": experiments, "artefacts": artefacts}


def with_offered(config: Mapping[str, Any]) -> dict[str, Any]:
    """Add the data sets of installed packages that the comparison names to `datasets`.

    Such an entry may already have other keys than its path, such as its loss.
    """
    requested, custom = config.get("comparison"), config.get("datasets") or {}
    names = requested.get("data") if isinstance(requested, Mapping) else None
    if not isinstance(custom, Mapping) or not isinstance(names, list | None):
        return dict(config)  # the check of these keys follows
    wanted = {*custom, *(names or ())}
    added = {}
    for name, source in offered().items() if wanted else ():
        entry = custom.get(name, {})
        if name in wanted and isinstance(entry, Mapping) and "path" not in entry:
            module, _, function = source.partition(":")
            spec = find_spec(module)
            if spec is not None and spec.origin:
                added[name] = {"path": f"{spec.origin}:{function}", **entry}
    return {**config, "datasets": {**custom, **added}} if added else dict(config)


def problems(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the experiments of `cross`, and one with the same settings for each custom data set."""
    known = config[COMPARED]["experiments"]
    # Those with several ridges count rounds of a few methods.
    known = {name: one for name, one in known.items() if "ridges" not in one}
    model = dict(next(one for one in known.values() if one["problem"] == "logistic"))
    del model["samples"]  # what limits a client's samples is said of the data set itself
    custom = {}
    for name, one in config.get("datasets", {}).items():
        shards = {"clusters": "kmeans", "count": one["clients"], "parts": 2, "shards_per_client": 2}
        partition = shards if one["partition"] == "kmeans" else {"clusters": "given"}
        of_data = {key: one[key] for key in ("weights", "samples") if key in one}
        custom[name] = {**model, "problem": one["loss"], "dataset": name, "partition": partition, **of_data}
    return {**known, **custom}


def errors(config: Mapping[str, Any]) -> Iterator[Error]:
    """Yield names of data sets, methods and papers that are unknown, or taken already."""
    requested, datasets = config.get("comparison", {}), config.get("datasets", {})
    for name in config.get("methods", {}):
        if name in BUILT_IN:
            yield ("methods", name), f"{name} is a built-in method; give yours another name"
    if COMPARED not in config:
        if requested or config.get("methods"):
            yield ("papers",), f"a comparison needs {COMPARED} among the papers"
        return
    known = problems(config)
    for name in datasets:
        if name in config[COMPARED]["experiments"] or name in CATALOGUE:
            yield ("datasets", name), f"{name} is a built-in data set; give yours another name"
    yield from _missing_files(datasets)
    for name in requested.get("data") or ():
        if name not in known:
            yield ("comparison", "data"), unknown_name("problem of the comparison", name, known)
    used = [known[name] for name in requested.get("data") or known if name in known]
    compared = {*INSTALLED, *(method for one in used for method in one["methods"])}
    for name in requested.get("against") or ():
        if used and name not in compared:  # without problems, these have an error already
            yield ("comparison", "against"), unknown_name("method on these problems", name, compared)


def _missing_files(datasets: Mapping[str, Any]) -> Iterator[Error]:
    if datasets:
        from replifed.data.own import file_of

        for name, one in datasets.items():
            if not Path(file := file_of(one)).is_file():
                yield ("datasets", name, "path"), f"{file} does not exist; give the file with the data"
