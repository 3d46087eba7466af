"""The relative gap of all methods that are compared."""

from __future__ import annotations

from replifed.comparison.paper import lines
from replifed.figures.artefact import by_name
from replifed.papers.cross.figures import figure
from replifed.papers.cross.paper import FAIR

FIGURES = by_name(
    figure(
        "fig1",
        prefix="Comparison",
        title="Relative gap",
        caption=f"Relative gap (F - F*) / (F(0) - F*), median and range over seeds. {FAIR} "
        "Data of your own have the loss that they name.",
        lines=lambda frame: lines(),  # asked for when it is drawn: methods of one's own are imported
    )
)
