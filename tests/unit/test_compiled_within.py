"""Functions that only compiled ones may call, since Python crashes in them, are called by no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import replifed

SOURCE = Path(replifed.__file__).parent


def test_no_module_but_kernels_calls_what_has_no_python_wrapper():
    kernels = list((SOURCE / "kernels").glob("*.py"))
    within = {
        node.name
        for path in kernels
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(one, ast.Name) and one.id == "compiled_within" for one in node.decorator_list)
    }
    assert "on_minibatch" in within
    for path in (*SOURCE.rglob("*.py"), *Path(__file__).parent.glob("*.py")):
        text = path.read_text()
        if path in kernels or "replifed.kernels" not in text:
            continue
        called = {
            alias.name
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("replifed.kernels")
            for alias in node.names
        }
        for module in called & {path.stem for path in kernels}:
            called |= set(re.findall(rf"\b{module}\.(\w+)", text))
        assert not within & called, path
