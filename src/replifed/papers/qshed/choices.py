"""What the paper leaves open: rounds to 1e-6 with one choice changed at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.claims.curves import reached
from replifed.papers.qshed.titles import CHANNELS, EXPERIMENTS, LINES, curve_name
from replifed.plotting.style import figure, housed, legend

THRESHOLD = 1e-6
CASES = {
    "default": "as in Figures 1 and 2",
    "renewals_numbers": "renewals 1, 2, 3, 5, 8, …",
    "renewals_10": "renewals every 10 rounds",
    "renewals_40": "renewals every 40 rounds",
    "renewals_once": "no renewal after round 1",
    "dither_none": "no dither",
    "dither_added": "dither not subtracted",
    "dither_fresh": "fresh dither at each refinement",
    "overload_clip": "overload clipped, not wrapped",
    "normalised": "received vectors normalised",
    "budget_16": "B = 16 bits per coordinate",
    "budget_64": "B = 64 bits per coordinate",
    "l2_4": "µ = 1e-4",
    "l2_6": "µ = 1e-6",
    "skip_32": "FedNL skips below 32 bits",
    "fednl_quantised": "FedNL quantises below 16 bits",
    "start_hessian": "FedNL starts from the Hessians",
    "search_loose": "Armijo constant 1e-4",
    "search_strict": "Armijo constant 0.2",
    "search_half": "Armijo constant 0.5 (FedNL)",
    "search_giant": "10 steps 1, 1/4, … (GIANT)",
}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """One row for each experiment, channel, case and method that the case changes.

    Returns
    -------
    DataFrame
        experiment (without "_choices"), channel, case, curve; median, low, high: rounds to the threshold
        (infinite where seeds did not get there); last: rounds of the run; reached, seeds.
    """
    rows = []
    for experiment, methods in settings["artefact"]["runs"].items():
        last = settings["experiments"][experiment]["rounds"]
        for method in methods:
            history = inputs.run(experiment, method)
            keys = ["case", "variant", "channel"]
            for (case, variant, channel), curve in history.groupby(keys, sort=False):
                found = reached(curve, THRESHOLD)
                there = found.bounds == 0
                rows.append(
                    {
                        "experiment": experiment.removesuffix("_choices"),
                        "channel": channel,
                        "case": case,
                        "curve": curve_name(method, variant),
                        "median": found.median_reached,
                        "low": found.values[there].min() if there.any() else np.inf,
                        "high": found.values[there].max() if there.all() else np.inf,
                        "last": last,
                        "reached": int(there.sum()),
                        "seeds": len(there),
                    }
                )
    return pd.DataFrame(rows)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a panel for each data set and channel, a line for each case."""
    panels = list(dict.fromkeys(zip(frame["experiment"], frame["channel"], strict=True)))
    lines = {name: line for name, line in LINES.items() if (frame["curve"] == name).any()}
    shown = [case for case in CASES if (frame["case"] == case).any()]
    made, axes = figure(
        1, len(panels), title="Q-SHED: what the paper leaves open", width=3.6, height=0.27 * len(shown) + 0.9
    )
    for place, (experiment, channel) in enumerate(panels):
        ax = axes[0][place]
        one = frame[(frame["experiment"] == experiment) & (frame["channel"] == channel)]
        _draw_panel(ax, one, lines, shown)
        ax.set_title(f"{EXPERIMENTS[experiment]}, {CHANNELS[channel]}", loc="left")
        ax.set_xlabel("rounds to 1e-6")
        ax.set_yticks(range(len(shown)), [CASES[case] for case in shown] if place == 0 else [""] * len(shown))
    legend(made, list(lines.values()))
    return made


def _draw_panel(ax: Axes, frame: pd.DataFrame, lines: dict, shown: list[str]) -> None:
    last = float(frame["last"].max())
    ax.axvline(last, color="#999999", linewidth=0.8, linestyle=(0, (2, 2)))
    for shift, (name, line) in enumerate(lines.items()):
        curve = frame[frame["curve"] == name].set_index("case")
        default = curve["median"].get("default", np.nan)
        if np.isfinite(default):
            ax.axvline(default, color=line.color, linewidth=0.7, alpha=0.5, zorder=1)
        for row, case in enumerate(shown):
            if case not in curve.index:
                continue
            cell = curve.loc[case]
            y = row + 0.22 * (shift - 1)
            low, high = min(cell["low"], last), min(cell["high"], last)
            ax.plot([low, high], [y, y], color=line.color, linewidth=1.4, zorder=2)
            there = np.isfinite(cell["median"])
            at = cell["median"] if there else last
            face = line.color if there else "white"
            marker = line.marker if there else ">"
            ax.plot(
                at, y, marker, color=line.color, markerfacecolor=face, markersize=5, zorder=3, clip_on=False
            )
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(0, 1.04 * last)
