"""What each method uses until a relative gap, which of two needs less, and what it cost to tune it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from replifed.claims.pairs import USES, matrix, pairs, used_until
from replifed.figures.artefact import Made, by_name
from replifed.figures.grid import By
from replifed.figures.summaries import median_and_range
from replifed.papers.cross.paper import LABELS, PROBLEMS, SETTING
from replifed.tune import Spent

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

TARGET = 1e-4
# Of pairs: methods that drift reach the first alone.
TARGETS = (1e-2, TARGET)
USED = (
    "Median [least, largest] over seeds of rounds, bits (up and down, all clients) and sample gradients. "
    "Where not all seeds get there, (2 of 3) says how many do: the others count as later than those, so that "
    "the largest is open (…), and so is the median (–) if no more than half get there. “Not reached” is "
    "where none does. Tuning: what the search for the method's number used."
)


def _used(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Median, least and largest use until the target, for each data set and method.

    Seeds that never got there count as more than any other: a number that depends on them is infinite.
    reached and seeds are numbers of seeds; tuning_* say what the search used, zero where there was none.
    """
    rows = []
    for experiment in inputs.experiments():
        for method in inputs.methods(experiment):
            cost = inputs.tuned(experiment, method).get("cost", Spent().record())
            for (_, used), first in used_until(inputs.run(experiment, method), [TARGET]).items():
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


def render_used(frame: pd.DataFrame, labels: Mapping[str, str] = LABELS) -> dict[str, pd.DataFrame]:
    """A table a data set, a line a method: median [least, largest] use (got there), and its search's."""
    tables = {}
    for experiment, part in frame.groupby("experiment", sort=False):
        rows = []
        for method in By("method", labels).order(part["method"].tolist()):
            line = {"method": labels.get(method, method)}
            for row in part[part["method"] == method].itertuples():
                line[USES[row.used]] = median_and_range(row, ".3g")
                line["tuning"] = str(Spent(row.tuning_runs, row.tuning_rounds, row.tuning_bits))
            rows.append(line)
        tables[PROBLEMS.get(experiment, experiment)] = pd.DataFrame(rows)[
            ["method", *USES.values(), "tuning"]
        ]
    return tables


def _pairs(inputs: Inputs, settings: dict) -> pd.DataFrame:
    frames = [
        pairs(
            experiment,
            {method: inputs.run(experiment, method) for method in inputs.methods(experiment)},
            TARGETS,
        )
        for experiment in inputs.experiments()
    ]
    return pd.concat(frames, ignore_index=True)


TABLES = by_name(
    Made(
        "table1",
        "Use until the relative gap is 1e-4",
        f"{USED} {SETTING}",
        _used,
        render_used,
    ),
    Made(
        "pairs",
        "Who needs less until the relative gap is 1e-2, and 1e-4",
        (
            "Three marks a pair, of rounds, bits and sample gradients: < where the method of the line needs "
            "fewer than that of the column (of the number that stands before its name), > where it needs "
            "more, · where neither is told. Of logarithms, paired over seeds, after Holm's correction over "
            "all pairs and targets of one data set and one use, and where the ratio of geometric means is at "
            "least 1.05; a seed that never gets there is a bound, and a pair whose order a bound leaves open "
            "is not told."
        ),
        _pairs,
        lambda frame: matrix(frame, LABELS),
    ),
)
