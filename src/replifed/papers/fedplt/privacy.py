"""The trade-off between privacy, accuracy and local epochs, which the paper describes without a figure.

Mean losses with clipped samples' gradients (sensitivity L / q), all agents active in K rounds, starts
x_{i,0} ~ N(0, 2 tau^2 / low), as Proposition 4 asks for; epsilon at the best Renyi order.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedplt.panels import band
from replifed.papers.fedplt.summaries import over_data_sets
from replifed.papers.fedplt.titles import SEQUENCE
from replifed.figures.style import Line, figure, housed
from replifed.privacy.renyi import best_epsilon, composed_gaussian, proposition4

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Epsilon and error for each level of noise and number of epochs, after all rounds."""
    history, made = inputs.run("privacy", "fedplt"), settings["experiments"]["privacy"]
    last = history[history["round"] == history["round"].max()]
    found = over_data_sets(last, ("steps", "tau"), "error")
    keys = [found["steps"], found["tau"]]
    gamma = last.groupby(["steps", "tau"], sort=False)["gamma"].mean().to_numpy()
    common = {
        "sensitivity": made["clip"] / (made["samples"] if made["loss"] == "mean" else 1),
        "deviation": keys[1].to_numpy(),
        "gamma": gamma,
        "rounds": made["rounds"],
        "steps": keys[0].to_numpy(),
    }
    # Both are linear in the order: their values at order 1 are the slopes.
    found["epsilon"] = best_epsilon(proposition4(1.0, low=made["ridge"], **common), made["delta"])
    found["epsilon_composed"] = best_epsilon(composed_gaussian(1.0, **common), made["delta"])
    return found.assign(rounds=made["rounds"], delta=made["delta"])


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: epsilon and error against N_e, and one against the other."""
    rounds, delta = frame["rounds"].iloc[0], frame["delta"].iloc[0]
    made, axes = figure(
        1, 3, title=f"Fed-PLT: privacy, accuracy and local epochs (K = {rounds:g} rounds, δ = {delta:g})",
        width=4.0, height=3.1, legend_lines=0,
    )  # fmt: skip
    private, accurate, both = axes[0]
    levels = sorted(frame["tau"].unique())
    levels = levels[:: max(1, len(levels) // 3)]
    for place, tau in enumerate(levels):
        part, colour = frame[frame["tau"] == tau].sort_values("steps"), SEQUENCE[place]
        private.plot(
            part["steps"], part["epsilon"], color=colour, marker=_MARKERS[place], label=f"τ = {tau:g}"
        )
        private.plot(part["steps"], part["epsilon_composed"], color=colour, linestyle=(0, (1, 1.2)))
        band(accurate, part, "steps", Line(f"τ = {tau:g}", colour, "-", _MARKERS[place]))
    private.plot([], [], color="#767676", linestyle=(0, (1, 1.2)), label="composed steps")
    for place, steps in enumerate(sorted(frame["steps"].unique())):
        part = frame[frame["steps"] == steps]
        band(both, part, "epsilon", Line(f"N_e = {steps:g}", SEQUENCE[place], "-", _MARKERS[place]))
    for ax, x, y in (
        (private, "local epochs N_e", "ε (Proposition 4)"),
        (accurate, "local epochs N_e", "mean distance of x_i to the minimiser"),
        (both, "ε (Proposition 4)", "mean distance of x_i to the minimiser"),
    ):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ax.legend(fontsize=7.5, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    for ax in (private, accurate):
        ticks = sorted(frame["steps"].unique())
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    return made
