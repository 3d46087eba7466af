"""The command line, for people and for the workflow's jobs.

Handlers import modules when they run, so that a job does not wait for imports that it does not use.

commands for people:
  list        papers, artefacts, data sets and methods; and jobs, with the time that they took
  make        make one figure or table, a paper, or all, by name
  run         run one method on one experiment
  check       check a method, such as your own, against the contract
  compare     tune and run your own methods and built-in ones
  merge       make one comparison of several, from their runs
  export      write a method as an app of Flower, for a federation of machines
  init        write a folder in which the workflow runs, without a checkout
  new paper   write a folder with a small paper of your own, or with one on logs of runs made elsewhere
  judge       judge a paper's claims on logs of runs made elsewhere, in seconds and without the workflow
  data        fetch, parse and look at data sets
  claims      show the verdicts on the papers' claims
  show        print the numbers of a figure or a table, and the verdicts of its claims
  diff        compare two runs, or this one with the reference, with causes
  archive     write a run as one zip, described as an RO-Crate
  certificate compare one paper with the reference run, as CODECHECK asks
  columns     say what the columns of a file mean
  manifest verify   name files that have changed since they were made
  schema      write the schema from which editors complete and check the settings

called by the workflow:
  job         do jobs of its table, by their keys

examples:
  replifed list artefacts
  replifed run fedht simulation1 fediterht --cores 2
  replifed claims --verdict deviates
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from types import ModuleType

from replifed import __version__, progress
from replifed.cli import check, claims, columns, data, job, judge, listing, make, new, runs
from replifed.cli.arguments import OneLineParser
from replifed.errors import ReplifedError

_COMMANDS = {
    listing: ("list", "schema"),
    columns: ("columns",),
    make: ("make", "run"),
    check: ("check", "compare"),
    new: ("init", "new", "export"),
    judge: ("judge",),
    job: ("job",),
    data: ("data",),
    claims: ("claims",),
    runs: ("archive", "diff", "show", "certificate", "manifest"),
}
# The rest of this module's docstring, and the targets.
_EPILOG = "\n".join(
    [
        (__doc__ or "").partition("\n\n")[2].partition("\n\n")[2],
        "targets of Snakemake, besides papers, figures and tables:",
        *(f"  {name:18}{text}" for name, text in listing.TARGETS.items()),
        f"\nMake one with: {listing.HOW}",
    ]
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default with the arguments of the process; return its status.

    Without arguments, print the help.

    The status is 0 on success, 1 if something differs or does not hold, 2 after an error that the user can
    act on, 128 and the signal's number after Ctrl-C, SIGTERM or SIGHUP, 141 if the reader of the output has
    closed it, else that of the call of Snakemake.
    """
    given = sys.argv[1:] if argv is None else argv
    # A command waits for no other one's parser.
    named = [module for module, names in _COMMANDS.items() if given[:1] and given[0] in names]
    arguments = _parser(named or _COMMANDS).parse_args(given or ["--help"])
    try:
        _notice_ends()
        return arguments.handler(arguments) or 0
    except ReplifedError as error:
        progress.clear()
        first, *more = str(error).splitlines() or [""]
        print("\n".join([f"replifed: error: {first}", *(f"  {line}" for line in more)]), file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        number = error.args[0] if error.args else signal.SIGINT
        progress.clear()
        how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
        print(f"replifed: {how}; give the same command again to go on", file=sys.stderr)
        return 128 + number
    except BrokenPipeError:
        # The reader of the output (`| head`) has closed it: Python would print an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # that nobody has explained: a name of 300 letters, a disk that fails
        if error.errno is None:
            raise
        print(f"replifed: error: {error.filename or 'the system'}: {error.strerror}", file=sys.stderr)
        return 2


def _notice_ends() -> None:
    """Have SIGTERM and SIGHUP stop this process as Ctrl-C does: unfinished files are removed."""

    def handle(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # once
        raise KeyboardInterrupt(number)

    if threading.current_thread() is threading.main_thread():  # no other thread may
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, handle)


def _parser(modules: Iterable[ModuleType] = _COMMANDS) -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="replifed",
        description="Replicates federated-optimisation papers: figures, tables and claims.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"replifed {__version__}")
    # The commands are listed by hand, grouped, in the epilog.
    commands = parser.add_subparsers(
        title="command", metavar="COMMAND", help="one of those below", required=True
    )
    for module in modules:
        module.add(commands)
    return parser
