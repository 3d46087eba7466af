"""Rounds and bits until a threshold, and the share of rounds that Q-SHED saves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from replifed.claims.curves import reached
from replifed.claims.samples import UNDECIDED, Sample
from replifed.figures.artefact import Made, by_name
from replifed.figures.summaries import median_and_range, use_until_target
from replifed.papers.inputs import Inputs
from replifed.papers.qshed.experiments import UNLIMITED
from replifed.papers.qshed.hessians import ALLOCATIONS, PLACES
from replifed.papers.qshed.paper import CHANNELS, EXPERIMENTS, LINES, THRESHOLDS, curve_name, shown_with

# Q-SHED is not compared with itself, nor with methods that no budget limits.
_NO_RIVALS = ("qshed", "ideal_shed", *UNLIMITED)


def saving(mine: Sample, theirs: Sample) -> dict[str, Any]:
    """Median over the seeds that both ran of the share of rounds that `mine` saves, and of how many seeds.

    Not known where it depends on seeds of which nothing is known; `bound` if the truth may be larger.
    """
    one = 1 - mine / theirs
    lowest, highest = (
        float(np.median(np.where(np.isin(one.bounds, unknown), end, one.values)))
        for unknown, end in (((-1, UNDECIDED), -np.inf), ((1, UNDECIDED), np.inf))
    )
    return {"saving": lowest, "bound": highest > lowest, "pairs": len(one.values)}


def _rounds(inputs: Inputs) -> pd.DataFrame:
    """One row for each experiment, channel, method and threshold.

    Columns are those of rounds, megabits (median over seeds, of all devices until then) and `saving`.
    """
    rows = []
    for experiment in inputs.experiments():
        own = inputs.run(shown_with(experiment), "qshed")
        for method in inputs.methods(experiment):
            history = inputs.run(experiment, method)
            for (variant, channel), curve in history.groupby(["variant", "channel"], sort=False):
                for threshold in THRESHOLDS:
                    rounds, bits = reached(curve, threshold), reached(curve, threshold, count="bits_up")
                    mine = reached(own[own["channel"] == channel], threshold)
                    rows.append(
                        {
                            "experiment": shown_with(experiment),
                            "channel": channel,
                            "curve": curve_name(method, variant),
                            "threshold": threshold,
                            **use_until_target(
                                rounds.values, rounds.bounds == 0, megabits=bits.median_reached / 1e6
                            ),
                            **saving(mine, rounds),
                        }
                    )
    return pd.DataFrame(rows)


def _render_rounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one line per method: rounds as median [range], and Q-SHED's saving, for each threshold."""
    rows = []
    for (experiment, channel, name), cells in frame.groupby(["experiment", "channel", "curve"], sort=False):
        row = {
            "Data": EXPERIMENTS[experiment],
            "Channel": CHANNELS[channel],
            "Method": LINES[name].label,
            "Seeds": cells["seeds"].iloc[0],
        }
        for cell in cells.itertuples():
            to = f"{cell.threshold:.0e}"
            row[f"Rounds to {to}"] = median_and_range(cell, "{:g}".format, " seeds")
            row[f"Mbit to {to}"] = f"{cell.megabits:.3g}" if np.isfinite(cell.megabits) else "–"
            row[f"Saved at {to}"] = "" if name in _NO_RIVALS else _saving(cell)
        rows.append(row)
    return pd.DataFrame(rows)


def _saving(cell: Any) -> str:
    if not np.isfinite(cell.saving):
        return "–"
    return f"{'≥ ' if cell.bound else ''}{100 * cell.saving:.0f} %"


# Experiments of the errors of Hessians, with the data and the features.
_OF_HESSIANS = {
    "fmnist_hessians_printed": "FMNIST, 90 components",
    "fmnist_hessians": "FMNIST, 89 and a constant",
    "w8a_hessians": "w8a",
}


def _hessians(inputs: Inputs) -> pd.DataFrame:
    """One row for each experiment, case, place and allocation: means over devices and repetitions."""
    rows = []
    for experiment in inputs.experiments():
        history = inputs.run(experiment, "qshed")
        means = history.groupby(["case", "place", "allocation"], sort=False)[["vectors", "bits", "error"]]
        rows.append(means.mean().reset_index().assign(experiment=experiment))
    return pd.concat(rows, ignore_index=True)


def _render_hessians(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each allocation, with a column for each data set and place."""
    frame = frame[frame["case"] == "default"]
    data = frame["experiment"].map(_OF_HESSIANS) + ", " + frame["place"].map(PLACES)
    cells = frame.assign(data=data, Allocation=frame["allocation"].map(ALLOCATIONS))
    table = cells.pivot_table("error", "Allocation", "data", sort=False).map("{:.3g}".format)
    return table.rename_axis(columns=None).reset_index()


TABLES = by_name(
    Made(
        "hessians",
        "Errors of quantised Hessians",
        "Squared Frobenius error of a device's quantised Hessian, as a share of its squared norm, with all "
        "bits of one round without fading: mean over devices and seeds. Q-SHED's allocation, with either "
        "choice of q, beside the same bits spread alike over the first vectors; over two, which then have "
        "the most bits that they may have, it is NQ-SHED's. Coordinates that overload the quantiser wrap "
        "around.",
        _hessians,
        _render_hessians,
    ),
    Made(
        "rounds",
        "Rounds to a threshold",
        "Rounds to a relative cost of 1e-4, 1e-6 and 1e-8 as median [range] over seeds, megabits that all "
        "devices sent until then, and the share of rounds that Q-SHED saves against those that keep to the "
        "budget: the median over the seeds that both have run, at least so much where the other method does "
        "not get there on enough of them. Seeds: those of the method. At 16 bits per coordinate NQ-SHED's "
        "vectors are as good as SHED's: on the same seeds the two take the same rounds.",
        _rounds,
        _render_rounds,
    ),
)
