"""Dependence on bits: objective against what clients send, for several numbers of bits a coordinate."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedmm.experiments import FULL
from replifed.papers.fedmm.panels import collect
from replifed.papers.fedmm.titles import METHODS, lines
from replifed.figures.curves import plot_curves
from replifed.figures.style import figure, housed, legend

TITLE = "FedMM: bits of a coordinate (not in the paper)"
_X = {"round": "communication rounds", "bits": "bits sent by the clients"}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Objective of both methods for each number of bits a coordinate; `bits` is what clients sent so far."""
    return collect(inputs, settings, lambda *_: slice(None), metrics=("objective",), uplink=True)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each method; objective against rounds, and against bits."""
    frame = frame.assign(message_bits=frame["message_bits"].astype(str))
    values = [*sorted(set(frame["message_bits"]) - {FULL}, key=int), FULL]
    drawn = lines({key: "32 bits (whole)" if key == FULL else f"{key} bits" for key in values})
    methods = [name for name in METHODS if (frame["method"] == name).any()]
    made, axes = figure(len(methods), 2, title=TITLE, width=4.4, height=2.6)
    for i, method in enumerate(methods):
        panel = frame[frame["method"] == method]
        for j, (x, label) in enumerate(_X.items()):
            ax = axes[i][j]
            plot_curves(ax, panel, "message_bits", drawn, x=x, log_x=j == 1)
            ax.set_title(METHODS[method].label, loc="left", fontsize=9)
            ax.set_ylabel("objective (28)")
            if i == len(methods) - 1:
                ax.set_xlabel(label)
    legend(made, list(drawn.values()))
    return made
