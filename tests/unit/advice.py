"""Commands that the messages of this repository name, found in its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = "replifed", "snakemake", "pip", "make", "rm", "cp", "kill", "cd"
# In backticks, or after a colon to the end.
_COMMAND = re.compile(
    rf"`((?:{'|'.join(PROGRAMS)}) [^`]+|\{{\}}[^`]*)`|: ((?:replifed|snakemake|pip) [a-z{{-][^`]*)$"
)


def texts(tree: ast.AST) -> Iterator[str]:
    """Strings of a module, docstrings left out; what an f-string fills in is {}."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            skipped.add(id(node.body[0].value))
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node)} - {id(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)


def commands() -> dict[str, str]:
    """Each command with the file that names it."""
    found = {}
    for file in sorted((ROOT / "src/replifed").rglob("*.py")):
        for text in texts(ast.parse(file.read_text())):
            for match in _COMMAND.finditer(text):
                command = match[1] or match[2]
                name = str(file.relative_to(ROOT / "src/replifed"))
                # What is filled in as a whole is told apart by where it stands.
                found[f"{name}: {command}" if command.startswith("{}") else command] = name
    for file in sorted((ROOT / "workflow").rglob("*.smk")):
        for text in re.findall(r'"([^"\n]*)"', file.read_text()):
            for match in _COMMAND.finditer(text):
                found[match[1] or match[2]] = str(file.relative_to(ROOT))
    return found


if __name__ == "__main__":
    for command, file in commands().items():
        print(f"{file[:34]:34} {command}")
