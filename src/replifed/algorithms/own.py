"""Custom method from a file, `FILE.py:CLASS`.

A dataclass of settings with `round` is enough; `Method` has defaults for the rest.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from dataclasses import is_dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from replifed.algorithms.base import Method, check_settings
from replifed.algorithms.guarded import (
    EndsProcessError,
    at_arms_length,
    guarded,
    members_at_arms_length,
    say,
)
from replifed.errors import ConfigError, unknown_name

_NEEDED = "a method is a dataclass of settings with a function round(self, state, problem, ctx)"


def load(source: str) -> type[Any]:
    """Return the class of `FILE.py:CLASS`, with defaults for what it leaves out.

    Raises
    ------
    ConfigError
        In one line: there is no such file or class, it cannot be imported, or lacks a part of the contract.
    """
    file, _, name = source.rpartition(":")
    module = module_of(file)
    members = vars(module).items()
    classes = [
        key for key, value in members if isinstance(value, type) and value.__module__ == module.__name__
    ]
    if name not in classes:
        raise ConfigError(f"{file}: {unknown_name('class', name, classes)}")
    return _completed(getattr(module, name), file)


def module_of(file: str) -> ModuleType:
    """Import a custom file; an error on the way becomes a message of one line."""
    path = Path(file).resolve()
    if not path.is_file():
        raise ConfigError(f"{file} does not exist; correct the path")
    return _module(path, file)


@cache
def _module(path: Path, shown: str) -> ModuleType:
    name = f"replifed_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # it ends in .py
    module = sys.modules[name] = module_from_spec(spec)
    try:
        with guarded(path, "importing it") as changed:
            spec.loader.exec_module(module)
    except EndsProcessError as error:
        del sys.modules[name]
        raise EndsProcessError(str(error).replace(str(path), shown, 1)) from error
    except Exception as error:
        del sys.modules[name]
        # A syntax error's own text names file and line once more.
        text = error.msg if isinstance(error, SyntaxError) else error
        raise ConfigError(f"{shown}:{_line(error, path)}: {type(error).__name__}: {text}") from error
    say(shown, "importing it", changed)
    module.__dict__["replifed_changed"] = changed
    return module


def _line(error: Exception, path: Path) -> int:
    """Line of the file in which an error was raised."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return ([1] + [frame.lineno or 1 for frame in frames if frame.filename == str(path)])[-1]


def _completed(cls: type[Any], file: str) -> type[Any]:
    try:
        where = f"{file}:{inspect.getsourcelines(cls)[1]}: {cls.__name__}"
    except (OSError, TypeError):  # it was made, not written
        where = f"{file}: {cls.__name__}"
    if not is_dataclass(cls):
        raise ConfigError(f"{where} is no dataclass; {_NEEDED}")
    if not callable(getattr(cls, "round", None)):
        raise ConfigError(f"{where} has no round; {_NEEDED}")

    def init(self: Any, *arguments: Any, **settings: Any) -> None:
        cls.__init__(self, *arguments, **settings)
        check_settings(self)

    own, path = issubclass(cls, Method), Path(file).resolve()
    kept = members_at_arms_length(cls, path)
    if not own:
        kept["__init__"] = at_arms_length(init, path)
    described = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls,) if own else (cls, Method), {**kept, **described})
