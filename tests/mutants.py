"""Does a test notice when a method is wrong? Run on demand: python tests/mutants.py [NAME ...] [--most N].

From the syntax tree of each method's module (of its parent's, where it has no functions of its own), of
what several methods share, of each client and server on the wire (`forms.fedavg`), and of each module of
claims and of the engine (`claims.rules`), come mutants: a sign turned, a term or a map dropped, operands or
arguments swapped, a number off by one. Each is imported in place of its module by the tests that mention
that module (for what is shared, also by those of a method made of it; for claims and the engine, also by
those that import any of them), file by file, until one fails. A mutant that no test catches has survived:
either the tests want a stronger one, or the mutant computes the same; then it has a line, with the reason,
in `mutants_equivalent.csv`, and does not count.

`--record FILE` keeps what is found, mutant by mutant: the same command goes on where it was ended, and runs
anew what has changed since in the modules, though not what has in the tests. `--against FILE` compares the
shares caught with those of such a file, from the same --most, and fails if one is smaller: that of `--most 3`
is `golden/mutants.csv`.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import inspect
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from replifed.algorithms.registry import METHODS
from replifed.store.atomic import replacing
from replifed.wire.forms import MODULES as FORMS

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "tests/unit"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.csv")
# What methods share and what theory says of them, by its module, and a method that is made of it.
SHARED = {
    "base": "fedavg",
    "client_states": "fedplt",
    "cohort": "fedplt",
    "composite": "fedmid",
    "fedgradmp_rates": "fedgradmp",
    "hard_thresholding": "fedht",
    "local_steps": "fedavg",
    "local_solvers": "fedplt",
    "newton_type": "shed",
    "splitting_theory": "fedplt",
}
# Packages whose modules are all made wrong, if they have functions.
PACKAGES = ("claims", "engine")
# What clients and servers on the wire share.
SHARED_FORMS = ("common", "newton_type")
# Functions that check settings, name what may be seen, or choose small settings.
_NO_FORMULAS = ("__post_init__", "observe", "example")
# A test that notices any change in what a claim measures, right or wrong.
_ANY_CHANGE = "test_tolerances.py::test_every_tolerance_and_measure_is_the_one_in_the_log[measures"
_SECONDS = 600  # for one file of tests, also beside other work
# How a process may end whose kernels are handed the wrong arrays.
_CRASHES = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGFPE)
# Runs pytest with the modules that lie in a folder, by their full names, in place of the real ones, and as if
# they lay where these do. All others stay where they are, and with them the compiled kernels.
_PYTEST = """
import pathlib, sys
from importlib.machinery import PathFinder, SourceFileLoader
class Loader(SourceFileLoader):
    def get_code(self, name):
        return compile(pathlib.Path(sys.argv[1], name + ".py").read_bytes(), self.path, "exec")
class Finder:
    def find_spec(name, path, target=None):
        if not pathlib.Path(sys.argv[1], name + ".py").is_file():
            return None
        spec = PathFinder.find_spec(name, path)
        spec.loader = Loader(name, spec.origin)
        return spec

sys.meta_path.insert(0, Finder)
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""
COLUMNS = ("name", "module", "source", "line", "column", "code", "was", "now", "caught_by")
# Who caught a mutant (nobody: empty; or "equivalent: " and the reason), by all columns before.
Rows = dict[tuple[str, ...], str]
_SAME = "equivalent: "


class Mutant(NamedTuple):
    """One change of a module.

    Attributes
    ----------
    line, column : where it begins in the original file
    code : that line
    was, now : the expression before and after
    source : the whole module
    """

    line: int
    column: int
    code: str
    was: str
    now: str
    source: str


class Part(NamedTuple):
    """A module to be made wrong, its own name or those of its methods, and its tests."""

    names: str
    module: str
    source: str
    tests: list[str]

    def key(self) -> tuple[str, str, str]:
        """How a record's rows of this source begin."""
        digest = hashlib.sha256(self.source.encode()).hexdigest()[:12]
        return self.names, self.module.removeprefix("replifed.").removeprefix("algorithms."), digest


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module's functions, in the order of the lines; docstrings and imports stay."""
    tree, raw = ast.parse(source), source.encode()
    lines = raw.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    found = []
    for node in _expressions(tree):
        for now in dict.fromkeys(map(ast.unparse, _changed(node))):
            if now == (was := ast.unparse(node)):
                continue
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = now if isinstance(node, ast.stmt) else f"({now})"
            changed = raw[:begin] + text.encode() + raw[end:]
            code = lines[node.lineno - 1].decode().strip()
            found.append(Mutant(node.lineno, node.col_offset, code, was, now, changed.decode()))
    return sorted(found, key=lambda mutant: mutant.line)


def _expressions(tree: ast.Module) -> list[ast.AST]:
    """What may be changed: all that functions do, but for `_NO_FORMULAS` and messages."""
    walked = list(ast.walk(tree))
    messages = {id(part) for node in walked if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    inside = {
        id(node): node  # functions in functions are met twice
        for function in walked
        if isinstance(function, ast.FunctionDef) and function.name not in _NO_FORMULAS
        for statement in function.body
        for node in ast.walk(statement)
    }
    return [node for key, node in inside.items() if key not in messages]


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
        if not isinstance(node.args[0], ast.Starred):
            yield node.args[0]  # a map left out
            yield ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)


def chosen(every: list[Mutant], most: int) -> list[Mutant]:
    """At most `most` of the mutants, spread evenly over the module."""
    if len(every) <= most:
        return every
    return [every[(2 * place + 1) * len(every) // (2 * most)] for place in range(most)]


def parts() -> list[Part]:
    """All that can be made wrong; methods of one module share its mutants."""
    homes = defaultdict(list)
    for name in sorted(METHODS):
        homes[home(name)].append(name)
    found = [(names, with_functions(names[0]), names[0]) for names in homes.values()]
    found += [([name], f"replifed.algorithms.{name}", method) for name, method in SHARED.items()]
    made = [
        Part(
            " ".join(names),
            module,
            text_of(module),
            tests_of(module, {*names, home(method).rpartition(".")[2]}),
        )
        for names, module, method in found
    ]
    forms = (f"forms.{name}" for name in sorted({*FORMS.values(), *SHARED_FORMS}))
    wire = [str(UNIT / "test_wire.py")]
    made += [Part(name, f"replifed.wire.{name}", text_of(f"replifed.wire.{name}"), wire) for name in forms]
    for package in PACKAGES:
        for file in sorted((ROOT / "src/replifed" / package).glob("[!_]*.py")):
            if mutants(source := file.read_text(encoding="utf-8")):
                module = f"replifed.{package}.{file.stem}"
                tests = tests_of(module, {f"replifed.{package}", file.stem})
                made.append(Part(f"{package}.{file.stem}", module, source, tests))
    return made


def text_of(module: str) -> str:
    """Source of a module."""
    return Path(import_module(module).__file__).read_text(encoding="utf-8")


def home(method: str) -> str:
    """The module in which a method is registered."""
    return METHODS[method].partition(":")[0]


def with_functions(method: str) -> str:
    """The module of a method, or, where that only sets fields, the next one that it inherits from."""
    module, _, name = METHODS[method].partition(":")
    for parent in getattr(import_module(module), name).__mro__:
        members = (value for key, value in vars(parent).items() if not key.startswith("__"))
        if any(inspect.isfunction(value) or isinstance(value, staticmethod) for value in members):
            return parent.__module__
    raise ValueError(f"{method} has no functions")


def tests_of(module: str, words: set[str]) -> list[str]:
    """Unit tests that mention one of the words: first those that import the module, then its package.

    Last come those that take every method of the registry.
    """
    package = f"from {module.rpartition('.')[0]}"
    mention, imports = (re.compile(rf"\b({pattern})\b") for pattern in ("|".join(words), re.escape(module)))
    order = {}
    for file in UNIT.glob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        mentions = len(mention.findall(text))
        if mentions or re.search(r"registry import .*\bMETHODS\b", text):
            order[str(file)] = not imports.search(text), package not in text, -mentions, file.name
    return sorted(order, key=order.get)


def caught_by(part: Part, mutant: Mutant) -> str:
    """The first of the tests that fails with the mutant; empty if all pass."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{part.module}.py").write_text(mutant.source, encoding="utf-8")
        return next(filter(None, (failing([file], folder, _SECONDS) for file in part.tests)), "")


def failing(tests: list[str], folder: str, seconds: float | None = None) -> str:
    """The first of the tests that fails with the modules in `folder`; empty if all pass."""
    pytest = [sys.executable, "-c", _PYTEST, folder, "-x", "-q", "-rfE", "-p", "no:cacheprovider"]
    pytest += ["--deselect", f"tests/unit/{_ANY_CHANGE}"]
    own = {"PYTHONPATH": f"{ROOT}/src", "OMP_NUM_THREADS": "1", "HYPOTHESIS_STORAGE_DIRECTORY": folder}
    try:
        done = subprocess.run(
            [*pytest, "--hypothesis-seed=0", *tests],
            cwd=ROOT,
            env=os.environ | own,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {seconds} s"
    named = re.findall(r"^(?:FAILED|ERROR) (?:tests/unit/)?(.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode in _CRASHES:
        return f"{Path(tests[0]).name}: {signal.Signals(-done.returncode).name}"
    if done.returncode and not named:  # someone has ended it: nobody knows what the tests would have said
        raise ChildProcessError(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return named[-1] if done.returncode else ""


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Reasons by (module, code, was, now)."""
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        return {
            (row["module"], row["code"], row["was"], row["now"]): row["reason"]
            for row in csv.DictReader(file)
        }


def read(file: Path) -> Rows:
    with file.open(encoding="utf-8", newline="") as lines:
        return {tuple(row[:-1]): row[-1] for row in list(csv.reader(lines))[1:]}


def write(file: Path, rows: Rows) -> None:
    """Keep a record whole, in an order that does not depend on which mutant was done first."""
    ordered = sorted(rows.items(), key=lambda row: (*row[0][:2], int(row[0][3]), int(row[0][4]), row[0]))
    with replacing(file) as temporary, temporary.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([COLUMNS, *((*key, by) for key, by in ordered)])


def run(asked: list[Part], rows: Rows, options: argparse.Namespace) -> Rows:
    """What becomes of the mutants of what is asked; those that `rows` lack are run, and added to them."""
    known, due, keys = equivalents(), {}, []
    for part in asked:
        for mutant in chosen(mutants(part.source), options.most):
            keys.append(key := (*part.key(), *map(str, mutant[:-1])))
            by = rows.get(key, _SAME)
            if reason := known.get((key[1], mutant.code, mutant.was, mutant.now)):
                rows[key] = _SAME + reason
            elif by.startswith(_SAME) or (options.survivors and not by):
                due[key] = part, mutant
    must_pass([part for part in asked if any(part is other for other, _ in due.values())])
    pool = ThreadPoolExecutor(options.jobs)
    running = {pool.submit(caught_by, *made): key for key, made in due.items()}
    print("| name | module | line | was | now | caught by |\n|---|---|--:|---|---|---|", flush=True)
    try:
        for done in as_completed(running):
            key = running[done]
            rows[key] = done.result()
            cells = [*key[:2], key[3], f"`{key[6]}`", f"`{key[7]}`", rows[key] or "**SURVIVED**"]
            print(f"| {' | '.join(cells)} |", flush=True)
            if options.record:
                write(options.record, rows)
    finally:
        pool.shutdown(cancel_futures=True)
        # What has ended may not have come up yet when another stops the program; nothing may have been due.
        ended = [one for one in running if not one.cancelled() and not one.exception()]
        rows |= {running[one]: one.result() for one in ended}
        if options.record:
            write(options.record, rows)
    return {key: rows[key] for key in keys}


def must_pass(asked: list[Part]) -> None:
    """Stop where tests fail although nothing has been made wrong."""
    with tempfile.TemporaryDirectory() as folder:
        for part in asked:
            Path(folder, f"{part.module}.py").write_text(part.source, encoding="utf-8")
        tests = sorted({file for part in asked for file in part.tests})
        if tests and (failed := failing(tests, folder)):
            sys.exit(f"without any mutant, {failed} fails: the tests must pass first")


def shares(rows: Rows) -> dict[str, tuple[int, int]]:
    """By name: mutants caught, and all that do not compute the same."""
    caught = defaultdict(list)
    for key, by in sorted(rows.items()):
        for name in key[0].split():
            caught[name] += [bool(by)] * (not by.startswith(_SAME))
    return {name: (sum(each), len(each)) for name, each in caught.items() if each}


def worse(now: dict[str, tuple[int, int]], before: dict[str, tuple[int, int]]) -> int:
    """Print the shares; how many are smaller than before."""
    fell = 0
    print("\n| name | mutants | caught | share | before |\n|---|--:|--:|--:|--:|")
    for name, (caught, made) in now.items():
        old_caught, old_made = before.get(name, (0, 1))
        lower = caught / made < old_caught / old_made
        fell += lower
        then = f"{old_caught / old_made:.0%}" + " **worse now**" * lower if name in before else ""
        print(f"| {name} | {made} | {caught} | {caught / made:.0%} | {then} |")
    return fell


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="of methods, what they share, or modules; all by default")
    parser.add_argument("--most", type=int, default=8, help="mutants of each module; default 8")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once; default 1")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep what is found, and go on from it")
    parser.add_argument("--survivors", action="store_true", help="run those of the record anew as well")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="only print the shares of a record")
    parser.add_argument("--against", type=Path, metavar="FILE", help="a record whose shares must be held")
    options = parser.parse_args(words)
    before = read(options.against) if options.against else {}
    if options.summary:
        rows = read(options.summary)
    else:
        every = parts()
        if unknown := set(options.names) - {name for part in every for name in part.names.split()}:
            parser.error(f"no such method or module: {', '.join(sorted(unknown))}")
        asked = [part for part in every if not options.names or set(options.names) & set(part.names.split())]
        old = read(options.record) if options.record and options.record.exists() else {}
        current = {part.key() for part in every}
        rows = run(asked, {key: by for key, by in old.items() if key[:3] in current}, options)
    fell, survived = worse(shares(rows), shares(before)), sum(not by for by in rows.values())
    print(f"\n{survived} survived")
    return 1 if (fell if before else survived) else 0


if __name__ == "__main__":
    sys.exit(main())
