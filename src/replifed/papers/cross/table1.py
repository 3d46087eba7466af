"""What each method uses until the relative gap is 1e-4: rounds, bits and sample gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from replifed.papers.cross.families import EXPERIMENTS, FIRST_ORDER, SECOND_ORDER

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


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Median, least and largest use over the seeds, for each data set and method.

    Columns reached and seeds count; median, low and high are empty where a seed never got there.
    """
    rows = []
    for experiment in inputs.experiments():
        for method in inputs.methods(experiment):
            used = reached(inputs.run(experiment, method))
            for column in _USED:
                values, all_there = used[column], bool(used[column].notna().all())
                rows.append(
                    {
                        "experiment": experiment,
                        "method": method,
                        "used": column,
                        "median": values.median() if all_there else np.nan,
                        "low": values.min() if all_there else np.nan,
                        "high": values.max() if all_there else np.nan,
                        "reached": int(values.notna().sum()),
                        "seeds": len(values),
                    }
                )
    return pd.DataFrame(rows)


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """A line a method, a column for each data set and kind of use: median [least, largest]."""
    names = {**FIRST_ORDER, **SECOND_ORDER, "fedlin": FIRST_ORDER["fedlin"]}
    lines = []
    for method in names:
        own = frame[frame["method"] == method]
        if own.empty:
            continue
        line = {"method": names[method].label}
        for row in own.itertuples():
            line[f"{EXPERIMENTS[row.experiment]}: {_USED[row.used]}"] = _cell(row)
        lines.append(line)
    return pd.DataFrame(lines).fillna("")


def _cell(row: Any) -> str:
    if row.reached < row.seeds:
        return f"not reached ({row.reached} of {row.seeds})" if row.reached else "not reached"
    # A column with an empty cell comes back from the CSV as text.
    median, low, high = (float(number) for number in (row.median, row.low, row.high))
    return f"{median:.3g} [{low:.3g}, {high:.3g}]"
