"""`replifed completion`: the script by which a shell completes commands, options and names."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from replifed.cli.arguments import add_command
from replifed.cli.listing import TARGETS

# What is not for people.
_STEP = "Step of the workflow"
_PATHS = {"FILE": "FILE", "FOLDER": "DIRECTORY", "A": "FILE", "B": "FILE", "[NAME=]FILE:CLASS": "FILE"}


def add(commands: Any, parser: argparse.ArgumentParser) -> None:
    """Add this command to the parser, of which the script will tell."""
    completion = add_command(
        commands,
        "completion",
        partial(_write, parser),
        "Print the script by which a shell completes commands, options, and names of papers, artefacts, "
        "claims, methods and data sets: those of this folder's settings. docs/install.md says where to put "
        "it.",
        "bash > ~/.replifed.bash",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _write(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    import shtab

    known = _names()
    for words, part in _commands(parser):
        for action in part._actions:
            names = known.get((words, action.dest)) or known.get(("", action.dest))
            if names and not action.choices:
                action.choices = sorted(names)
            elif action.metavar in _PATHS:
                action.complete = getattr(shtab, _PATHS[action.metavar])
    print(shtab.complete(parser, arguments.shell))


def _commands(parser: argparse.ArgumentParser, words: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each parser below `parser` with its words; list those for people, as `shtab` reads them."""
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, part in action.choices.items():
                text = (part.description or "").partition(".")[0]
                if not text.startswith(_STEP):
                    action._choices_actions.append(action._ChoicesPseudoAction(name, (), text))
                    yield from _commands(part, f"{words} {name}".strip())


def _names() -> dict[tuple[str, str], Iterable[str]]:
    """Names by command ("": any) and argument."""
    from replifed.algorithms.registry import METHODS
    from replifed.claims.files import NAMES
    from replifed.data.catalogue import CATALOGUE
    from replifed.papers.jobs import claims_of
    from replifed.settings import load
    from replifed.settings.comparison import problems
    from replifed.settings.needs import makeable

    config = load()
    papers = config["papers"]
    artefacts = [f"{paper}/{name}" for paper in papers for name in makeable(config[paper])]
    claims = {
        name for paper in papers for claim in claims_of(paper) for name in (claim.id, claim.statement_id)
    }
    return {
        ("", "paper"): papers,
        ("", "why"): claims,
        ("make", "name"): [*papers, *artefacts, *TARGETS, *claims],
        ("show", "name"): artefacts,
        ("run", "experiment"): {name for paper in papers for name in config[paper]["experiments"]},
        ("run", "method"): METHODS,
        ("check", "method"): METHODS,
        ("compare", "data"): problems(config),
        ("compare", "against"): METHODS,
        ("claims", "verdict"): NAMES,
        ("data fetch", "ids"): CATALOGUE,
        ("data parse", "id"): CATALOGUE,
    }
