"""What each method uses until the relative gap is 1e-4, and what it cost to tune it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from replifed.claims.curves import reached
from replifed.figures.artefact import Made, by_name
from replifed.figures.summaries import median_and_range
from replifed.papers.cross.paper import EXPERIMENTS, FIRST_ORDER, SECOND_ORDER, SETTING
from replifed.tune import Spent

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

TARGET = 1e-4
_USED = {"round": "rounds", "bits": "bits", "sample_gradients": "sample gradients"}


def _used(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Median, least and largest use until the target, for each data set and method.

    Seeds that never got there count as more than any other, so that a number which hangs on them is infinite.
    reached and seeds are numbers of seeds; tuning_* say what the search used, zero where there was none.
    """
    rows = []
    for experiment in inputs.experiments():
        for method in inputs.methods(experiment):
            history = inputs.run(experiment, method)
            history = history.assign(bits=history["bits_up"] + history["bits_down"])
            cost = inputs.tuned(experiment, method).get("cost", Spent().record())
            for used in _USED:
                first = reached(history, TARGET, count=used)
                values = np.where(first.bounds == 0, first.values, np.inf)
                rows.append(
                    {
                        "experiment": experiment,
                        "method": method,
                        "used": used,
                        "median": np.median(values),
                        "low": values.min(),
                        "high": values.max(),
                        "reached": int(np.isfinite(values).sum()),
                        "seeds": len(values),
                        **{f"tuning_{kind}": amount for kind, amount in cost.items()},
                    }
                )
    return pd.DataFrame(rows)


def _render_used(frame: pd.DataFrame) -> pd.DataFrame:
    """A line a method; for each data set its uses, median [least, largest] (got there), and its search's."""
    rows = []
    names = {method: line.label for method, line in (SECOND_ORDER | FIRST_ORDER).items()}
    order = [*FIRST_ORDER, *SECOND_ORDER, *frame["method"]]
    for method in dict.fromkeys(name for name in order if name in set(frame["method"])):
        line = {"method": names.get(method, method)}
        for row in frame[frame["method"] == method].itertuples():
            line[f"{EXPERIMENTS[row.experiment]}: {_USED[row.used]}"] = median_and_range(row, ".3g")
            cost = Spent(row.tuning_runs, row.tuning_rounds, row.tuning_bits)
            line[f"{EXPERIMENTS[row.experiment]}: tuning"] = str(cost)
        rows.append(line)
    return pd.DataFrame(rows).fillna("")


TABLES = by_name(
    Made(
        "table1",
        "Use until the relative gap is 1e-4",
        (
            "Median [least, largest] over seeds of rounds, bits (up and down, all clients) and sample "
            "gradients. Where not all seeds get there, (2 of 3) says how many do: the others count as later "
            "than those, so that the largest is open (…), and so is the median (–) if no more than half get "
            "there. “Not reached” is where none does. Tuning: what the search for the method's number used. "
            f"{SETTING}"
        ),
        _used,
        _render_used,
    ),
)
