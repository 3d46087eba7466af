"""Table: rounds, and bits, that each method needs to a relative cost of 1e-4, 1e-6 and 1e-8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from replifed.claims.curves import reached
from replifed.figures.artefact import Made, by_name
from replifed.figures.summaries import median_and_range
from replifed.papers.qshed.paper import CHANNELS, EXPERIMENTS, LINES, curve_name

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

THRESHOLDS = (1e-4, 1e-6, 1e-8)
# Q-SHED is not compared with itself, nor with those that no budget limits.
_NO_RIVALS = ("qshed", "ideal_shed", "giant", "newton", "gradient_descent")


def _rounds(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """One row for each experiment, channel, method and threshold.

    Returns
    -------
    DataFrame
        experiment, channel, curve, threshold; median, low, high: rounds over the seeds that got there
        (the median is infinite where no more than half did); megabits: median of what all devices sent until
        then; reached, seeds: numbers of seeds; saving: one minus the ratio of Q-SHED's median to this one
        (at least so much where this one is only known to be later than the run).
    """
    rows = []
    for experiment, methods in settings["artefact"]["runs"].items():
        own = inputs.run(experiment, "qshed")
        for method in methods:
            history = inputs.run(experiment, method)
            for (variant, channel), curve in history.groupby(["variant", "channel"], sort=False):
                for threshold in THRESHOLDS:
                    mine = reached(own[own["channel"] == channel], threshold)
                    rows.append(
                        {
                            "experiment": experiment,
                            "channel": channel,
                            "curve": curve_name(method, variant),
                            "threshold": threshold,
                            **_row(curve, threshold, mine.median_reached),
                        }
                    )
    return pd.DataFrame(rows)


def _row(curve: pd.DataFrame, threshold: float, mine: float) -> dict[str, Any]:
    rounds, bits = reached(curve, threshold), reached(curve, threshold, count="bits_up")
    there = rounds.bounds == 0
    median = rounds.median_reached
    last = curve["round"].max()
    return {
        "median": median,
        "low": rounds.values[there].min() if there.any() else np.inf,
        "high": rounds.values[there].max() if there.all() else np.inf,
        "megabits": bits.median_reached / 1e6,
        "reached": int(there.sum()),
        "seeds": len(there),
        "saving": 1.0 - mine / min(median, last),
        "bound": not np.isfinite(median),
    }


def _render_rounds(frame: pd.DataFrame) -> pd.DataFrame:
    """One line a method: rounds as median [range], and what Q-SHED saves, for each threshold."""
    rows = []
    for (experiment, channel, name), cells in frame.groupby(["experiment", "channel", "curve"], sort=False):
        row = {
            "Data": EXPERIMENTS[experiment],
            "Channel": CHANNELS[channel],
            "Method": LINES[name].label,
        }
        for cell in cells.itertuples():
            row[f"Rounds to {cell.threshold:.0e}"] = median_and_range(cell, "g", " seeds")
            row[f"Mbit to {cell.threshold:.0e}"] = (
                f"{cell.megabits:.3g}" if np.isfinite(cell.megabits) else "–"
            )
            row[f"Saved at {cell.threshold:.0e}"] = "" if name in _NO_RIVALS else _saving(cell)
        rows.append(row)
    return pd.DataFrame(rows)


def _saving(cell: Any) -> str:
    if not np.isfinite(cell.saving):
        return "–"
    at_least = "≥ " if cell.bound else ""
    return f"{at_least}{100 * cell.saving:.0f} %"


TABLES = by_name(
    Made(
        "rounds",
        "Rounds to a threshold",
        (
            "Rounds to a relative cost of 1e-4, 1e-6 and 1e-8 as median [range] over seeds, megabits that "
            "all devices sent until then, and the share of rounds that Q-SHED saves against those that keep "
            "to the budget (at least so much where the other method does not get there in half of the "
            "seeds). At 16 bits per coordinate NQ-SHED's vectors are as good as SHED's, so that the two "
            "differ in no cell."
        ),
        _rounds,
        _render_rounds,
    ),
)
