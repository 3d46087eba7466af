"""Guard around custom code: it cannot end or fork the process, and global state is restored after it."""

from __future__ import annotations

import ctypes
import os
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from replifed.errors import ConfigError

_MT19937_BYTES = 624 * 4 + 4  # its words, and the place among them


class _State(NamedTuple):
    """One kind of global state."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], Any]


def _numpy_random() -> tuple[Any, bytes]:
    """Generator behind np.random, and its memory: `get_state` takes as long as a short round."""
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined, unused-ignore]
    known = isinstance(bits, np.random.MT19937)
    return bits, ctypes.string_at(bits.ctypes.state_address, _MT19937_BYTES) if known else b""


def _set_numpy_random(saved: tuple[Any, bytes]) -> None:
    bits, memory = saved
    np.random.set_bit_generator(bits)  # type: ignore[attr-defined, unused-ignore]
    ctypes.memmove(bits.ctypes.state_address, memory, len(memory))


def _set_environment(saved: dict[Any, Any]) -> None:
    names = {os.fsdecode(name): os.fsdecode(value) for name, value in saved.items()}
    for name in os.environ.keys() - names.keys():
        del os.environ[name]
    os.environ.update(names)


def _set_filters(saved: list[Any]) -> None:
    warnings.filters[:] = saved  # type: ignore[index]


_STATES = (
    _State("np.random (draw from ctx.streams)", _numpy_random, _set_numpy_random),
    _State("random (draw from ctx.streams)", random.getstate, random.setstate),
    _State("np.seterr", np.geterr, lambda saved: np.seterr(**saved)),
    _State("np.set_printoptions", np.get_printoptions, lambda saved: np.set_printoptions(**saved)),
    _State("the working folder", os.getcwd, os.chdir),
    _State("the environment", lambda: dict(os.environ._data), _set_environment),  # type: ignore[attr-defined, unused-ignore]
    _State("the filters of warnings", lambda: [*warnings.filters], _set_filters),
    _State("the limit of recursion", sys.getrecursionlimit, sys.setrecursionlimit),
)
# Functions of `os` that end the process, or fork it.
_LEAVE = ("_exit", "abort", "fork", "forkpty", "execv", "execve")

_OWN_DUNDERS = ("__init__", "__post_init__")

_inside = False
_said: set[str] = set()


class EndsProcessError(ConfigError):
    """Custom code ends the process, or forks it."""


class _LeftError(BaseException):
    """A function of `_LEAVE` was called."""


@contextmanager
def guarded(path: Path | str, what: str) -> Iterator[list[str]]:
    """Run custom code of the file `path`, called `what` in messages.

    Yields a list. At the end it gets the names of the global state that the code has changed; the outermost
    of nested blocks restores that state.

    Raises
    ------
    EndsProcessError
        The code ends the process or forks it, or raises an exception that is neither an `Exception` nor a
        `KeyboardInterrupt`; the error names the line.
    """
    global _inside
    changed: list[str] = []
    outermost, kept = not _inside, {name: getattr(os, name) for name in _LEAVE}
    before = [state.read() for state in _STATES] if outermost else []
    try:
        _inside = True
        if outermost:
            for name in kept:
                setattr(os, name, _refused(name))
        yield changed
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        shown = str(error) if isinstance(error, _LeftError) else f"{type(error).__name__}({error})"
        where = located(error, path)
        raise EndsProcessError(
            f"{where}: {what} ends or forks the process: {shown}; leave that out"
        ) from error
    finally:
        if outermost:
            _inside = False
            for name, function in kept.items():
                setattr(os, name, function)
            for state, saved in zip(_STATES, before, strict=True):
                if state.read() != saved:
                    state.write(saved)
                    changed.append(state.name)


def _refused(name: str) -> Callable[..., None]:
    def leave(*_: Any, **__: Any) -> None:
        raise _LeftError(f"os.{name}")

    return leave


def located(error: BaseException, path: Path | str) -> str:
    """File `path` and its line at which an error was raised; the file alone if no line of it is involved."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)


def members_at_arms_length(cls: type, path: Path) -> dict[str, Any]:
    """Guarded versions of the functions that `cls` and its bases in the file `path` define."""
    kept: dict[str, Any] = {}
    for one in reversed(cls.__mro__):
        for name, member in vars(one).items() if one.__module__ == cls.__module__ else ():
            if isinstance(member, FunctionType) and (name in _OWN_DUNDERS or not name.startswith("__")):
                kept[name] = at_arms_length(member, path)
            elif isinstance(member, classmethod):
                kept[name] = classmethod(at_arms_length(member.__func__, path))
            elif isinstance(member, property) and member.fget is not None:
                kept[name] = property(at_arms_length(member.fget, path))
    return kept


def at_arms_length(function: Callable[..., Any], path: Path) -> Callable[..., Any]:
    """Guarded version of a function: global state that it changes is restored, and reported once."""

    @wraps(function)
    def kept(*arguments: Any, **named: Any) -> Any:
        with guarded(path, function.__name__) as changed:
            result = function(*arguments, **named)
        say(path, function.__name__, changed)
        return result

    return kept


def say(path: Path | str, what: str, changed: list[str]) -> None:
    """Report the global state that custom code has changed, each name once."""
    for name in changed:
        text = f"replifed: {path}: {what} changes {name}, which is set back"
        if text not in _said:
            _said.add(text)
            print(text, file=sys.stderr)
