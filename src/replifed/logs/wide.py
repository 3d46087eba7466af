"""Wide tables, whose columns are runs: as lines of a run each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replifed.errors import DataError
from replifed.logs import files
from replifed.logs.meanings import FILE, VALUE

_BOUNDS = "__MIN", "__MAX"  # ends of columns of wandb, beside that of a run


def stacked(frame: pd.DataFrame, pattern: str, others: set[str | None], named: str) -> pd.DataFrame:
    """Lines of a run each, of a table whose columns are runs, by a pattern of their names."""
    found = {
        column: says
        for column in frame
        if column not in {*others, FILE} and not str(column).endswith(_BOUNDS) and is_run(frame[column])
        for says in [files.parse_name(pattern, str(column))]
        if says is not None
    }
    if not found:
        raise DataError(f"{named}: wide: no column is called {pattern}")
    kept = frame[[column for column in frame if column not in found and not str(column).endswith(_BOUNDS)]]
    runs: dict[tuple[tuple[str, str], ...], dict[str, pd.Series]] = {}
    for column, says in found.items():
        metric = says.pop("metric", VALUE)
        runs.setdefault(tuple(says.items()), {})[metric] = frame[column]
    parts = []
    for run, metrics in runs.items():
        part = kept.assign(**dict(run), **metrics)
        # Runs that were logged together have lines of each other, but none after their own last number.
        known = part[list(metrics)].notna().any(axis=1).to_numpy()
        last = np.flatnonzero(known)[-1] if known.any() else len(known)
        parts.append(part[known | (np.arange(len(part)) > last)])
    return pd.concat(parts, ignore_index=True)


def is_run(values: pd.Series) -> bool:
    """Return True of a column of numbers, of which there is one."""
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return numeric and values.notna().any() and not str(values.name).startswith("Unnamed")
