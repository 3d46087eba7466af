"""Tables of a small run, from which one test draws all figures; others compare columns with theirs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parents[1] / "pictures"


def small_table(paper: str, name: str, rows: int | None = None) -> pd.DataFrame:
    """Return the table behind a figure, thinned by tests/pictures/thin.py, or its first rows."""
    path = FOLDER / f"{paper}-{name}.csv.gz"
    return pd.read_csv(path, keep_default_na=False, na_values=["nan"], nrows=rows)


def columns(paper: str, name: str) -> set[str]:
    """Return the columns of that table, without the two that the job adds."""
    *own, data, scale = small_table(paper, name, rows=0)
    assert (data, scale) == ("data", "scale")
    return set(own)
