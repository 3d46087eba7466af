"""Repetitions that are copies of one run: equal, up to rounding, in all that was recorded of them.

Where nothing is drawn, since clients are given and gradients are full, every seed is one run. Its copies say
nothing of the spread over seeds, so that tests and intervals count it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# Two numbers are equal if they differ by this share of their size, or this one of that at the start: sums in
# another order, in floats of 32 bits, differ by less, and runs that drew other samples or clients by more.
_OF_SIZE, _OF_START = 1e-5, 1e-6
TWINS = (".of_start", ".of_step")  # ends of columns of perturbed runs


def originals(history: pd.DataFrame) -> dict[Any, Any]:
    """First repetition whose run each repetition repeats, by replicate; a run that is the first, itself.

    Columns of perturbed runs say nothing: each repetition draws a perturbation of its own.
    """
    numbers = history.select_dtypes(["number", "bool"]).drop(columns="replicate", errors="ignore")
    numbers = numbers[[name for name in numbers if not str(name).endswith(TWINS)]]
    keys = (history["round"], history["replicate"]) if "round" in history else (history["replicate"],)
    order = np.lexsort(tuple(key.to_numpy() for key in keys))
    names, starts = np.unique(history["replicate"].to_numpy()[order], return_index=True)
    runs = np.split(numbers.to_numpy(float)[order], starts[1:])
    # Most runs are told apart by two of their lines.
    few = np.array([run[[len(run) // 2, -1]] for run in runs])
    found: list[int] = []
    for place, run in enumerate(runs):
        like = np.flatnonzero(_equal(few[:place], few[place], run[0]).all(axis=(1, 2)))
        alike = (one for one in like if run.shape == runs[one].shape)
        copied = (one for one in alike if _equal(runs[one], run, run[0]).all())
        found.append(next((found[one] for one in copied), place))
    return {name.item(): names[first].item() for name, first in zip(names, found, strict=True)}


def _equal(runs: NDArray, other: NDArray, start: NDArray) -> NDArray:
    least = _OF_START * np.abs(np.nan_to_num(start, posinf=0.0, neginf=0.0))
    with np.errstate(invalid="ignore"):
        return np.isclose(runs, other, rtol=_OF_SIZE, atol=least, equal_nan=True)


def independent(*of: Mapping[Any, Any]) -> list[Any]:
    """Repetitions that are left if copies count once; a copy is one in all of several `originals`."""
    common = [name for name in of[0] if all(name in one for one in of)]
    seen = {tuple(one[name] for one in of): name for name in reversed(common)}
    return sorted(seen.values())


def told(runs: int, repetitions: int) -> str:
    """Return "one run, 20 copies", or "7 runs, 20 repetitions"; "" if none is a copy."""
    if runs == repetitions:
        return ""
    return f"one run, {repetitions} copies" if runs == 1 else f"{runs} runs, {repetitions} repetitions"
