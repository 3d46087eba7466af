"""The section `compare`: methods of one's own beside built-in ones, on the problems of the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from replifed.algorithms.registry import BUILT_IN, INSTALLED
from replifed.data.catalogue import CATALOGUE, offered
from replifed.errors import unknown_name
from replifed.parts import COMPARED
from replifed.settings.faults import Fault
from replifed.settings.fields import Loss

# Kinds of problems on which every kind of method runs, called by their losses.
_EVERY_METHOD = get_args(Loss)
_FIGURES, _TABLES = ("fig1",), ("table1", "pairs")


def comparison(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a section like a paper's, or None where the papers that are listed have no comparison.

    Its experiments are those of `cross` that `comparison.data` names, by default those on which every kind of
    method runs; their methods are those of `comparison.against`, of installed packages too, by default all
    built-in ones, and those of `methods`.
    """
    if COMPARED not in config:
        return None
    known = problems(config)
    asked, own = config.get("comparison", {}), list(config.get("methods", {}))
    names = asked.get("data") or [name for name, one in known.items() if one["problem"] in _EVERY_METHOD]
    experiments = {}
    for name in names:
        built_in = known[name]["methods"]
        there = [*built_in, *INSTALLED]
        chosen = [method for method in asked.get("against") or built_in if method in there]
        experiments[name] = {**known[name], "methods": [*chosen, *own]}
    runs = {name: one["methods"] for name, one in experiments.items()}
    artefacts: dict[str, Any] = {name: {"kind": "figure", "runs": runs} for name in _FIGURES}
    artefacts |= {name: {"kind": "table", "runs": runs, "tuned": runs} for name in _TABLES}
    return {"seed": config[COMPARED]["seed"], "experiments": experiments, "artefacts": artefacts}


def with_offered(config: Mapping[str, Any]) -> dict[str, Any]:
    """Add the data sets of installed packages that are asked for by name to `datasets`.

    What such an entry says beside its path, such as its loss, stays.
    """
    asked, own = config.get("comparison"), config.get("datasets") or {}
    names = asked.get("data") if isinstance(asked, Mapping) else None
    if not isinstance(own, Mapping) or not isinstance(names, list | None):
        return dict(config)  # a fault, which is told later
    wanted = {*own, *(names or ())}
    found = {}
    for name, source in offered().items() if wanted else ():
        entry = own.get(name, {})
        if name in wanted and isinstance(entry, Mapping) and "path" not in entry:
            module, _, function = source.partition(":")
            spec = find_spec(module)
            if spec is not None and spec.origin:
                found[name] = {"path": f"{spec.origin}:{function}", **entry}
    return {**config, "datasets": {**own, **found}} if found else dict(config)


def problems(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the experiments of `cross`, and one for each data set of one's own, with the same settings."""
    known = config[COMPARED]["experiments"]
    # Those with several ridges count rounds of a few methods.
    known = {name: one for name, one in known.items() if "ridges" not in one}
    model = next(one for one in known.values() if one["problem"] == "logistic")
    own = {}
    for name, one in config.get("datasets", {}).items():
        dealt = {"clusters": "kmeans", "count": one["clients"], "parts": 2, "shards_per_client": 2}
        partition = dealt if one["partition"] == "kmeans" else {"clusters": "given"}
        own[name] = {**model, "problem": one["loss"], "dataset": name, "partition": partition}
    return {**known, **own}


def faults(config: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield names of data sets, methods and papers that there are not, or are already."""
    asked = config.get("comparison", {})
    for name in config.get("methods", {}):
        if name in BUILT_IN:
            yield ("methods", name), f"{name} is a built-in method; give yours another name"
    if COMPARED not in config:
        if asked or config.get("methods"):
            yield ("papers",), f"a comparison needs {COMPARED} among the papers"
        return
    known = problems(config)
    for name in config.get("datasets", {}):
        if name in config[COMPARED]["experiments"] or name in CATALOGUE:
            yield ("datasets", name), f"{name} is a built-in data set; give yours another name"
    yield from _missing_files(config.get("datasets", {}))
    for name in asked.get("data") or ():
        if name not in known:
            yield ("comparison", "data"), unknown_name("problem of the comparison", name, known)
    there = [known[name] for name in asked.get("data") or known if name in known]
    compared = {*INSTALLED, *(method for one in there for method in one["methods"])}
    for name in asked.get("against") or ():
        if there and name not in compared:  # else the data are at fault
            yield ("comparison", "against"), unknown_name("method on these problems", name, compared)


def _missing_files(datasets: Mapping[str, Any]) -> Iterator[Fault]:
    if datasets:
        from replifed.data.own import file_of

        for name, one in datasets.items():
            if not Path(file := file_of(one)).is_file():
                yield ("datasets", name, "path"), f"{file} does not exist; give the file with the data"
