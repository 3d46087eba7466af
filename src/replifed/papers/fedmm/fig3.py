"""Figure 3: FedMM-OT against FedAdam, L2-UVP per round and per gradient."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedmm.titles import METHODS
from replifed.figures.summaries import summarise
from replifed.figures.curves import plot_curves
from replifed.figures.style import GREY, Line, figure, housed, legend

TITLE = "FedMM Figure 3: federated optimal transport"
_X = {"round": "communication rounds", "gradients": "gradients of a sample, clients and server"}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """L2-UVP of both methods in each dimension, with that of the best linear map."""
    frames = []
    for experiment, methods in settings["artefact"]["runs"].items():
        for method in methods:
            history = inputs.run(experiment, method)
            by = ("dim", "method", "step", "linear_uvp")
            frame = summarise(history, by, "uvp", band="sd")
            work = history.groupby("round")["sample_gradients"].mean()
            frames.append(frame.assign(gradients=frame["round"].map(work)))
    return pd.concat(frames, ignore_index=True)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a column for each dimension; against rounds, and against work."""
    dims = sorted(set(frame["dim"]))
    methods = {key: line for key, line in METHODS.items() if (frame["method"] == key).any()}
    made, axes = figure(len(_X), len(dims), title=TITLE, width=3.6, height=2.5)
    for i, (x, label) in enumerate(_X.items()):
        for j, dim in enumerate(dims):
            ax, panel = axes[i][j], frame[frame["dim"] == dim]
            plot_curves(ax, panel, "method", methods, x=x, log_x=x != "round", log_y=True)
            ax.axhline(panel["linear_uvp"].iloc[0], color=GREY, linestyle=":", linewidth=1.2, zorder=1)
            ax.set_title(f"D = {dim}", loc="left", fontsize=9)
            ax.set_xlabel(label)
            ax.set_ylabel("L2-UVP, %")
    legend(made, [*methods.values(), Line("best linear map", GREY, ":")])
    return made
