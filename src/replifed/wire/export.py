"""A method as a folder that `flwr run` takes."""

from __future__ import annotations

import runpy
import shutil
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from replifed.algorithms.registry import METHODS, method_class
from replifed.errors import ConfigError
from replifed.store.folders import fill, new_folder
from replifed.wire.forms import forms_of

_PACKAGE = "replifed_app"


def export(method: str, folder: Path) -> list[Path]:
    """Write an app of a method with client and server, with the settings of its example; return its files.

    Parameters
    ----------
    method : name of a method, or FILE.py:CLASS, whose file becomes part of the app.
    folder : a new one.

    Raises
    ------
    ConfigError
        In one line: there is no such method, it has no client and server, its file has a name that the app
        needs, its settings cannot be written as code, or the folder exists.
    """
    example = method_class(method).example()
    forms_of(example)
    file, _, cls = METHODS.get(method, method).rpartition(":")
    with new_folder(folder):
        written = fill(folder, "flower", lambda text: text.replace("NAME", cls))
        definition = folder / _PACKAGE / "method.py"
        definition.write_text(_definition(example, file), encoding="utf-8")
        written.append(definition)
        if file.endswith(".py"):
            copy = folder / _PACKAGE / Path(file).name
            if copy.exists():
                raise ConfigError(f"{file}: the app has a {copy.name} of its own; rename yours")
            written.append(Path(shutil.copy(file, copy)))
        try:
            runpy.run_path(str(definition))
        except (NameError, SyntaxError):
            raise ConfigError(f"{method}: {example!r} is no code: give its example plain numbers") from None
    return written


def _definition(example: Any, file: str) -> str:
    """Return a module with the method's settings, from which they can be changed."""
    cls, own = type(example), file.endswith(".py")
    parts = {type(one) for one in _dataclasses(example)}
    # The module of one's own file has another name where the app runs.
    in_file = {one for one in parts if own and one.__module__ == cls.__module__}
    others = sorted(one.__name__ for one in in_file - {cls})
    lines = ['"""The method and its settings."""\n']
    if own:
        lines.append("from pathlib import Path\n")
        lines += ["from replifed.algorithms.own import module_of"] if others else []
        lines.append("from replifed.algorithms.registry import method_class")
    lines += sorted(f"from {one.__module__} import {one.__name__}" for one in parts - in_file)
    if own:
        lines += [
            f"\n_FILE = Path(__file__).with_name({Path(file).name!r})",
            f'{cls.__name__} = method_class(f"{{_FILE}}:{cls.__name__}")',
        ]
        lines += [f"{one} = module_of(str(_FILE)).{one}" for one in others]
    return "\n".join([*lines, f"\nMETHOD = {example!r}\n"])


def _dataclasses(owner: Any) -> list[Any]:
    """A dataclass and those in its fields."""
    within = (getattr(owner, one.name) for one in fields(owner))
    return [owner, *(part for value in within if is_dataclass(value) for part in _dataclasses(value))]
