"""Thin the tables of a run's figures for test_pictures: python tests/pictures/thin.py figures/small."""

from __future__ import annotations

import gzip
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from replifed.parts import paper_names, part

# Numbers along a curve that are kept, and pixels along the sides of a frame.
KEPT, PIXELS = 9, 24


def thinned(frame: pd.DataFrame) -> pd.DataFrame:
    """Every few rounds of each curve, the first and the last among them; the corner of a frame."""
    if "down" in frame:
        return frame[(frame["down"] < PIXELS) & (frame["right"] < PIXELS)]
    along = next((name for name in ("round", "at") if name in frame), None)
    if along is None or "printed_bits" in frame:
        return frame
    numbers = ("local_steps", "noise", "condition", "step", "level", "alpha", "l2", "dim", "message_bits")
    by = [name for name in frame if name in numbers or not is_numeric_dtype(frame[name])]
    kept = []
    for _, curve in frame.groupby(by, sort=False):
        values = np.unique(curve[along])
        some = values[np.unique(np.linspace(0, len(values) - 1, KEPT).astype(int))]
        kept.append(curve[curve[along].isin(some)])
    return pd.concat(kept).sort_index()


def main(figures: Path) -> None:
    """Write PAPER-NAME.csv.gz for each figure of the run in a folder."""
    for paper in paper_names():
        for name in import_module(part(paper, "figures")).FIGURES:
            path = figures / paper / f"{name}.csv"
            frame = pd.read_csv(path, keep_default_na=False, na_values=["nan"])
            text = thinned(frame).to_csv(index=False, float_format="%.8g").encode()
            # Without a time, so that equal tables give equal files.
            (Path(__file__).parent / f"{paper}-{name}.csv.gz").write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
