"""The comparison of custom methods with built-in ones, on the problems of `cross`: `snakemake compare`."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from replifed.algorithms.registry import BUILT_IN, METHODS, method_class
from replifed.claims.pairs import matrix
from replifed.claims.targets import within_reach
from replifed.figures.artefact import Made, by_name
from replifed.figures.curves import visible_range, with_margin
from replifed.figures.lines import Line
from replifed.papers.cross import clients, vary
from replifed.papers.cross.figures import (
    AUDITED,
    FLOOR,
    PAIRED,
    TARGETS,
    USED,
    figure,
    pairs_to,
    render_used,
    used_to,
)
from replifed.papers.cross.paper import EVERY, FAIR

PAPER = {
    "name": "A comparison with your methods",
    "citation": "Your methods and built-in ones on the same problems, with one budget for tuning.",
    "doi": "",
}
# Lines of custom methods: thicker, and in colours that no built-in method has.
_CUSTOM = [
    Line("", color, dashes, marker, 2.4)
    for dashes in ("-", (0, (6, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
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


def _targets(histories: Mapping[str, pd.DataFrame]) -> tuple[float, ...]:
    return within_reach(histories, TARGETS)


_REACHED = (
    "A target is 1e-2 or 1e-4 where at least two methods reach it, else the next larger of 2e-4, 5e-4, "
    "1e-3, ... that two do."
)
_OWN = (
    "Custom data have the loss that they name. Their clients have equal weights unless the data say weights: "
    "samples; then a method that takes plain means gets the losses N p_i f_i."
)
# Of one method alone.
_NO_PAIRS = {"no pairs": pd.DataFrame({"method": ["one method has none to be compared with"]})}


def _ends(panel: pd.DataFrame) -> tuple[float, float]:
    """Ends of the axis of gaps: what the curves of a panel reach, down to the floor."""
    low, high = with_margin(*visible_range(panel, "method"), True)
    return max(low, FLOOR / 3), high


FIGURES = by_name(
    figure(
        "fig1",
        prefix="Comparison",
        title="Relative gap",
        caption=f"Relative gap (F - F*) / (F(0) - F*), median and range over seeds. {FAIR} {_OWN}",
        lines=lambda frame: lines(),  # when it is drawn: this imports custom methods
        limits=_ends,
    ),
    clients.PICTURE,
    vary.picture(_labels),
)

TABLES = by_name(
    Made(
        "table1",
        "Gap at the end, and use until it stays at a target",
        f"In the order of rounds, and then of gaps. {USED} {_REACHED} {AUDITED} {FAIR} {_OWN}",
        used_to(_targets),
        lambda frame: render_used(frame, _labels(), ranked=True),
    ),
    Made(
        "pairs",
        "Which of two methods needs less until the relative gap stays at a target",
        f"{PAIRED} {_REACHED} Where there is none, the gaps at the end are compared, by one mark.",
        pairs_to(_targets),
        lambda frame: matrix(frame, _labels()) or _NO_PAIRS,
    ),
    clients.HETEROGENEITY,
    clients.NAMED,
    vary.table(_labels),
)
