"""How equal-size k-means split MovieLens between the clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedmm.titles import EXPERIMENTS
from replifed.figures.style import BLUE, ORANGE, figure, housed

TITLE = "FedMM: clients of MovieLens 1M (not in the paper)"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Each client's ratings a user, and squared distances within it and to the mean of all."""
    frames = []
    for experiment in settings["artefact"]["partitions"]:
        clients = inputs.partition_table(experiment)
        clients = clients[clients["replicate"] == clients["replicate"].iloc[0]].drop(columns="replicate")
        clients.insert(0, "experiment", experiment)
        frames.append(clients)
    return pd.concat(frames, ignore_index=True)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    experiments = list(dict.fromkeys(frame["experiment"]))
    made, axes = figure(len(experiments), 2, title=TITLE, width=4.4, height=2.6, legend_lines=0)
    for (left, right), experiment in zip(axes, experiments, strict=True):
        clients = frame[frame["experiment"] == experiment].sort_values("entries")
        place = np.arange(len(clients))
        left.bar(place, clients["entries"], color=BLUE)
        left.set_ylabel("ratings of the kept films a user")
        right.bar(place, clients["spread"], color=BLUE, label="within the client")
        right.bar(
            place, clients["offset"], bottom=clients["spread"], color=ORANGE, label="to the mean of all"
        )
        right.set_ylabel("mean squared distance")
        right.legend(fontsize=7)
        for ax in (left, right):
            ax.set_title(EXPERIMENTS[experiment], loc="left", fontsize=9)
            ax.set_xlabel(f"clients, {int(clients['size'].iloc[0])} users each")
    return made
