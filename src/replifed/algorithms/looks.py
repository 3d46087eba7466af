"""The look of each method, as its class declares it, equal in the pictures of all papers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from replifed.algorithms.registry import BUILT_IN, METHODS, method_class
from replifed.figures.lines import Line, described

# Looks of methods that declare none: in colours that no built-in method declares.
_COLOURS, _MARKERS = ("#C2185B", "#6D4C41", "#827717", "#4527A0"), ("h", "p", "d", "H")
_DASHES = ("-", (0, (6, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
# Of custom methods, which are thicker.
_WIDTH = 2.4


def method_line(method: str, label: str = "", **changed: Any) -> Line:
    """Return the line of a method, or of a variant of it whose look is `changed`."""
    if method in BUILT_IN:
        said, look = BUILT_IN[method].label, BUILT_IN[method].look
    else:
        said, look = _of_custom(method_class(method))
        changed = {"width": _WIDTH, **changed} if look is None else changed
    line = _by_default(method) if look is None else described(said, *look)
    return line._replace(label=label or said, **changed)


def method_lines(methods: Iterable[str]) -> dict[str, Line]:
    """Return the line of each method."""
    return {method: method_line(method) for method in methods}


def _of_custom(cls: type[Any]) -> tuple[str, tuple[Any, ...] | None]:
    """Return the label and the look of a class, without those of a built-in method that it extends."""
    own: dict[str, Any] = {}
    for one in reversed(cls.__mro__):
        own |= {} if one.__module__.startswith("replifed.") else vars(one)
    return own.get("label", cls.__name__), own.get("look")


def _by_default(method: str) -> Line:
    """Return a line that no other method has, by the method's number among those that declare none."""
    number = [one for one in METHODS if one not in BUILT_IN or BUILT_IN[one].look is None].index(method)
    n = len(_COLOURS)
    marker = _MARKERS[(number + number // n**2) % n]
    return Line("", _COLOURS[number % n], _DASHES[number // n % n], marker)
