"""Names of all methods, and what their classes say of theory. Importing this module loads none of them."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from replifed.errors import ConfigError, unknown_name


class Declared(NamedTuple):
    """What the class of a built-in method says of itself."""

    source: str  # MODULE:CLASS
    label: str  # name in figures and tables
    look: tuple[Any, ...] | None  # see `figures.lines.described`; None for a look by default


def declared(folder: Path) -> dict[str, Declared]:
    """Return the methods in the modules of `replifed.algorithms`, by name: the classes with a `name`.

    The sources are read, not imported, so that a method is loaded only when it is used.
    """
    found: dict[str, Declared] = {}
    for file in sorted(folder.glob("*.py")):
        text = file.read_text(encoding="utf-8")
        if not re.search(r"^    name\b", text, re.MULTILINE):  # parsing takes longer
            continue
        for node in ast.parse(text, str(file)).body:
            if isinstance(node, ast.ClassDef) and "name" in (said := _literals(node, file)):
                name, source = said["name"], f"{__package__}.{file.stem}:{node.name}"
                if name in found:
                    raise ConfigError(f"{found[name].source} and {source} have one name, {name}; rename one")
                found[name] = Declared(source, said.get("label", node.name), said.get("look"))
    return dict(sorted(found.items()))


def _literals(node: ast.ClassDef, file: Path) -> dict[str, Any]:
    """Return the class attributes that are read without an import."""
    said = {}
    for one in node.body:
        if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None:
            target = one.targets[0] if isinstance(one, ast.Assign) else one.target
            if isinstance(target, ast.Name) and target.id in ("name", "label", "look"):
                try:
                    said[target.id] = ast.literal_eval(one.value)
                except ValueError:
                    text = f"{file}:{one.lineno}: write {target.id} out: it is read and not computed"
                    raise ConfigError(text) from None
    return said


BUILT_IN = declared(Path(__file__).parent)
METHODS = {name: one.source for name, one in BUILT_IN.items()}
# Custom methods, NAME: FILE.py:CLASS as JSON, for jobs, which are other processes.
_VARIABLE = "REPLIFED_METHODS"
INSTALLED = {entry.name: entry.value for entry in entry_points(group="replifed.methods")}  # of other packages
METHODS |= INSTALLED
METHODS |= json.loads(os.environ.get(_VARIABLE, "{}"))


def register(methods: Mapping[str, str]) -> None:
    """Add methods, NAME: FILE.py:CLASS, in this process and in those that it starts."""
    METHODS.update(methods)
    os.environ[_VARIABLE] = json.dumps(dict(methods))


def registered() -> dict[str, str]:
    """Name and value of the environment variable that passes the custom methods to other processes."""
    return {_VARIABLE: os.environ[_VARIABLE]} if _VARIABLE in os.environ else {}


def method_class(name: str) -> type[Any]:
    """Return the class of the method called `name`, or of a custom one, `FILE.py:CLASS`."""
    if ":" in name or name.endswith(".py"):
        return class_of(name)
    if name not in METHODS:
        raise ConfigError(unknown_name("method", name, METHODS))
    return class_of(METHODS[name])


def class_of(source: str) -> type[Any]:
    """Return the class of `MODULE:CLASS`, or of `FILE.py:CLASS`, a custom method."""
    module, colon, attribute = source.rpartition(":")
    if not colon:
        raise ConfigError(f"{source}: no method; write FILE.py:CLASS, such as mine.py:Mine")
    if module.endswith(".py"):
        # A composed name, since one in full would make `own` a source of every job.
        return import_module(f"{__package__}.own").load(source)
    return getattr(import_module(module), attribute)


# -- Parameters that a method's own theory gives, for runs without a search (`comparison.untuned`) -----------


def tunes(name: str) -> bool:
    """True if the method has a number to tune."""
    method = method_class(name)
    by_default = getattr(method, "tuned", "step") in [field.name for field in fields(method)]
    return getattr(method, "searched", by_default)


def theory_of(name: str) -> str:
    """Return what theory gives a method with a number to tune; "" if it gives nothing."""
    said: Any = getattr(method_class(name), "theory", "")
    return said if isinstance(said, str) else ""


def without_theory(name: str) -> str:
    """Return why theory gives a method no parameters; "" if it does, or none is needed."""
    given = not tunes(name) or theory_of(name)
    return "" if given else "no theorem of its paper that fixes its parameters is in the code"
