"""`replifed check`: whether a method keeps to the contract."""

from __future__ import annotations

import argparse
from typing import Any

from replifed.cli.arguments import add_command


def add(commands: Any) -> None:
    """Add this command to the parser."""
    check = add_command(
        commands,
        "check",
        _check,
        "Check each part of the contract on a method, your own or one of `replifed list methods`; exits with "
        "status 1 if one is broken.",
        "replifed check path/to/mine.py:Mine",
    )
    check.add_argument("method", metavar="FILE:CLASS", help="or the name of a method")


def _check(arguments: argparse.Namespace) -> int:
    from replifed.algorithms.registry import class_of, method_class
    from replifed.contract import examine

    cls = class_of(arguments.method) if ":" in arguments.method else method_class(arguments.method)
    faults: dict[str, list[str]] = {}
    for outcome in examine(cls):
        found = faults.setdefault(outcome.part, [])
        if outcome.fault:
            found.append(f"{outcome.case}: {outcome.fault}")
    for part, found in faults.items():
        print("\n     ".join([f"{'FAIL' if found else 'ok  '} {part}", *found]))
    broken = sum(map(bool, faults.values()))
    print(f"{cls.__name__}: {len(faults) - broken} of {len(faults)} parts of the contract are kept")
    return 1 if broken else 0
