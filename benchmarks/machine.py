"""How fast is this machine? Beside the one on which the budgets of time were set: python machine.py.

A budget in minutes means little without its machine: hosts of the same kind differ by a factor of two, and
by other factors for arithmetic, memory and Python.
"""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import subprocess
import sys

import numpy as np

# Of the machine of the budgets: products in GF/s, reads of memory in GB/s, imports in seconds.
BUDGETED = {
    "product of matrices, float64, GF/s": 91.0,
    "product of matrices, float32, GF/s": 232.0,
    "read of memory, GB/s": 46.0,
    "imports of pandas, 1/s": 1 / 0.322,
}


def product(dtype: type) -> float:
    """GF/s of a product of two matrices."""
    n = 1500
    A = np.random.default_rng(0).random((n, n)).astype(dtype)
    [seconds] = timing.medians(lambda: A @ A, repeats=9)
    return 2e-9 * n**3 / seconds


def imports() -> float:
    """Imports of pandas a second, by a process that has numpy."""
    line = "import time, numpy; t = time.process_time(); import pandas; print(time.process_time() - t)"
    taken = [float(subprocess.check_output([sys.executable, "-c", line])) for _ in range(5)]
    return 1 / sorted(taken)[2]


def main() -> None:
    here = [product(np.float64), product(np.float32), 1e-9 / timing.read_seconds(1), imports()]
    print("| speed | here | where budgets were set | share |\n|---|--:|--:|--:|")
    for (name, there), speed in zip(BUDGETED.items(), here, strict=True):
        print(f"| {name} | {speed:.1f} | {there:.1f} | {speed / there:.2f} |")


if __name__ == "__main__":
    main()
