"""Figure 2: Fed-PLT's rate against the penalty rho."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.algorithms.splitting_theory import zeta
from replifed.papers.fedplt.panels import band, note_published
from replifed.papers.fedplt.published import BEST_RHO
from replifed.papers.fedplt.summaries import over_data_sets
from replifed.papers.fedplt.titles import BOUND, EMPIRICAL
from replifed.figures.style import Line, figure, housed, legend

EMPIRICAL_LINE = Line("Fed-PLT, empirical", EMPIRICAL, "-", "o")
ZETA_LINE = Line("ζ, bound for exact Peaceman–Rachford", BOUND, (0, (5, 1.5)))


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Mean rate and mean zeta for each rho."""
    history = inputs.run("penalty", "fedplt")
    bounds = [zeta(*moduli) for moduli in zip(history["low"], history["high"], history["rho"], strict=True)]
    frames = [
        over_data_sets(history, ("rho",)).assign(curve="empirical"),
        over_data_sets(history.assign(zeta=bounds), ("rho",), "zeta").assign(curve="zeta"),
    ]
    return pd.concat(frames, ignore_index=True)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    made, axes = figure(
        1, 1, title="Fed-PLT Figure 2: rate against ρ, N_e = 10", width=5.4, height=3.1, legend_lines=1
    )
    ax = axes[0][0]
    empirical = frame[frame["curve"] == "empirical"]
    band(ax, empirical, "rho", EMPIRICAL_LINE)
    band(ax, frame[frame["curve"] == "zeta"], "rho", ZETA_LINE)
    note_published(ax, BEST_RHO, f"published minimum, ρ ≈ {BEST_RHO:g}", left=True)
    best = empirical.loc[empirical["mean"].idxmin()]
    ax.annotate(
        f"{best['mean']:.3f} at ρ = {best['rho']:.2g}",
        (best["rho"], best["mean"]),
        textcoords="offset points",
        xytext=(10, -4),
        fontsize=8,
    )
    ax.set_xscale("log")
    ax.set_xlabel("ρ")
    ax.set_ylabel("convergence rate")
    ax.set_ylim(top=float(np.nanmax(frame["high"])) + 0.02)
    legend(made, [EMPIRICAL_LINE, ZETA_LINE])
    return made
