"""The comparison of custom methods with built-in ones, on the problems of `cross`: `snakemake compare`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from replifed.algorithms.registry import BUILT_IN, METHODS, method_class
from replifed.claims.pairs import matrix
from replifed.figures.artefact import Made, by_name
from replifed.figures.lines import Line
from replifed.papers.cross import clients
from replifed.papers.cross.figures import TABLES as CROSS
from replifed.papers.cross.figures import USED, figure, render_used
from replifed.papers.cross.paper import EVERY, FAIR

PAPER = {
    "name": "A comparison with your methods",
    "citation": "Methods of your own and built-in ones on the same problems, tuned on the same budget.",
    "doi": "",
}
# Lines of custom methods: thicker, and in colours that no built-in method has.
_CUSTOM = [
    Line("", color, "-", marker, 2.4)
    for color, marker in (("#C2185B", "h"), ("#6D4C41", "p"), ("#827717", "d"), ("#4527A0", "H"))
]


def lines() -> dict[str, Line]:
    """Return lines: built-in methods' as in `cross`, others' by their attributes label and line, if any."""
    custom = [name for name in METHODS if name not in EVERY and name not in BUILT_IN]
    styled = {}
    for number, name in enumerate(custom):
        cls, default = method_class(name), _CUSTOM[number % len(_CUSTOM)]
        label = getattr(cls, "label", cls.__name__)
        styled[name] = getattr(cls, "line", default)._replace(label=label)
    return {**styled, **EVERY}


def _labels() -> dict[str, str]:
    return {name: line.label for name, line in lines().items()}


def _table(name: str, show: Callable[[pd.DataFrame], Any], caption: str) -> Made:
    """Return a table of `cross` that names custom methods, too."""
    made = CROSS[name]
    return Made(name, made.title, caption, made.table, show)


# Of one method alone.
_NO_PAIRS = {"no pairs": pd.DataFrame({"method": ["one method has none to be compared with"]})}

FIGURES = by_name(
    figure(
        "fig1",
        prefix="Comparison",
        title="Relative gap",
        caption=f"Relative gap (F - F*) / (F(0) - F*), median and range over seeds. {FAIR} "
        "Data of your own have the loss that they name.",
        lines=lambda frame: lines(),  # when it is drawn: this imports custom methods
    ),
    clients.PICTURE,
)

TABLES = by_name(
    _table("table1", lambda frame: render_used(frame, _labels()), f"{USED} {FAIR}"),
    _table("pairs", lambda frame: matrix(frame, _labels()) or _NO_PAIRS, CROSS["pairs"].caption),
    clients.HETEROGENEITY,
    clients.NAMED,
)
