"""`replifed check` and `compare`: custom methods and data, checked, and compared with built-in methods."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    add_command,
    add_small,
    add_snakemake,
    call_snakemake,
    load_config,
    with_small,
)
from replifed.errors import ConfigError, DataError, ReplifedError
from replifed.parts import COMPARED

# Options of `compare` that are keys of the section `comparison`, beside those of cohorts.
_KEYS = ("data", "against", "partition", "clients", "sizes", "everyone", "time", "studies", "untuned")
# Endings of files that are data, whether such a file is there or not.
_ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".npz", ".svm", ".libsvm", ".gz", ".bz2", ".xz")


def add(commands: Any) -> None:
    """Add this command to the parser."""
    check = add_command(
        commands,
        "check",
        _check,
        "Check each part of the contract on a method, your own or one of `replifed list methods`; exits with "
        "status 1 if one is broken. Or read a file with data, and say what to know before a comparison: its "
        "errors, the condition number, units, columns that are no features, classes and clients.",
        "path/to/mine.py:Mine\n  replifed check data.csv label=outcome client=hospital 'drop=[id, day]'",
    )
    check.add_argument("source", metavar="SOURCE", help="FILE:CLASS, the name of a method, or a data file")
    text = "how to read the data: keys of a data set of your own, as in the settings"
    check.add_argument("settings", nargs="*", metavar="KEY=VALUE", help=text)

    compare = add_command(
        commands,
        "compare",
        _compare,
        "Tune and run methods of your own and built-in ones, on the same budget, with Snakemake; draw and "
        "tabulate them under figures/compare. A built-in method that has been run is not run again, nor is "
        "one that the reference run has with the same data, settings and sources.",
        "path/to/mine.py:Mine --data a9a,w8a --against fedavg,fedlin --cores 2",
    )
    compare.add_argument(
        "methods", nargs="*", metavar="[NAME=]FILE:CLASS", help="the name is the class's in small letters"
    )
    text = (
        "problems, default: all logistic ones; also digits, mnist, fashion_mnist, mnist_writers, femnist, "
        "rcv1, synthetic:ALPHA,BETA, and data of your own"
    )
    compare.add_argument("--data", type=_names, metavar="NAMES", help=text)
    compare.add_argument(
        "--against", type=_names, metavar="NAMES", help="built-in methods, default: all on these problems"
    )
    compare.add_argument(
        "--partition",
        metavar="NAME",
        help="how samples are split between clients: kmeans, given, iid, dirichlet:ALPHA, shards:K",
    )
    compare.add_argument("--clients", type=int, metavar="N", help="number of clients, default: the problem's")
    compare.add_argument(
        "--sizes",
        metavar="NAME",
        help="of clients, not with kmeans or given: equal, lognormal:SIGMA",
    )
    text = "clients that take part in a round, such as 10 or 10%%; default: all"
    compare.add_argument("--cohort", type=_number, metavar="K", help=text)
    text = "who can take part: uniform, by-size, markov:ON,OFF (mean rounds there and away), cyclic:GROUPS"
    compare.add_argument("--availability", metavar="LAW", help=text)
    text = "of methods that average with p_i: own, scaled, completed, transformed (Li et al. 2020)"
    compare.add_argument("--average", metavar="NAME", help=text)
    text = "run methods whose papers have no form for cohorts, too, with all clients"
    compare.add_argument("--everyone", action="store_const", const=True, help=text)
    text = "samples kept for accuracy: a share of each client's, such as 20%%; official; or official,20%%"
    compare.add_argument("--test", metavar="SHARE", help=text)
    text = "clients that never take part, such as 2 or 10%%, whose kept samples are tested, too"
    compare.add_argument("--new-clients", type=_number, metavar="K", help=text)
    text = "what searches look at: objective (default), or accuracy on a share of the training samples"
    compare.add_argument("--tune-on", choices=("objective", "accuracy"), help=text)
    text = (
        "time of rounds, computed from what was recorded: phone, hospital or datacentre, and changes, such "
        "as phone,latency=50ms (uplink, downlink, latency, gradient, spread)"
    )
    compare.add_argument("--time", metavar="RATES", help=text)
    text = "repeat each search on other seeds, N in all: median and range of what comes out"
    compare.add_argument("--studies", type=int, metavar="N", help=text)
    text = "run methods at the parameters of their own theory, too, and show both ranks"
    compare.add_argument("--untuned", action="store_const", const=True, help=text)
    compare.add_argument(
        "--vary",
        action="store_true",
        help="repeat the comparison of your method with at most three competitors, under other local steps, "
        "partitions, ridges, targets and float widths: how often yours comes first, and what reverses that",
    )
    text = (
        "take runs from a folder in which a comparison was made, a zip of it, or its address and digest, "
        "https://...#sha256=...; only those that would come out the same; may be repeated"
    )
    compare.add_argument("--from", dest="taken_from", action="append", default=[], metavar="PLACE", help=text)
    text = "run built-in methods here, even if the reference run has them with the same settings and sources"
    compare.add_argument("--no-reference", dest="reference", action="store_false", help=text)
    add_small(compare)
    add_snakemake(compare)
    _add_merge(commands)


def _add_merge(commands: Any) -> None:
    merge = add_command(
        commands,
        "merge",
        _merge,
        "Make one comparison of several that were made before, without a run: the problems that all have, "
        "with the methods of each, if settings, data and clients are equal. Writes runs, figures, tables and "
        "the page.",
        "yesterday today.zip --out both",
    )
    text = "folders in which a comparison was made, or zips of them; PLACE#sha256=... checks a zip"
    merge.add_argument("places", nargs="+", metavar="PLACE", help=text)
    merge.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write")
    merge.add_argument("--time", metavar="RATES", help="as of compare")


def _merge(arguments: argparse.Namespace) -> None:
    from replifed.network import times
    from replifed.workflow.merging import merge
    from replifed.workflow.reuse import opened

    if arguments.time is not None:
        times.rates(arguments.time)
    if not arguments.out.absolute().parent.is_dir():
        raise ConfigError(f"{arguments.out.parent} does not exist; give --out another place")
    sources = [opened(place, arguments.out.absolute().parent) for place in arguments.places]
    made_by = f"replifed merge {' '.join(arguments.places)} --out {arguments.out}"
    print("\n".join(merge(sources, arguments.out.absolute(), arguments.time, made_by)))


def _number(text: str) -> int | str:
    """Return a whole number as one, any other text as it is."""
    return int(text) if text.isdecimal() else text


def _names(text: str) -> list[str]:
    """Return the names between commas; those of `synthetic:1,1` stay together."""
    names: list[str] = []
    for name in filter(None, text.split(",")):
        goes_on = name[0].isdigit() or name[0] in ".-" or name in ("deviation", "variance")
        if names and names[-1].startswith("synthetic:") and goes_on:
            names[-1] += f",{name}"
        else:
            names.append(name)
    return names


def _compare(arguments: argparse.Namespace) -> int:
    from replifed.settings.cohorts import KEYS as COHORTS
    from replifed.settings.comparison import errors, with_offered
    from replifed.settings.held_out import KEYS as TESTS
    from replifed.workflow.costs import compiling

    if not (
        arguments.methods or arguments.data or arguments.against or arguments.config or arguments.configfile
    ):
        raise ConfigError("no method; give FILE.py:CLASS, or --against NAMES to compare built-in ones alone")
    with_small(arguments)
    named = [word.rpartition("=")[::2] for word in arguments.methods]
    methods = {name or source.rpartition(":")[2].lower(): source for name, source in named}
    if len(methods) < len(named):
        raise ConfigError("two methods have the same name; give them as NAME=FILE:CLASS")
    for source in methods.values():
        _check_own(source)
    keys = (*_KEYS, *COHORTS, *TESTS)
    requested = {key: getattr(arguments, key) for key in keys if getattr(arguments, key) not in (None, [])}
    if arguments.vary:
        requested["vary"] = {}
    loaded = load_config(arguments)
    merged = {**loaded.get("comparison", {}), **requested}
    config = with_offered({**loaded, "methods": methods, "comparison": merged})
    if not arguments.config:  # else the workflow checks all of it
        for (section, *key), text in errors(config):
            option = str(key[0]).replace("_", "-")
            raise ConfigError(f"--{option}: {text}" if section == "comparison" else text)
    _look_at(config, config["comparison"].get("data") or config["datasets"])
    if methods and not arguments.dry_run:
        print(f"checking {', '.join(methods)}{compiling()}", file=sys.stderr, flush=True)
    options = {"methods": methods, "comparison": requested}
    if not arguments.dry_run:
        requested |= _taken(config, arguments, _as_config(options))
    settings = _as_config(options)
    status = call_snakemake("compare", arguments, settings)
    if status == 0 and not arguments.dry_run:
        folder = Path(loaded["paths"]["figures"], "compare")
        names = ["best.md", "fig1.pdf", "table1.md", "table1.tex", "paper.pdf", "pairs.md", "cohorts.md"]
        names += ["partition.pdf", "heterogeneity.md"]
        names += ["accuracy.pdf", "accuracies.md"] * ("test" in merged)
        names += ["where.pdf"] * ("time" in merged) + ["untuned.md"] * ("untuned" in merged)
        names += ["studies.md"] * ("studies" in merged)
        names += ["vary.pdf", "vary_axes.md"] if arguments.vary else []
        files = [folder / name for name in (*names, "report.html")]
        made = [file for file in files if file.is_file()]
        if not made:
            raise ReplifedError(f"Snakemake made nothing in {folder}; what it says is in .snakemake/log")
        lines = [*_who(folder / "cohorts.csv"), *_outcomes(folder / "vary_axes.csv", arguments.vary)]
        print("\n".join([*map(str, made), *lines]))
    return status


def _as_config(options: Mapping[str, Any]) -> list[str]:
    return [f"{key}={json.dumps(value)}" for key, value in options.items() if value]


def _check_own(source: str) -> None:
    """Reject what is no method of one's own before anything is made."""
    from replifed.algorithms.registry import BUILT_IN, class_of

    if source in BUILT_IN:
        raise ConfigError(f"{source} is a built-in method; name it with --against {source}")
    class_of(source)


def _taken(
    config: dict[str, Any], arguments: argparse.Namespace, settings: Sequence[str]
) -> dict[str, list[str]]:
    """Take runs from what --from names, and from the reference; say which, and why others are made here."""
    from replifed.algorithms.registry import register
    from replifed.errors import counted
    from replifed.workflow.reuse import opened, reuse

    register(config["methods"])
    sources = [
        (opened(place, Path(config["paths"]["data"], "from")), place, place) for place in arguments.taken_from
    ]
    sources += _reference(config, arguments)
    # What --vary adds is in no reference run.
    alone = {key: value for key, value in config["comparison"].items() if key != "vary"}
    reused: list[str] = []
    for source, named, briefly in sources:
        make = partial(call_snakemake, arguments=arguments, config=settings)
        found = reuse({**config, "comparison": alone}, source, make, reused)
        if found.runs:
            print(f"{counted(len(found.runs), 'run')} from {named}")
        for reason in dict.fromkeys(found.reasons.values()):
            names = [name for name, why in found.reasons.items() if why == reason]
            print(f"not taken: {', '.join(names)}: {briefly} has {reason}")
        reused += found.runs
    return {"reused": reused} if reused else {}


def _reference(config: Mapping[str, Any], arguments: argparse.Namespace) -> list[tuple[Any, str, str]]:
    """Return the reference run and its names; nothing if it is not asked, or has no runs of this scale."""
    from replifed.runs import kept, opened
    from replifed.runs.recorded import Recorded

    try:
        if arguments.reference and not arguments.config:
            run = opened.reference()
            if run.entries(opened.ABOUT).get("scale") == config["scale"]:
                made_by = kept.in_words(run, COMPARED)
                return [(Recorded(run), f"the reference run, {made_by}", "the reference run")]
    except DataError:  # it is no run of a comparison, or there is none
        pass
    return []


def _who(file: Path) -> Iterator[str]:
    """Yield who took part, and the methods that are not run with cohorts, with the reason."""
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        yield from dict.fromkeys(row["said"] for row in rows)
        yield from dict.fromkeys(
            f"{row['method']}: {row['run']}: {row['form']}" for row in rows if row["run"] != "cohort"
        )


def _outcomes(file: Path, asked: bool) -> Iterator[str]:
    """Yield who leads under other settings, a sentence a pair, and what was not varied."""
    if asked and file.is_file():
        with file.open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row["axis"] == "all"]
        yield from dict.fromkeys(row[column] for column in ("outcome", "note") for row in rows if row[column])


def _check(arguments: argparse.Namespace) -> int:
    from replifed.algorithms.registry import method_class
    from replifed.contract import examine

    if _is_data(arguments.source, arguments.settings):
        _look_at_file(arguments.source, arguments.settings)
        return 0
    cls = method_class(arguments.source)
    failures: dict[str, dict[str, list[str]]] = {}  # cases by part of the contract and message
    for outcome in examine(cls):
        cases_by_message = failures.setdefault(outcome.part, {})
        if outcome.error:
            cases_by_message.setdefault(outcome.error, []).append(str(outcome.case))
    printed: set[str] = set()
    for part, cases_by_message in failures.items():
        print(f"{'FAIL' if cases_by_message else 'ok  '} {part}")
        for message, cases in cases_by_message.items():
            print(f"     {', '.join(cases)}: {'as above' if message in printed else message}")
            printed.add(message)
    for name in ("counts_differ", "exchanges_differ"):
        if reason := getattr(cls, name, ""):
            print(f"note {name}: {reason}")
    broken = sum(map(bool, failures.values()))
    print(f"{cls.__name__}: {len(failures) - broken} of {len(failures)} parts of the contract are kept")
    return 1 if broken else 0


# -- What data of one's own show before any run -----------------------------------------------------------


def _is_data(source: str, given: Sequence[str]) -> bool:
    """Return whether `replifed check SOURCE [KEY=VALUE ...]` names data, and no method."""
    from replifed.data.generated import is_generated

    path = Path(source)
    return (
        bool(given)
        or is_generated(source)
        or path.suffix.lower() in _ENDINGS
        or (path.is_file() and path.suffix != ".py")
    )


def _look_at_file(path: str, given: Sequence[str]) -> None:
    """Print the findings on a data file, read with settings KEY=VALUE; clients that are named are taken."""
    from replifed.data.generated import is_generated, settings_of
    from replifed.settings.checks import load
    from replifed.settings.reading import read_value

    if wrong := [pair for pair in given if "=" not in pair]:
        raise ConfigError(f"{wrong[0]}: write KEY=VALUE, such as label=outcome or 'drop=[id, day]'")
    pairs = [pair.split("=", 1) for pair in given]
    base = settings_of(path)[1] if is_generated(path) else {"path": path}
    settings = {**base, **{key: read_value(value, key) for key, value in pairs}}
    if "client" in settings:
        settings.setdefault("partition", "given")
    for key in ("drop", "categories"):
        if isinstance(settings.get(key), str):
            settings[key] = [settings[key]]
    name = re.sub("[^a-z0-9]+", "_", Path(path).stem.lower()).strip("_0123456789") or "data"
    try:
        config = load(given={"datasets": {name: settings}})
    except ConfigError as error:
        text = str(error).replace(f"datasets.{name}.", "").replace("; correct what follows --config", "")
        raise ConfigError(text) from error
    _look_at(config, [name])


def _look_at(config: Mapping[str, Any], names: Iterable[str]) -> None:
    """Print the findings on the custom data sets among `names`, or raise all their errors together."""
    from replifed.data.findings import findings
    from replifed.data.own import read
    from replifed.settings.comparison import problems

    custom, errors = config.get("datasets", {}), []
    for name in [one for one in names if one in custom]:
        settings, problem = custom[name], problems(config)[name]
        try:
            table = read(name, settings)
        except DataError as error:
            errors.append(str(error))
            continue
        found = findings(
            table,
            problem["ridge"],
            by_client=settings.get("partition") == "given" and settings.get("weights") != "samples",
            standardised=settings.get("standardise", False),
            tested="test" in config.get("comparison", {}),
        )
        path = f" ({settings['path']})" * (settings["path"] != name)
        print("\n  ".join([f"{name}{path}:", *map(str, found)]))
    if errors:
        raise DataError("\n".join(errors))
