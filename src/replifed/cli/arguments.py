"""Arguments that several commands share, and the calls that they lead to."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from replifed.errors import ConfigError, counted, unknown_name
from replifed.progress import ONE_LINE

SMALL = "config/small.yaml"

Handler = Callable[[argparse.Namespace], int | None]


class OneLineParser(argparse.ArgumentParser):
    """Reports errors in one line, without the usage; parsers of its commands are of this class, too."""

    def error(self, message: str) -> NoReturn:
        """Print the error and the option that explains it; exit with status 2."""
        if match := re.fullmatch(r"argument (.+): invalid choice: '(.*)' \(choose from (.*)\)", message):
            kind, name, known = match.groups()
            message = unknown_name(kind.lower(), name, known.replace("'", "").split(", "))
            if kind == "COMMAND":  # the help, which is named, has them all, with what each does
                message = message.partition(" (known: ")[0]
        self.exit(2, f"replifed: error: {message}; see `{self.prog} --help`\n")


# Of inner commands whose options may stand before their name, too: no default may hide a value given there.
NO_DEFAULTS = {"argument_default": argparse.SUPPRESS}


def add_command(
    commands: Any,
    name: str,
    handler: Handler,
    text: str,
    example: str,
    **more: Any,
) -> argparse.ArgumentParser:
    """Add a command whose help ends with an example.

    Parameters
    ----------
    handler : function of all arguments.
    example : arguments that follow the command's name.
    """
    parser = commands.add_parser(
        name,
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **more,
    )
    parser.epilog = f"example:\n  {parser.prog} {example}".rstrip()
    parser.set_defaults(handler=handler)
    return parser


def add_file(parser: argparse.ArgumentParser, name: str, **more: Any) -> None:
    """Add an argument that is a file."""
    parser.add_argument(name, type=Path, metavar="FILE", **more)


def add_out(parser: argparse.ArgumentParser, **more: Any) -> None:
    """Add the file that a command writes."""
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


def load_config(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the checked configuration, with the overrides that the user named."""
    from replifed.settings.checks import load

    return load(arguments.configfile, given=given_settings(getattr(arguments, "config", None) or ()))


def given_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return what `pairs`, KEY=VALUE of --config, say, as the workflow reads it."""
    if not pairs:
        return {}
    from snakemake.cli import parse_config

    from replifed.settings.reading import retyped
    from replifed.workflow.command import check_options

    if wrong := [pair for pair in pairs if "=" not in pair]:
        raise ConfigError(f"--config {wrong[0]}: write --config KEY=VALUE")
    check_options(argparse.Namespace(configfile=[], config=pairs), pairs)
    return retyped(parse_config(pairs))


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
    command = [sys.executable, "-m", snakemake, *targets, "--cores", str(arguments.cores)]
    command += ["--dry-run"] if arguments.dry_run else []
    command += ["--configfile", *arguments.configfile] if arguments.configfile else []
    if config := [*config, *arguments.config]:
        command += ["--config", *config]
    if not arguments.dry_run:
        # It gets no Ctrl-C of its own, which would break off its start, or how it stops.
        ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
        return _waited_for(subprocess.Popen(command, env={**os.environ, ONE_LINE: "1"}, preexec_fn=ignore))
    done = subprocess.run(command, check=False, capture_output=True, text=True)
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
