"""Which reading of the set-up gives the published numbers: rates against rho under four of them."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedplt.panels import band, note_published
from replifed.papers.fedplt.published import BEST_RHO, TABLE2
from replifed.papers.fedplt.summaries import over_data_sets
from replifed.papers.fedplt.titles import PRINTED, SEQUENCE
from replifed.figures.style import Line, figure, housed, legend

NAMES = {
    ("sum", "planted"): "sum of the losses, planted model (used here)",
    ("mean", "planted"): "mean of the losses (as printed), planted model",
    ("sum", "classification"): "sum, make_classification",
    ("mean", "classification"): "mean, make_classification",
}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Mean rates for each rho and reading."""
    return over_data_sets(inputs.run("readings", "fedplt"), ("loss", "labels", "rho"))


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    made, axes = figure(
        1, 1, title="Fed-PLT: rates under four readings of the set-up", width=6.4, height=3.1,
        legend_lines=2,
    )  # fmt: skip
    ax, lines = axes[0][0], []
    for place, ((loss, labels), part) in enumerate(frame.groupby(["loss", "labels"], sort=False)):
        line = Line(
            NAMES[loss, labels], SEQUENCE[place], "-" if loss == "sum" else (0, (4, 2)), "os^D"[place]
        )
        band(ax, part, "rho", line)
        lines.append(line)
    note_published(ax, BEST_RHO, "published minimum", left=True)
    ax.axhline(TABLE2["fedplt"][0], color=PRINTED, linewidth=0.8, linestyle=(0, (1, 2)))
    ax.set_xscale("log")
    ax.set_xlabel("ρ")
    ax.set_ylabel("convergence rate, N_e = 10")
    legend(made, lines, columns=2)
    return made
