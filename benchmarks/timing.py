"""Compare our code with a plain baseline in one run: interleaved, in processor time, with medians.

Import this module before numpy, since it asks for one thread a process.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes
    ----------
    work : what is computed
    loop, ours : median processor time of the baseline and of our code, seconds
    asked : ratio that is asked for, None if the row is for information
    floor : median processor time of what cannot be left out, or the least that the hardware allows, seconds;
        None where neither is measured
    """

    work: str
    loop: float
    ours: float
    asked: float | None = None
    floor: float | None = None

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.loop / self.ours

    @property
    def met(self) -> bool:
        """Whether the ratio is what is asked for."""
        return self.asked is None or self.ratio >= self.asked


def medians(*functions: Callable[[], object], repeats: int) -> list[float]:
    """Median processor time of each function; they take turns, after one call each that is not counted.

    Interleaved, a machine that gets slower for a while slows all of them down alike.
    """
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + 1):
        for function, taken in zip(functions, times, strict=True):
            start = time.process_time()
            function()
            if turn:
                taken.append(time.process_time() - start)
    return [statistics.median(taken) for taken in times]


def read_seconds(size: float) -> float:
    """Time that reading so many bytes from memory takes at this machine's best."""
    import numpy as np

    array = np.ones(8 << 20)
    # A dot product keeps up with memory; numpy's sum does not.
    best = min(medians(lambda: array @ array, repeats=3)[0] for _ in range(3))
    return size * best / array.nbytes


def report(rows: list[Row]) -> None:
    """Print a table, and exit with status 1 if a ratio is below what is asked."""
    print("| work | plain loop, ms | ours, ms | ratio | asked | floor, ms | of it |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        asked = "" if row.asked is None else f"{row.asked:g}"
        floor = " | " if row.floor is None else f"{1e3 * row.floor:.2f} | {row.ours / row.floor:.2f}"
        note = "" if row.met else " (missed)"
        print(
            f"| {row.work} | {1e3 * row.loop:.1f} | {1e3 * row.ours:.1f} | {row.ratio:.2f}{note} "
            f"| {asked} | {floor} |"
        )
    sys.exit(0 if all(row.met for row in rows) else 1)
