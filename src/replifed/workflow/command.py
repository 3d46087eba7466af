"""Arguments of a call of Snakemake, checked before any job is planned.

Options are checked when Snakemake reads the profile, since it stops at some errors in them, with a traceback,
before it reads the Snakefile; targets when all rules are known.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from replifed.errors import ConfigError, ReplifedError, meant, unknown_name
from replifed.settings import needs
from replifed.settings.checks import retired, unknown_artefact
from replifed.settings.reading import read_file, read_value
from replifed.workflow.jobs import REUSED, SHARES, SUFFIXES, Table

_SETTINGS_FILE = (".yaml", ".yml", ".json")
# Folders of results and figures that belong to no paper: benchmarks, shares of runs, what the reference run
# lends, and other scales.
_RESERVED = ("benchmarks", SHARES, REUSED, "small", "tiny")


def parsed(argv: Sequence[str]) -> Namespace:
    """Return the arguments as Snakemake parses them, without those that a profile adds."""
    from snakemake.cli import get_argument_parser

    arguments = get_argument_parser().parse_args([*argv])
    arguments.targets = [*arguments.targets]
    return arguments


@cache
def of_process() -> Namespace:
    """Return the arguments of this process, if it is a call of Snakemake."""
    if Path(sys.argv[0]).name == "snakemake" or Path(sys.argv[0]).parts[-2:] == ("snakemake", "__main__.py"):
        return parsed(sys.argv[1:])
    return Namespace(targets=[], target_jobs=None, configfile=None, config=None, dryrun=False, unlock=False)


def executor() -> str:
    """Return what runs the jobs of this process's call: "local", or the plugin that it or a profile names."""
    from snakemake.cli import parse_args

    if "executor" not in of_process():
        return "local"
    with contextlib.redirect_stderr(io.StringIO()):  # it has said already which profiles it uses
        return parse_args(sys.argv[1:])[1].executor or "local"


def check_options(arguments: Namespace, argv: Sequence[str]) -> None:
    """Reject a number of cores below 1, unreadable files of settings, and settings that are not KEY=VALUE.

    Raises
    ------
    ConfigError
        If an option has swallowed a target, with the call to type instead.
    """
    for option in ("cores", "jobs"):
        count = str(getattr(arguments, option, None))
        if re.fullmatch(r"-?[0-9]+", count) and int(count) < 1:
            raise ConfigError(f"--{option} {count}: no job can run; give at least 1")
    for index, file in enumerate(arguments.configfile or ()):
        if index and not file.is_file() and file.suffix not in _SETTINGS_FILE:
            raise ConfigError(_swallowed("--configfile", str(file), argv))
        if not read_file(file):
            raise ConfigError(f"{file} holds no settings; write KEY: VALUE, or leave it out")
    for word in arguments.config or ():
        key, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(_swallowed("--config", word, argv))
        if "." in key:
            first, *inner = key.split(".")
            nested = f"{first}={''.join(f'{{{name}: ' for name in inner)}{value}{'}' * len(inner)}"
            raise ConfigError(f"--config {word}: write nested keys as --config '{nested}'")
        if not key.isidentifier():
            raise ConfigError(f"--config {word}: {key!r} is no key; write --config KEY=VALUE")
        read_value(value, f"--config {key}", "; put the word in quotes")


def _swallowed(option: str, word: str, argv: Sequence[str]) -> str:
    # Options are parsed to paths, which have no "./" in front.
    others = [*argv]
    others.remove(next(one for one in argv if word in (one, str(Path(one)))))
    kind = "a settings file" if option == "--configfile" else "KEY=VALUE"
    return (
        f"{option} takes all words up to the next option, and {word!r} is not {kind}; give targets first: "
        f"snakemake {shlex.join([word, *others])}"
    )


def refuse_options() -> None:
    """Stop the process with one line if its own call of Snakemake has an error."""
    try:
        check_options(of_process(), sys.argv[1:])
        check_folder(Path(getattr(of_process(), "directory", None) or "."))
        find_cache()
    except ReplifedError as error:
        sys.exit(f"replifed: error: {error}")
    if sys.stderr.isatty() and not of_process().unlock:
        print("replifed: reading the settings and planning the jobs, some 10 s", file=sys.stderr)


def check_folder(folder: Path) -> None:
    """Reject a working folder in which Snakemake cannot keep its records."""
    kept = folder / ".snakemake"
    for place in (folder, kept):
        if (
            place.is_dir()
            and not os.access(place, os.W_OK | os.X_OK)
            and not (place is folder and kept.is_dir())
        ):
            raise ConfigError(
                f"{place.absolute()} is read-only, and Snakemake keeps its records there; make it writable, "
                "or work in a copy or in the folder of `replifed init FOLDER`"
            )


def find_cache() -> None:
    """Choose another folder for caches where that in the user's home cannot be written."""
    from snakemake.common import get_appdirs

    usual = Path(get_appdirs().user_cache_dir)
    try:
        usual.mkdir(parents=True, exist_ok=True)
        usable = os.access(usual, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if not usable:
        other = Path(".snakemake/cache").absolute()
        os.environ |= {"XDG_CACHE_HOME": str(other), "MPLCONFIGDIR": str(other / "matplotlib")}
        print(f"replifed: {usual} cannot be written; caches are kept in {other}", file=sys.stderr)


def check_targets(table: Table, names: Iterable[str], targets: Iterable[str], rules: Iterable[Any]) -> None:
    """Reject targets that have no name, and are no file that a rule makes, nor one that exists.

    Parameters
    ----------
    names : of targets that are no files.
    rules : Snakemake's, each with `is_producer`.
    """
    names, rules = list(names), list(rules)
    for target in targets:
        if target not in names:
            _check_file(table, target)
            if not Path(target).exists() and not any(rule.is_producer(target) for rule in rules):
                raise ConfigError(unknown_target(table, target, names))


def _check_file(table: Table, target: str) -> None:
    """Reject a file of the figures or results that belongs to no paper, artefact, experiment or method."""
    paths = table.config["paths"]
    for folder, check in ((paths["figures"], _check_figure), (paths["results"], _check_result)):
        paper, slash, name = target.removeprefix(f"{folder}/").partition("/")
        if target.startswith(f"{folder}/") and slash:
            _check_known("paper", paper, target, [*table.sections, *_RESERVED])
            if paper in table.sections and table.maker(target) is None:
                check(table, paper, name, target)


def _check_figure(table: Table, paper: str, name: str, target: str) -> None:
    artefact = name.partition(".")[0]
    known = needs.makeable(table.config[paper])
    if artefact not in known:
        raise ConfigError(unknown_artefact(paper, table.config[paper], artefact, known))
    own = _files_of(table, paper, artefact)
    raise ConfigError(f"{target} is not made; of this artefact there are: {', '.join(own)}")


def _check_result(table: Table, paper: str, name: str, target: str) -> None:
    experiment, slash, file = name.partition("/")
    if not slash:
        return
    experiments = table.config[paper]["experiments"]
    if file.startswith("partition.") or file.endswith((".parquet", ".tuned.json")):
        if experiment not in experiments:
            raise ConfigError(unknown_name(f"experiment of {paper}", experiment, experiments))
        if file.startswith("partition."):
            raise ConfigError(
                f"experiment {experiment} of {paper} has no section `partition` to make one from"
            )
        method = file.partition(".")[0]
        _check_known("method of this experiment", method, target, experiments[experiment]["methods"])


def _check_known(kind: str, name: str, target: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ConfigError(f"{target}: {unknown_name(kind, name, known)}")


def _files_of(table: Table, paper: str, artefact: str) -> list[str]:
    kind = table.config[paper]["artefacts"][artefact]["kind"]
    return table.files(f"{kind}:{paper}/{artefact}")


def unknown_target(table: Table, target: str, names: Iterable[str]) -> str:
    """Say that a target is unknown, or no longer made, and name the nearest rule or artefact."""
    lines = retired(table.config)
    if target == "gallery":  # its rule is left out at other scales
        return f"{target} is made at the papers' scale alone: without --small and --configfile"
    if line := lines.get(target) or lines.get(Path(target).stem):
        return line
    names, (paper, _, artefact) = sorted(names), target.partition("/")
    if paper in table.sections and artefact in needs.makeable(table.config[paper]):
        file, *_ = _files_of(table, paper, artefact)
        return f"unknown target {target!r}; its file is {file}; or `replifed make {target}`"
    drawn = [file for key, job in table.items() if job.kind in SUFFIXES for file in table.files(key)]
    if near := meant(target, [*names, *drawn]):
        return f"unknown target {target!r}{near} (`replifed list` prints all)"
    return f"unknown target {target!r}; there are {', '.join(names)}, and the files of `replifed list`"
