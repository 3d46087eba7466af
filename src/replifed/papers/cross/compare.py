"""The comparison of custom methods with built-in ones, on the problems of `cross`: `snakemake compare`."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from replifed.claims.pairs import matrix
from replifed.claims.targets import within_reach
from replifed.figures.artefact import Made, by_name
from replifed.figures.curves import visible_range, with_margin
from replifed.papers.cross import accuracy, clients, cohorts, vary
from replifed.papers.cross.figures import (
    AUDITED,
    FLOOR,
    PAIRED,
    TARGETS,
    USED,
    all_pairs,
    figure,
    render_used,
    use,
)
from replifed.papers.cross.paper import FAIR

PAPER = {
    "name": "A comparison with your methods",
    "citation": "Your methods and built-in ones on the same problems, with one budget for tuning.",
    "doi": "",
}


def _targets(histories: Mapping[str, pd.DataFrame]) -> tuple[float, ...]:
    return within_reach(histories, TARGETS)


_REACHED = (
    "A target is 1e-2 or 1e-4 where at least two methods reach it, else the next larger of 2e-4, 5e-4, "
    "1e-3, ... that two do."
)
_OWN = (
    "Custom data have the loss that they name. Their clients have equal weights unless the data say weights: "
    "samples; then a method that takes plain means gets the losses N p_i f_i. "
    "Where a problem's name says “cohort”, the table “Who takes part” says of whom, by which law."
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
        lines=cohorts.lines_of,  # when it is drawn: this imports custom methods
        limits=_ends,
    ),
    accuracy.PICTURE,
    clients.PICTURE,
    vary.PICTURE,
)

TABLES = by_name(
    Made(
        "table1",
        "Gap at the end, and use until it stays at a target",
        f"In the order of rounds, and then of gaps. {USED} {_REACHED} {AUDITED} {FAIR} {_OWN}",
        lambda inputs: use(inputs, _targets),
        lambda frame: render_used(frame, cohorts.labels_of(frame), ranked=True),
    ),
    Made(
        "pairs",
        "Which of two methods needs less until the relative gap stays at a target",
        f"{PAIRED} {_REACHED} Where there is none, the gaps at the end are compared, by one mark.",
        lambda inputs: all_pairs(inputs, _targets),
        lambda frame: matrix(frame, cohorts.labels_of(frame)) or _NO_PAIRS,
    ),
    accuracy.TABLE,
    clients.HETEROGENEITY,
    clients.NAMED,
    cohorts.TABLE,
    vary.TABLE,
)
