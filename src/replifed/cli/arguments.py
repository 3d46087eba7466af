"""Arguments that several commands share, and the calls that they lead to."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from replifed.errors import ConfigError, counted, unknown_name
from replifed.progress import ONE_LINE

SMALL = "config/small.yaml"
# Of artefacts, by suffix.
SUFFIXES = ("csv", "pdf", "png", "md", "tex")
# Files of the workflow's steps.
_FILES = {
    "data": "parsed data set",
    "partition": "partition of the data set",
    "tuned": "the method's tuned step",
    "leader": "tuned step of the method that the settings name as leader",
    "table": "the .csv of a partition's heterogeneity",
    "claims": "verdicts on all claims",
    "errata": "checked errata of each paper",
    "environment": "the file to write with commit, versions, processor and threads",
    "out": "the file to write",
    "curves": "the script to write, with the curves that the page draws",
    "run": "the script to write, with commit, versions, machine and date",
    **{suffix: f"the .{suffix} to write" for suffix in SUFFIXES},
}

Handler = Callable[[argparse.Namespace], int | None] | str


class OneLineParser(argparse.ArgumentParser):
    """Reports errors in one line, without the usage; parsers of its commands are of this class, too."""

    def error(self, message: str) -> NoReturn:
        """Print the error and the option that explains it; exit with status 2."""
        if match := re.fullmatch(r"argument (.+): invalid choice: '(.*)' \(choose from (.*)\)", message):
            kind, name, known = match.groups()
            message = unknown_name(kind.lower(), name, known.replace("'", "").split(", "))
        self.exit(2, f"replifed: error: {message}; see `{self.prog} --help`\n")


# Of inner commands whose options may stand before their name, too: no default may hide a value given there.
NO_DEFAULTS = {"argument_default": argparse.SUPPRESS}


def add_command(
    commands: Any,
    name: str,
    handler: Handler,
    text: str,
    example: str,
    *,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    **more: Any,
) -> argparse.ArgumentParser:
    """Add a command whose help ends with an example.

    Parameters
    ----------
    handler : function of all arguments; or "MODULE:FUNCTION", called with the arguments named like its
        parameters.
    example : arguments that follow the command's name.
    reads, writes : names of arguments that are files of the workflow: those that it reads must not have
        changed since they were made, those that it writes are recorded (see `replifed.store.hashes`).
    """
    parser = commands.add_parser(
        name,
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **more,
    )
    parser.epilog = f"example:\n  {parser.prog} {example}".rstrip()
    parser.set_defaults(handler=handler, reads=reads, writes=writes)
    return parser


def add_step(
    commands: Any,
    name: str,
    handler: Handler,
    text: str,
    example: str,
    *,
    names: Sequence[str] = (),
    reads: Sequence[str] = (),
    writes: Sequence[str] = ("out",),
    optional: Sequence[str] = (),
    settings: bool = True,
    scaled: bool = False,
) -> argparse.ArgumentParser:
    """Add a step of the workflow: a command with the arguments `names`, whose files are all options.

    Parameters
    ----------
    optional : files that may be missing; may include "settings".
    settings, scaled : whether it takes settings as JSON, and the scale of the run.
    """
    parser = add_command(commands, name, handler, text, example, reads=reads, writes=writes)
    for argument in names:
        parser.add_argument(argument)
    if scaled:
        parser.add_argument("--scale", required=True, help="scale of the run: paper, small or tiny")
    if settings:
        add_settings(parser, required="settings" not in optional)
    for file in (*reads, *writes):
        flag = f"--{file.replace('_', '-')}"
        if file in ("inputs", "outputs"):
            parser.add_argument(
                flag, type=key_and_file, nargs="+", action="extend", default=[], metavar="KEY=FILE"
            )
        elif file == "errata":
            add_file(parser, flag, nargs="*", default=[], help=_FILES[file])
        else:
            add_file(parser, flag, required=file not in optional, help=_FILES[file])
    return parser


def call(handler: Handler, arguments: argparse.Namespace) -> int:
    """Call the handler of a command; return its status."""
    if not isinstance(handler, str):
        return handler(arguments) or 0
    module, _, name = handler.partition(":")
    function = getattr(import_module(module), name)
    given = {**vars(arguments)}
    if "inputs" in given:
        files: dict[str, list[Path]] = {}  # a key may have several files: a partition and its table
        for key, file in given["inputs"]:
            files.setdefault(key, []).append(file)
        given["inputs"] = files
    if "outputs" in given:
        given["outputs"] = dict(given["outputs"])
    function(**{key: given[key] for key in inspect.signature(function).parameters if key in given})
    return 0


def add_settings(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add a step's settings as JSON, which the workflow passes."""
    text = "settings of this step"
    parser.add_argument("--settings", type=json_object, metavar="JSON", required=required, help=text)


def add_file(parser: argparse.ArgumentParser, name: str, **more: Any) -> None:
    """Add an argument that is a file."""
    parser.add_argument(name, type=Path, metavar="FILE", **more)


def add_out(parser: argparse.ArgumentParser, **more: Any) -> None:
    """Add the file that a step of the workflow writes."""
    add_file(parser, "--out", **{"required": True, **more})


def add_configfile(parser: argparse.ArgumentParser) -> None:
    """Add files with settings that override the configuration."""
    text = "settings that override those of config/, e.g. config/small.yaml; may be repeated"
    parser.add_argument("--configfile", action="append", default=[], metavar="FILE", help=text)


def add_small(parser: argparse.ArgumentParser) -> None:
    """Add the option for the reduced scale."""
    parser.add_argument("--small", action="store_true", help=f"at the reduced scale of {SMALL}")


def with_small(arguments: argparse.Namespace) -> argparse.Namespace:
    """Add the settings of the reduced scale to the user's, if it was asked for."""
    if arguments.small:
        arguments.configfile = [SMALL, *arguments.configfile]
    return arguments


def refuse_small(arguments: argparse.Namespace) -> None:
    """Reject --small beside --reference, whose run is of the papers' scale."""
    if arguments.reference and arguments.small:
        raise ConfigError("--reference shows the run at the papers' scale: leave out --small")


def add_snakemake(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that call Snakemake."""
    add_configfile(parser)
    text = "settings, as Snakemake takes them, e.g. 'datasets={mine: {path: data.csv}}'"
    parser.add_argument("--config", action="extend", nargs="+", default=[], metavar="KEY=VALUE", help=text)
    text = "jobs at a time; default 1"
    parser.add_argument("-c", "--cores", type=_at_least_one, default=1, metavar="N", help=text)
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what would be done")


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: give a whole number, at least 1")
    return int(text)


def json_object(text: str) -> dict[str, Any]:
    """Parse an argument that is a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


def key_and_file(text: str) -> tuple[str, Path]:
    """Parse an argument of the form KEY=FILE."""
    key, equals, file = text.partition("=")
    if not (key and equals and file):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=FILE")
    return key, Path(file)


def files_of(arguments: argparse.Namespace, names: Sequence[str]) -> Iterator[Path]:
    """Yield the files in the named arguments: one, several, or several by key."""
    for name in names:
        value = getattr(arguments, name)
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield Path(item[1] if isinstance(item, tuple) else item)


def load_config(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the checked configuration, with the overrides that the user named."""
    from replifed.settings import load

    return load(arguments.configfile, given=given_settings(getattr(arguments, "config", None) or ()))


def given_settings(words: Sequence[str]) -> dict[str, Any]:
    """Return what `words`, KEY=VALUE of --config, say, as the workflow reads it."""
    if not words:
        return {}
    from snakemake.cli import parse_config

    from replifed.settings.reading import retyped
    from replifed.workflow.words import check_options

    if wrong := [word for word in words if "=" not in word]:
        raise ConfigError(f"--config {wrong[0]}: write --config KEY=VALUE")
    check_options(argparse.Namespace(configfile=[], config=words), words)
    return retyped(parse_config(words))


def check_known(kind: str, name: str, known: Sequence[str] | dict[str, Any]) -> None:
    """Raise a `ConfigError` for a name that is not among the known ones."""
    if name not in known:
        raise ConfigError(unknown_name(kind, name, known))


def has_workflow() -> bool:
    """Return whether Snakemake finds a workflow in this folder."""
    return any(Path(file).is_file() for file in ("Snakefile", "workflow/Snakefile"))


def call_snakemake(
    target: str | Sequence[str],
    arguments: argparse.Namespace,
    config: Sequence[str] = (),
) -> int:
    """Make a target, or several, with settings KEY=VALUE; return the status.

    Snakemake's output is replaced by a line of progress, and that of a dry run by its jobs.
    """
    import os
    import signal
    import subprocess
    from functools import partial

    from replifed.settings.reading import read_file

    if not has_workflow():
        raise ConfigError(
            "there is no Snakefile here; run from the folder that holds it, or from one that `replifed init "
            "FOLDER` writes"
        )
    for file in arguments.configfile:
        read_file(Path(file))  # Snakemake's own error is a traceback
    # Targets are first: several options would swallow them.
    targets = [target] if isinstance(target, str) else target
    snakemake = "snakemake" if arguments.dry_run else "replifed.workflow.quietly"
    words = [sys.executable, "-m", snakemake, *targets, "--cores", str(arguments.cores)]
    words += ["--dry-run"] if arguments.dry_run else []
    words += ["--configfile", *arguments.configfile] if arguments.configfile else []
    if config := [*config, *arguments.config]:
        words += ["--config", *config]
    if not arguments.dry_run:
        # It gets no Ctrl-C of its own, which would break off its start, or how it stops.
        ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
        return _waited_for(subprocess.Popen(words, env={**os.environ, ONE_LINE: "1"}, preexec_fn=ignore))
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    jobs = re.findall(r"^Job \d+: (.*)$", done.stdout + done.stderr, re.MULTILINE)
    if done.returncode:
        sys.stderr.write(done.stderr)
    elif jobs:
        ahead = re.search(r"^\d+ jobs? ahead.*$", done.stderr, re.MULTILINE)
        print("\n".join([ahead[0] if ahead else counted(len(jobs), "job"), *jobs]))
    else:
        print("nothing to do: all is made")
    return done.returncode


def _waited_for(process: Any) -> int:
    """Return the status of a process; on Ctrl-C or SIGTERM ask it to end, and wait until it has."""
    stopped = None
    while True:
        try:
            status = process.wait()
            break
        except KeyboardInterrupt as error:
            stopped = error
            process.terminate()
    if stopped is not None:
        raise stopped
    return status
