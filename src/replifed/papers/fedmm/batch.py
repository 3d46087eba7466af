"""Dependence on the local batch: final objective of both methods against the batch, in units of K."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedmm.experiments import FULL
from replifed.papers.fedmm.titles import EXPERIMENTS, METHODS
from replifed.figures.curves import readable_log_axis
from replifed.figures.style import Line, figure, housed, legend

TITLE = "FedMM: the local batch against the number of atoms (not in the paper)"
_SHAPES = {"final": ("last round", "-"), "lowest": ("lowest on the way", (0, (1, 1.2)))}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Final and lowest objective, mean and standard deviation over seeds, at each method's best step.

    The best step is that of the lowest mean final objective in the same runs, so both methods are shown at
    their most favourable.
    """
    rows = []
    for experiment, methods in settings["artefact"]["runs"].items():
        own = settings["experiments"][experiment]
        for method in methods:
            history = inputs.run(experiment, method)
            for batch, curves in history.groupby("batch", sort=False):
                by_seed = curves.sort_values("round").groupby(["beta", "replicate"])["objective"]
                last, low = by_seed.last().unstack(), by_seed.min().unstack()  # noqa: PD010
                beta = last.mean(axis=1).idxmin()
                size = own["samples"] // own["clients"] if batch == FULL else int(batch)
                for kind, values in (("final", last.loc[beta]), ("lowest", low.loc[beta])):
                    rows.append(
                        {
                            "experiment": experiment,
                            "method": method,
                            "batch": batch,
                            "samples": size,
                            "per_atom": size / own["atoms"],
                            "beta": beta,
                            "kind": kind,
                            "mean": values.mean(),
                            "deviation": values.std(ddof=1) if len(values) > 1 else 0.0,
                            "start": by_seed.first().loc[beta].mean(),
                            "seeds": len(values),
                        }
                    )
    return pd.DataFrame(rows)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a panel for each reconstruction of the sizes."""
    experiments = [name for name in EXPERIMENTS if (frame["experiment"] == name).any()]
    methods = {key: line for key, line in METHODS.items() if (frame["method"] == key).any()}
    made, axes = figure(1, len(experiments), title=TITLE, width=4.4, height=3.0, legend_lines=2)
    for ax, experiment in zip(axes[0], experiments, strict=True):
        panel = frame[(frame["experiment"] == experiment) & np.isfinite(frame["mean"])]
        for method, line in methods.items():
            for kind, (_, dashes) in _SHAPES.items():
                curve = panel[(panel["method"] == method) & (panel["kind"] == kind)].sort_values("samples")
                ax.errorbar(
                    curve["per_atom"],
                    curve["mean"],
                    yerr=curve["deviation"],
                    color=line.color,
                    linestyle=dashes,
                    marker=line.marker if kind == "final" else "",
                    capsize=2,
                )
        ax.set_xscale("log")
        low, high = panel["per_atom"].min(), panel["per_atom"].max()
        readable_log_axis(ax.xaxis, low, high)
        ax.axvline(1.0, color="#BBBBBB", linewidth=0.8, zorder=0)
        ax.set_title(EXPERIMENTS[experiment], loc="left", fontsize=9)
        ax.set_xlabel("local samples a round / K")
        ax.set_ylabel("objective (28)")
    shapes = [Line(label, "black", dashes) for label, dashes in _SHAPES.values()]
    legend(made, [*(line._replace(dashes="") for line in methods.values()), *shapes], columns=2)
    return made
