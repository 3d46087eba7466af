"""Figure 3: Fed-PLT's rate against the number of local epochs, with exact Peaceman-Rachford splitting."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.algorithms.splitting_theory import zeta
from replifed.papers.fedplt.panels import band, note_published
from replifed.papers.fedplt.published import BEST_EPOCHS
from replifed.papers.fedplt.summaries import over_data_sets
from replifed.papers.fedplt.titles import BOUND, EMPIRICAL, EXACT
from replifed.figures.style import Line, figure, housed, legend

EMPIRICAL_LINE = Line("Fed-PLT, empirical", EMPIRICAL, "-", "o")
EXACT_LINE = Line("exact Peaceman–Rachford, empirical", EXACT, (0, (5, 1.5)))
ZETA_LINE = Line("ζ, its bound", BOUND, (0, (4, 1.5, 1, 1.5)))


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Mean rate for each N_e; rate and bound of exact splitting at the ends of the axis."""
    history = inputs.run("epochs", "fedplt")
    rho = settings["experiments"]["epochs"]["rho"]
    ends = (history["steps"][history["steps"] > 0].min(), history["steps"].max())
    exact = history[history["solver"] == "exact"]
    bound = exact.assign(rate=[zeta(*m, rho) for m in zip(exact["low"], exact["high"], strict=True)])
    frames = [
        over_data_sets(history[history["solver"] == "gradient"], ("steps",)).assign(curve="empirical"),
        *(
            over_data_sets(part.assign(steps=end), ("steps",)).assign(curve=name)
            for name, part in (("exact", exact), ("zeta", bound))
            for end in ends
        ),
    ]
    return pd.concat(frames, ignore_index=True).assign(rho=rho)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    rho = frame["rho"].iloc[0]
    made, axes = figure(
        1, 1, title=f"Fed-PLT Figure 3: rate against N_e, ρ = {rho:g}", width=5.8, height=3.1, legend_lines=2
    )
    ax = axes[0][0]
    for name, line in (("empirical", EMPIRICAL_LINE), ("exact", EXACT_LINE), ("zeta", ZETA_LINE)):
        band(ax, frame[frame["curve"] == name], "steps", line)
    note_published(ax, BEST_EPOCHS, f"published minimum, N_e ≈ {BEST_EPOCHS}")
    ax.set_xlabel("local epochs N_e")
    ax.set_ylabel("convergence rate")
    legend(made, [EMPIRICAL_LINE, EXACT_LINE, ZETA_LINE], columns=2)
    return made
