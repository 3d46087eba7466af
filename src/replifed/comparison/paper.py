"""What the comparison is called, and the line of each method, of one's own too."""

from __future__ import annotations

from replifed.algorithms.registry import BUILT_IN, METHODS, method_class
from replifed.figures.style import Line
from replifed.papers.cross.paper import EVERY

PAPER = {
    "name": "A comparison with your methods",
    "citation": "Methods of your own and built-in ones on the same problems, tuned on the same budget.",
    "doi": "",
}
# Lines of one's own methods: thicker, and in colours that no built-in method has.
_OWN = [
    Line("", color, "-", marker, 2.4)
    for color, marker in (("#C2185B", "h"), ("#6D4C41", "p"), ("#827717", "d"), ("#4527A0", "H"))
]


def lines() -> dict[str, Line]:
    """Built-in methods as in `cross`; others by their attributes label and line, or by their class's name."""
    others = [name for name in METHODS if name not in EVERY and name not in BUILT_IN]
    found = {}
    for number, name in enumerate(others):
        cls, default = method_class(name), _OWN[number % len(_OWN)]
        label = getattr(cls, "label", cls.__name__)
        found[name] = getattr(cls, "line", default)._replace(label=label)
    return {**found, **EVERY}
