"""Does a test notice when a method is wrong? Run on demand: python tests/mutants.py [NAME ...] [--most N].

From the syntax tree of each method's module (of its parent's, where it has no functions of its own), and of
what several methods share, come mutants: a sign turned, a term or a map dropped, operands or arguments
swapped, a number off by one. Each is put into a copy of the sources, and the tests that mention the method's
module (for what is shared, that of a method made of it) run against it. A mutant that no test catches has
survived: either the tests want a stronger one, or the mutant computes the same; then it has a line, with the
reason, in `mutants_equivalent.csv`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from replifed.algorithms.registry import METHODS

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.csv")
# What methods share, by its module, and a method that is made of it.
SHARED = {"learned_hessians": "fednl", "newton_type": "shed"}
# What every method must stand, whatever else mentions it.
_ALWAYS = "test_algorithms.py"
_SECONDS = 900


class Mutant(NamedTuple):
    """One change of a module.

    Attributes
    ----------
    line : number in the original file
    code : that line
    was, now : the expression before and after
    source : the whole module
    """

    line: int
    code: str
    was: str
    now: str
    source: str


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module's functions, in the order of the lines; docstrings and imports stay."""
    tree, lines = ast.parse(source), source.splitlines()
    found, seen = [], {ast.unparse(tree)}  # functions in functions are met twice
    for number, node in enumerate(_expressions(tree)):
        for change in range(len(list(_changed(node)))):
            changed = copy.deepcopy(tree)
            twin = _expressions(changed)[number]
            new = list(_changed(twin))[change]
            was, now = ast.unparse(node), ast.unparse(new)
            _Replace(twin, new).visit(changed)
            code = lines[node.lineno - 1].strip()
            made = Mutant(node.lineno, code, was, now, ast.unparse(ast.fix_missing_locations(changed)))
            if made.source not in seen:
                seen.add(made.source)
                found.append(made)
    return sorted(found, key=lambda mutant: mutant.line)


def _expressions(tree: ast.Module) -> list[ast.AST]:
    """What may be changed: all that functions do, but for checks of settings and names of observations."""
    return [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name not in ("__post_init__", "observe")
        for statement in function.body
        for node in ast.walk(statement)
    ]


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """Every way in which one expression is made wrong."""
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
        turned = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
        if other := turned.get(type(node.op)):
            yield ast.BinOp(left, other(), right)
        if isinstance(node.op, ast.Add | ast.Sub):
            yield left  # a dropped term
        if isinstance(node.op, ast.Sub | ast.Div | ast.MatMult):
            yield ast.BinOp(right, node.op, left)
    elif isinstance(node, ast.AugAssign):
        turned = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
        if other := turned.get(type(node.op)):
            yield ast.AugAssign(node.target, other(), node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    elif isinstance(node, ast.Call) and len(node.args) > 1:
        yield node.args[0]  # a map left out
        if not isinstance(node.args[0], ast.Starred):
            yield ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


def chosen(every: list[Mutant], most: int) -> list[Mutant]:
    """At most `most` of the mutants, spread evenly over the module."""
    if len(every) <= most:
        return every
    return [every[(2 * place + 1) * len(every) // (2 * most)] for place in range(most)]


def home(name: str) -> str:
    """The module of a method, or of what methods share."""
    return f"replifed.algorithms.{name}" if name in SHARED else METHODS[name].partition(":")[0]


def tests_of(name: str) -> list[str]:
    """Unit tests that mention a method's module, or one of `SHARED`; those of all methods first."""
    name = home(SHARED.get(name, name)).rsplit(".", 1)[-1]
    files = sorted((ROOT / "tests/unit").glob("test_*.py"))
    mention = [file for file in files if re.search(rf"\b{name}\b", file.read_text(encoding="utf-8"))]
    ordered = sorted(mention, key=lambda file: file.name != _ALWAYS)
    return [str(file) for file in ordered]


def with_functions(method: str) -> str:
    """The module of a method, or, where that only sets fields, the next one that it inherits from."""
    module, _, name = METHODS[method].partition(":")
    for parent in getattr(import_module(module), name).__mro__:
        if any(inspect.isfunction(value) for key, value in vars(parent).items() if not key.startswith("__")):
            return parent.__module__
    raise ValueError(f"{method} has no functions")


def caught_by(source: str, module: str, tests: list[str], sources: Path) -> str:
    """The first of the tests that fails with `source` in place of the module; empty if all pass."""
    file = sources / (module.replace(".", "/") + ".py")
    original = file.read_text(encoding="utf-8")
    file.write_text(source, encoding="utf-8")
    try:
        return failing(tests, sources)
    finally:
        file.write_text(original, encoding="utf-8")


def failing(tests: list[str], sources: Path) -> str:
    """The first of the tests that fails on these sources; empty if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-rfE"]
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {_SECONDS} s"
    if done.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (?:tests/unit/)?(\S+)", done.stdout, flags=re.MULTILINE)
    return failed.group(1) if failed else "tests do not start"


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Reasons by (module, code, was, now)."""
    if not EQUIVALENT.is_file():
        return {}
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        return {
            (row["module"], row["code"], row["was"], row["now"]): row["reason"]
            for row in csv.DictReader(file)
        }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="methods, or what they share; all by default")
    parser.add_argument("--most", type=int, default=8, help="mutants of each module; default 8")
    arguments = parser.parse_args()
    every = {*METHODS, *SHARED}
    if unknown := set(arguments.names) - every:
        parser.error(f"neither methods nor shared by them: {', '.join(sorted(unknown))}")
    known, survived = equivalents(), 0
    print("| name | line | was | now | caught by |\n|---|--:|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder, "src")
        shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        homes: dict[str, str] = {}
        for name in sorted(arguments.names or every):
            homes.setdefault(home(name), name)  # those that share it share its mutants
        if failed := failing(sorted({test for name in homes.values() for test in tests_of(name)}), sources):
            parser.error(f"without any mutant, {failed} fails: the tests must pass first")
        for place, asked in homes.items():
            module = place if asked in SHARED else with_functions(asked)
            tests, name = tests_of(asked), module.rsplit(".", 1)[-1]
            text = (ROOT / "src" / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8")
            for mutant in chosen(mutants(text), arguments.most):
                reason = known.get((name, mutant.code, mutant.was, mutant.now))
                caught = (
                    f"equivalent: {reason}" if reason else caught_by(mutant.source, module, tests, sources)
                )
                survived += not caught
                cells = [asked, str(mutant.line), f"`{mutant.was}`", f"`{mutant.now}`"]
                print("| " + " | ".join([*cells, caught or "**SURVIVED**"]) + " |", flush=True)
    print(f"\n{survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
