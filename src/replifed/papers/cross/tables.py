"""What each method uses until the relative gap is 1e-4, and what it cost to tune it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from replifed.figures.artefact import Made, by_name
from replifed.figures.summaries import median_and_range
from replifed.papers.cross.paper import EXPERIMENTS, FIRST_ORDER, SECOND_ORDER, SETTING
from replifed.tune import Spent

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

TARGET = 1e-4
_USED = {"round": "rounds", "bits": "bits", "sample_gradients": "sample gradients"}


def reached(history: pd.DataFrame, target: float = TARGET) -> pd.DataFrame:
    """Line of the first round at which each seed's gap is at most `target`; NaN where it never is.

    Returns
    -------
    DataFrame
        One row a replicate, columns round, bits, sample_gradients.
    """
    history = history.assign(bits=history["bits_up"] + history["bits_down"])
    rows = {}
    for replicate, run in history.groupby("replicate"):
        there = run[run["gap"] <= target].sort_values("round")
        rows[replicate] = (
            there.iloc[0][list(_USED)].astype(float) if len(there) else pd.Series(np.nan, index=list(_USED))
        )
    return pd.DataFrame(rows).T


def _used(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Use until the target, for each data set and method.

    Returns
    -------
    DataFrame
        experiment, method, used; median over all seeds, where those that never got there count as more than
        any other (infinite where no more than half got there); low, high: least and largest use, infinite
        where no seed, or not every seed, got there; reached, seeds: numbers of seeds; tuning_runs,
        tuning_rounds, tuning_bits: what the search used, zero where there was none.
    """
    rows: list[dict[str, Any]] = []
    for experiment in inputs.experiments():
        for method in inputs.methods(experiment):
            used = reached(inputs.run(experiment, method))
            cost = inputs.tuned(experiment, method).get("cost", Spent().record())
            first = {"experiment": experiment, "method": method}
            last = {f"tuning_{kind}": amount for kind, amount in cost.items()}
            rows.extend({**first, "used": column, **_row(used[column]), **last} for column in _USED)
    return pd.DataFrame(rows)


def _row(values: pd.Series) -> dict[str, Any]:
    counted = values.fillna(np.inf)
    return {
        "median": counted.median(),
        "low": counted.min(),
        "high": counted.max(),
        "reached": int(values.notna().sum()),
        "seeds": len(values),
    }


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
