"""What the comparison is called, and the line of each method, of one's own too."""

from __future__ import annotations

from replifed.algorithms.registry import BUILT_IN, METHODS, method_class
from replifed.figures.style import SEQUENCE, Line
from replifed.papers.cross.paper import EVERY

PAPER = {
    "name": "A comparison with your methods",
    "citation": "Methods of your own and built-in ones on the same problems, tuned on the same budget.",
    "doi": "",
}
# Lines of one's own methods are thicker.
_WIDTH = 2.4


def lines() -> dict[str, Line]:
    """Built-in methods as in `cross`; others by their attributes label and line, or by their class's name."""
    others = [name for name in METHODS if name not in EVERY and name not in BUILT_IN]
    found = {}
    for number, name in enumerate(others):
        cls, default = method_class(name), SEQUENCE[number % len(SEQUENCE)]
        label = getattr(cls, "label", cls.__name__)
        found[name] = getattr(cls, "line", default._replace(width=_WIDTH))._replace(label=label)
    return {**found, **EVERY}
