"""Several methods on one problem: their runs as a data frame, a plot and a table."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.claims.curves import at_the_end
from replifed.claims.pairs import used_until
from replifed.claims.samples import independent, originals
from replifed.errors import ConfigError, ReplifedError
from replifed.figures.lines import numbered
from replifed.network.times import Size, rates, with_seconds

# What a run has used, by the name of an axis; and time, which `plot` and `table` compute.
_USED = {
    "rounds": ("round", "communication rounds"),
    "bits": ("bits", "bits, up and down, all clients"),
    "gradients": ("sample_gradients", "sample gradients"),
    "time": ("seconds", "time, s"),
}
# Methods whose legend has room beside their curves, and entries of a column of one outside.
_BESIDE, _IN_A_COLUMN = 7, 16


@dataclass(frozen=True)
class Comparison:
    """Runs of several methods on one problem: `frame`, with a column method and one gap."""

    frame: pd.DataFrame
    size: Size | None = None
    """Clients, coordinates and samples of the problem, for the time of a round."""

    def timed(self, time: str) -> pd.DataFrame:
        """Return the runs with a column seconds, computed from what they have recorded.

        Parameters
        ----------
        time : str
            As `replifed compare --time` takes it: "phone", "hospital", "datacentre", or
            "uplink=1Mbps,downlink=10Mbps,latency=50ms,gradient=1us" and "spread=0.5" (`network.times`).
        """
        given = rates(as_text(time, "time"))
        if self.size is None:
            raise ConfigError("this comparison does not say how large its problem is: make one with compare")
        runs = [
            with_seconds(own, self.size, given, "seed") for _, own in self.frame.groupby("method", sort=False)
        ]
        return pd.concat(runs)

    def plot(self, x: str = "rounds", y: str = "gap", *, time: str | None = None) -> Figure:
        """Gap, or "accuracy", against "rounds", "bits", "gradients" or "time": median and range over seeds.

        Time needs what it costs, as `timed` takes it.

        Returns
        -------
        matplotlib Figure
            `savefig` writes it.
        """
        if as_text(x, "x") not in _USED:
            raise ReplifedError(f"x = {x!r}: must be one of {', '.join(_USED)}")
        if (x == "time") != (time is not None):
            raise ConfigError('x="time" and time="phone", or another time, go together')
        if as_text(y, "y") not in self.frame:
            raise ReplifedError(f"y = {y!r}: must be a column of the runs; for accuracy give compare a test")
        column, label = _USED[x]
        frame = self.frame if time is None else self.timed(time)
        methods = list(frame.groupby("method", sort=False))
        columns = -(-len(methods) // _IN_A_COLUMN) if len(methods) > _BESIDE else 0  # of a legend outside
        figure = Figure(figsize=(5 + 1.8 * columns, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for number, (name, own) in enumerate(methods):
            line = numbered(number)
            by_round = own.groupby("round")
            used, gaps = by_round[column].median(), by_round[y]
            axes.plot(used, gaps.median(), label=name, markevery=0.1, **line.look)
            axes.fill_between(used, gaps.min(), gaps.max(), color=line.color, alpha=0.15)
        axes.set(xlabel=label, **({"ylabel": "F - F*", "yscale": "log"} if y == "gap" else {"ylabel": y}))
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
        if columns:
            figure.legend(loc="outside right upper", ncols=columns, fontsize="small")
        else:
            axes.legend()
        return figure

    def table(self, target: float = 1e-4, *, time: str | None = None) -> pd.DataFrame:
        """Median use of each method from when on its gap stays at most `target` times that at the start.

        Reached means that it stays there to the end, at least for the last tenth of the rounds. Seeds that
        never get there count as later than any other.

        Returns
        -------
        DataFrame
            A line a method: round, bits and sample_gradients, and with `time` (as of `timed`) seconds, NaN
            where half of the seeds or more do not get there; touch, the round of the first time; gap, at the
            end, as a share of that at the start, infinite where it diverged; runs, how many of the `seeds`
            are no copies of another one (1 where nothing is drawn), so that only these are independent;
            accuracies at the end, medians over seeds.
        """
        if not isinstance(target, Real) or not 0 < target < np.inf:
            raise ConfigError(f"target = {target!r}: must be a number above 0")
        rows = {}
        frame = self.frame if time is None else self.timed(time)
        for name, own in frame.groupby("method", sort=False):
            share = own["gap"] / own.groupby("seed")["gap"].transform("first")
            own = own.assign(replicate=own["seed"], gap=share)
            first = used_until(own, [target], touch=True)[target, "round"]
            uses = {use: one.median_reached for (_, use), one in used_until(own, [target]).items()}
            runs = independent(originals(own.drop(columns="seed")))
            ends = {"gap": at_the_end(own).median_reached, "runs": len(runs), "seeds": own["seed"].nunique()}
            accuracy = own.groupby("seed").last().filter(like="accuracy").median()
            rows[name] = {**uses, "touch": first.median_reached, **ends, **accuracy}
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
        return table.where(np.isfinite(table) | (table.columns == "gap"))


def as_text(value: Any, what: str) -> str:
    """Return the text `value`; refuse anything else."""
    if not isinstance(value, str):
        raise ConfigError(f"{what} is {value!r}: must be a text")
    return value
