"""FedMM on the paper's EM examples, against EM on all data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedmm.titles import EXPERIMENTS
from replifed.figures.summaries import summarise
from replifed.figures.curves import plot_curves
from replifed.figures.style import BLUE, GREY, ORANGE, Line, figure, housed, legend

TITLE = "FedMM: EM examples of Appendix C (not in the paper)"
CURVES = {
    "sa_ssmm/exact": Line("EM on all data", GREY, "-", "", 4.0),
    "fedmm/exact": Line("FedMM, all clients and samples, step 1", BLUE, (0, (3, 2)), ""),
    "fedmm/federated": Line("FedMM, half of the clients, minibatches, 8 bits", ORANGE, "-", "o"),
}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Objective above the lowest that EM reaches, for each example; equal seeds are compared."""
    frames = []
    for experiment, methods in settings["artefact"]["runs"].items():
        best = inputs.run(experiment, "sa_ssmm").groupby("replicate")["objective"].min()
        for method in methods:
            history = inputs.run(experiment, method)
            # Below 1e-14 of the objective, rounding and not the method decides.
            gap = history["objective"] - history["replicate"].map(best)
            floor = 1e-14 * history["replicate"].map(best).abs()
            history = history.assign(
                experiment=experiment,
                curve=method + "/" + history["reading"],
                log_gap=np.log(gap.clip(lower=floor)),
            )
            frame = summarise(history, ("experiment", "curve"), "log_gap", band="sd")
            # Seeds differ by orders of magnitude: means and deviations are those of the logarithm.
            frames.append(frame.assign(**np.exp(frame[["mean", "low", "high"]])))
    return pd.concat(frames, ignore_index=True)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a panel for each example."""
    experiments = [name for name in EXPERIMENTS if (frame["experiment"] == name).any()]
    made, axes = figure(1, len(experiments), title=TITLE, width=3.6, height=2.8)
    for ax, experiment in zip(axes[0], experiments, strict=True):
        plot_curves(ax, frame[frame["experiment"] == experiment], "curve", CURVES, log_y=True)
        ax.set_title(EXPERIMENTS[experiment], loc="left", fontsize=9)
        ax.set_xlabel("communication rounds")
        ax.set_ylabel("objective above EM's lowest")
    legend(made, list(CURVES.values()), columns=3)
    return made
