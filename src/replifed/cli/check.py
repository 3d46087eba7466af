"""`replifed check` and `compare`: a method of one's own against the contract, and beside built-in ones."""

from __future__ import annotations

import argparse
import json
from typing import Any

from replifed.cli.arguments import SMALL, add_command, add_small, add_snakemake, call_snakemake, load_config
from replifed.errors import ConfigError


def add(commands: Any) -> None:
    """Add this command to the parser."""
    check = add_command(
        commands,
        "check",
        _check,
        "Check each part of the contract on a method, your own or one of `replifed list methods`; exits with "
        "status 1 if one is broken.",
        "path/to/mine.py:Mine",
    )
    check.add_argument("method", metavar="FILE:CLASS", help="or the name of a method")

    compare = add_command(
        commands,
        "compare",
        _compare,
        "Tune and run methods of your own beside built-in ones, on the same budget, with Snakemake; draw and "
        "tabulate them under figures/compare. Built-in methods that have been run are not run again.",
        "path/to/mine.py:Mine --data a9a,w8a --against fedavg,fedlin --cores 2",
    )
    compare.add_argument(
        "methods", nargs="*", metavar="[NAME=]FILE:CLASS", help="the name is the class's in small letters"
    )
    compare.add_argument("--data", type=_words, metavar="NAMES", help="problems, default: all logistic ones")
    compare.add_argument(
        "--against", type=_words, metavar="NAMES", help="built-in methods, default: all on these problems"
    )
    add_small(compare)
    add_snakemake(compare)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _compare(arguments: argparse.Namespace) -> int:
    from replifed.settings.comparison import errors, with_offered

    given = (arguments.methods, arguments.data, arguments.against, arguments.config, arguments.configfile)
    if not any(given):
        raise ConfigError("no method; give FILE.py:CLASS, or --against NAMES to compare built-in ones alone")
    if arguments.small:
        arguments.configfile = [SMALL, *arguments.configfile]
    named = [word.rpartition("=")[::2] for word in arguments.methods]
    methods = {name or source.rpartition(":")[2].lower(): source for name, source in named}
    if len(methods) < len(named):
        raise ConfigError("two methods have the same name; give them as NAME=FILE:CLASS")
    chosen = {key: getattr(arguments, key) for key in ("data", "against") if getattr(arguments, key)}
    if not arguments.config:  # else the workflow checks all of it
        config = with_offered({**load_config(arguments), "comparison": chosen})
        for (section, *key), text in errors(config):
            if section == "comparison":
                raise ConfigError(f"--{key[0]}: {text}")
    options = {"methods": methods, "comparison": chosen}
    settings = [f"{key}={json.dumps(value)}" for key, value in options.items() if value]
    status = call_snakemake("compare", arguments, settings, one_line=True)
    if status == 0 and not arguments.dry_run:
        folder = f"{load_config(arguments)['paths']['figures']}/compare"
        print("\n".join(f"{folder}/{file}" for file in ("fig1.pdf", "table1.md", "pairs.md", "report.html")))
    return status


def _check(arguments: argparse.Namespace) -> int:
    from replifed.algorithms.registry import class_of, method_class
    from replifed.contract import examine

    given = arguments.method
    cls = class_of(given) if ":" in given or given.endswith(".py") else method_class(given)
    faults: dict[str, dict[str, list[str]]] = {}  # cases by part and fault
    for outcome in examine(cls):
        found = faults.setdefault(outcome.part, {})
        if outcome.fault:
            found.setdefault(outcome.fault, []).append(str(outcome.case))
    told: set[str] = set()
    for part, found in faults.items():
        print(f"{'FAIL' if found else 'ok  '} {part}")
        for fault, cases in found.items():
            print(f"     {', '.join(cases)}: {'as above' if fault in told else fault}")
            told.add(fault)
    broken = sum(map(bool, faults.values()))
    print(f"{cls.__name__}: {len(faults) - broken} of {len(faults)} parts of the contract are kept")
    return 1 if broken else 0
