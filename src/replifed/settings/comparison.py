"""The section `compare`: custom methods and built-in ones, on the problems of the comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, get_args

from replifed.algorithms.registry import BUILT_IN, INSTALLED
from replifed.data.catalogue import CATALOGUE, offered
from replifed.data.generated import FORMS, is_generated, settings_of
from replifed.errors import ConfigError, unknown_name
from replifed.network import times
from replifed.parts import COMPARED
from replifed.settings import cohorts, held_out, partitions, tracks, variations
from replifed.settings.fields import Loss
from replifed.settings.messages import Error

# Kinds of problems that every method can run on, named by their losses.
_EVERY_METHOD = get_args(Loss)
# Problems on data sets of the catalogue that a comparison has if it names them, where they differ from the
# logistic ones; and samples of a client, at most. Natural clients are drawn in each repetition.
_IMAGES = {"problem": "softmax", "partition": partitions.partition("kmeans")}
_WRITERS = {"problem": "softmax", "partition": partitions.partition("given", 50)}
_TEXTS = {
    "problem": "sparse",
    "dataset": "rcv1_binary",
    "partition": partitions.partition("kmeans"),
    "methods": ["fedavg", "fedprox", "fedavgm", "fedadam_server", "gradient_descent"],
}
OFFERED: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("mnist", "fashion_mnist"), _IMAGES),
    **dict.fromkeys(("mnist_writers", "femnist"), _WRITERS),
    "rcv1": _TEXTS,
}
_SAMPLES = 300
# Problems whose quartiles a box shows.
_BOXES_FROM = 3


def comparison(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a section like a paper's, or None if the listed papers have no comparison.

    Its experiments are those of `cross` that `comparison.data` names, by default those on which every method
    runs; their methods are those of `comparison.against`, of installed packages too, by default all built-in
    ones, and the custom `methods`. One that `comparison` splits between other clients has a name of its own.
    """
    if COMPARED not in config:
        return None
    known = problems(config)
    requested, custom = config.get("comparison", {}), list(config.get("methods", {}))
    experiments, designs = {}, {}
    asked = cohorts.asked_for(requested)
    for name in _data(config, known):
        out = cohorts.left_out(requested, config, [*_against(known[name], requested), *custom])
        against = [method for method in _against(known[name], requested) if method not in out]
        own = [method for method in custom if method not in out]
        changed, whole = cohorts.with_cohort(name, known[name], requested)
        changed, whole = held_out.with_test(changed, whole, requested, config.get("datasets", {}))
        key, problem = partitions.split_anew(changed, whole, requested)
        experiments[key] = {**problem, "methods": [*against, *own]}
        if "vary" in requested:
            designs[key] = variations.Design(changed, whole, requested, [*own, *against])
    runs = {name: one["methods"] for name, one in experiments.items()}
    split = [name for name, one in experiments.items() if "partition" in one]
    artefacts = shown(runs, split, requested.get("time"))
    if split:
        artefacts["partition"] = {"kind": "figure", "partitions": split}
        artefacts["heterogeneity"] = {"kind": "table", "partitions": split}
    if given := [name for name in split if experiments[name]["partition"]["clusters"] == "given"]:
        artefacts["client_names"] = {"kind": "table", "partitions": given}
    if not asked.everyone:
        said = {
            "said": asked.in_words(),
            "left_out": cohorts.reasons(requested, config, _compared(config, known)),
        }
        artefacts["cohorts"] = {"kind": "table", "runs": runs, "settings": said}
    if "test" in requested:
        artefacts["accuracy"] = artefacts["fig1"]
        artefacts["accuracies"] = {**artefacts["accuracy"], "kind": "table"}
    extra = tracks.added(experiments, requested, artefacts)
    if designs:
        varied = {key: one for design in designs.values() for key, one in design.experiments.items()}
        runs = {key: one["methods"] for key, one in varied.items()}
        options = {"designs": {key: design.settings for key, design in designs.items()}}
        artefacts["vary"] = {"kind": "figure", "runs": runs, "settings": options}
        artefacts["vary_axes"] = {"kind": "table", "runs": runs, "settings": options}
        experiments = {**varied, **experiments}
    experiments |= extra
    return {
        "seed": config[COMPARED]["seed"],
        "together": "artefacts",
        "experiments": experiments,
        "artefacts": artefacts,
    }


def shown(
    runs: Mapping[str, list[str]], split: list[str], time: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return the figures and tables of runs, by problem, alone: those that every comparison has.

    `split` are the problems with a partition, which tells the number of clients; `time` what rounds take.
    """
    read: dict[str, Any] = {"runs": runs}
    if time is not None:
        read |= {"settings": {"time": time}, **({"partitions": split} if split else {})}
    figure, table = {"kind": "figure", **read}, {"kind": "table", "tuned": runs, **read}
    artefacts = {"fig1": figure, "paper": figure, "best": table, "table1": table, "pairs": table}
    if time is not None:
        artefacts["where"] = figure
    if len(runs) >= _BOXES_FROM:
        artefacts["boxes"] = {"tuned": runs, **figure}
    return artefacts


def _against(problem: Mapping[str, Any], requested: Mapping[str, Any]) -> list[str]:
    """Return the methods of a problem that are no custom ones: by default all built-in ones."""
    available = [*problem["methods"], *INSTALLED]
    return [method for method in requested.get("against") or problem["methods"] if method in available]


def _compared(config: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Return all methods that the comparison asks for, on any of its problems."""
    requested = config.get("comparison", {})
    there = [known[name] for name in _data(config, known) if name in known]
    named = [method for one in there for method in _against(one, requested)]
    return list(dict.fromkeys([*named, *config.get("methods", {})]))


def _compared_by_class(config: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Return these methods as `method_class` takes them: those of one's own by their sources."""
    own = config.get("methods", {})
    return [own.get(name, name) for name in _compared(config, known)]


def _data(config: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Return the problems of the comparison, which may be misspelt: by default those for every method."""
    every = [name for name, one in known.items() if one["problem"] in _EVERY_METHOD and name not in OFFERED]
    return config.get("comparison", {}).get("data") or every


def with_offered(config: Mapping[str, Any]) -> dict[str, Any]:
    """Add generated data sets, and those of installed packages, that the comparison names to `datasets`.

    The entry of a package's data set may already have other keys than its path, such as its loss.
    """
    requested, custom = config.get("comparison"), config.get("datasets") or {}
    names = requested.get("data") if isinstance(requested, Mapping) else None
    if not isinstance(custom, Mapping) or not isinstance(names, list | None):
        return dict(config)  # the check of these keys follows
    texts = [name for name in names or () if isinstance(name, str)]
    made = {name: settings_of(name) for name in texts if name not in custom and is_generated(name)}
    if made:
        data = [made[name][0] if name in texts and name in made else name for name in names or ()]
        custom = {**dict(made.values()), **custom}
        config = {**config, "comparison": {**requested, "data": data}, "datasets": custom}  # type: ignore[dict-item]
    wanted = {*custom, *texts}
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
    # Cohorts and tests are for a comparison to ask for.
    known = {name: one for name, one in known.items() if "cohort" not in one and "test" not in one}
    model = dict(next(one for one in known.values() if one["problem"] == "logistic"))
    del model["samples"]  # what limits a client's samples is said of the data set itself
    custom = {}
    for name, one in config.get("datasets", {}).items():
        kind, number = one.get("partition", "kmeans"), one.get("clients")
        section = partitions.partition(kind, number, one.get("sizes", "equal"))
        of_data = {key: one[key] for key in ("weights", "samples") if key in one}
        custom[name] = {**model, "problem": one["loss"], "dataset": name, "partition": section, **of_data}
    offered = {name: {**model, "dataset": name, "samples": _SAMPLES, **one} for name, one in OFFERED.items()}
    return {**offered, **known, **custom}


def _too_wide(name: str) -> str:
    """Say why a data set of texts with classes is no problem of the comparison; "" of any other name."""
    counts = CATALOGUE[name].counts if name in CATALOGUE else None
    if counts is None or counts.features is None or (counts.classes or 0) <= 2:
        return ""
    size = 8 * partitions.CLIENTS * _SAMPLES * counts.features / 2**30
    return (
        f"{name} has {counts.classes} classes, whose softmax takes dense features: {size:.1f} GiB a "
        f"repetition of {partitions.CLIENTS} clients with {_SAMPLES} samples of {counts.features:,}; take "
        "rcv1, whose two classes keep them sparse"
    )


def _needs_dense(method: str, problems: Mapping[str, Mapping[str, Any]]) -> str:
    """Say what a method would need on a problem with sparse features; "" if no problem has such."""
    for name, one in problems.items():
        counts = CATALOGUE[one["dataset"]].counts if one["problem"] == "sparse" else None
        if counts and counts.features:
            clients, seeds = partitions.stated(one["partition"])["clients"], len(one["replicates"])
            size = 8 * seeds * clients * one["samples"] * counts.features / 2**30
            return (
                f"{method} needs dense features, which are {size:.0f} GiB on {name} ({seeds} repetitions "
                f"of {clients} clients with {one['samples']} samples of {counts.features:,} features); there "
                f"run {', '.join(one['methods'])}"
            )
    return ""


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
    found = [*_missing_files(datasets)] or [*_client_errors(datasets, "partition" in requested)]
    # Of what is stated alone; each problem's own partition comes below.
    alone = {key: requested[key] for key in partitions.KEYS if key in requested and "partition" in requested}
    found += [(("comparison", key), text) for key, text in partitions.errors(alone)]
    if found:  # no problem can be made of these
        yield from found
        return
    if "time" in requested:
        try:
            times.rates(requested["time"])
        except ConfigError as error:
            yield ("comparison", "time"), str(error)
    known = problems(config)
    for name, one in datasets.items():
        if name in config[COMPARED]["experiments"] or name in CATALOGUE:
            yield ("datasets", name), f"{name} is a built-in data set; give yours another name"
        if "test" in one and held_out.name_of(name) in datasets:
            yield ("datasets", name, "test"), f"{held_out.name_of(name)} is another data set; rename one"
    for name in requested.get("data") or ():
        if name not in known:
            text = unknown_name("problem of the comparison", name, [*known, *FORMS])
            yield ("comparison", "data"), _too_wide(name) or text
    there = {name: known[name] for name in _data(config, known) if name in known}
    used = [known[name] for name in requested.get("data") or known if name in known]
    yield from _unsplittable(requested, there)
    compared = {*INSTALLED, *(method for one in used for method in one["methods"])}
    for name in requested.get("against") or ():
        if used and name not in compared:  # without problems, these have an error already
            text = _needs_dense(name, there) if name in BUILT_IN else ""
            text = text or unknown_name("method on these problems", name, compared)
            yield ("comparison", "against"), text
    if not [name for name in requested.get("against") or () if name not in compared]:
        yield from cohorts.errors(requested, config, there, _compared(config, known) if there else [])
    yield from held_out.errors(requested, there, datasets)
    if not set(requested.get("against") or ()) - compared:
        yield from tracks.errors(requested, _compared_by_class(config, known))
    for one in used if "vary" in requested else ():
        yield from variations.errors(requested, [*config.get("methods", {}), *_against(one, requested)])


def _client_errors(datasets: Mapping[str, Any], requested: bool) -> Iterator[Error]:
    if datasets:
        from replifed.data.own import form_of, names_clients

        for name, one in datasets.items():
            for key, text in partitions.dataset_errors(one, form_of(one), names_clients(one), requested):
                yield ("datasets", name, key), text


def _unsplittable(requested: Mapping[str, Any], problems: Mapping[str, Any]) -> Iterator[Error]:
    """Yield the problems that cannot be split between the clients that the comparison requests."""
    changes = {key: requested[key] for key in partitions.KEYS if key in requested}
    for name, one in problems.items() if changes else ():
        if "partition" not in one:
            yield (
                ("comparison", "data"),
                f"{name} has no samples to split: it is drawn client by client; leave it out",
            )
            continue
        built_in = CATALOGUE.get(one["dataset"])
        for key, text in partitions.errors(changes, partitions.stated(one["partition"])["partition"]):
            yield ("comparison", key), f"{name}: {text}"
        if built_in and changes.get("partition") == "given" and not built_in.natural:
            yield (
                ("comparison", "partition"),
                f"given is not allowed: {name} does not say which client has what",
            )
        if built_in and changes.get("clients", 0) > (rows := built_in.counts.rows or math.inf):
            text = f"{changes['clients']} is not allowed; expected at most {rows} (samples of {name})"
            yield ("comparison", "clients"), text


def _missing_files(datasets: Mapping[str, Any]) -> Iterator[Error]:
    if datasets:
        from replifed.data.own import file_of, is_there

        for name, one in datasets.items():
            for key in ("path", "test"):
                if key in one and not is_there(own := {**one, "path": one[key]}):
                    text = f"{file_of(own)} does not exist; give the file with the data"
                    yield ("datasets", name, key), text
