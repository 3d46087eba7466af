"""How time and memory of a round grow with clients, cohort, dimension, runs and samples a client.

Time is the median processor time of a round, the objective not recorded; memory is the round's peak beyond
what was held before it. An exponent e is fitted to the last three sizes: the quantity grows like size^e.
"""

from __future__ import annotations

import timing  # noqa: F401 # isort: skip, sets the number of threads

import argparse
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.fediterht import FedIterHT
from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.local_solvers import Gradient
from replifed.algorithms.scaffold import Scaffold
from replifed.engine.simulate import simulate
from replifed.network.participation import FixedSize
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams

# Largest exponents asked for, of time and memory. A client that stays out has a byte, in the mask of who
# takes part, which shows beside a cohort of 10.
TAKES_PART, STAYS_OUT = (1.1, 1.1), (0.2, 0.35)
NONZEROS = 75  # of a sparse sample
STEPS, BATCH = 5, 5


@dataclass(frozen=True)
class Sizes:
    """Of a problem and of what takes part in a round."""

    clients: int = 100
    cohort: int = 10
    dimension: int = 16
    runs: int = 1
    samples: int = 10


def dense(sizes: Sizes) -> Any:
    """A problem with normal features."""
    rng, shape = np.random.default_rng(0), (1, sizes.clients, sizes.samples)
    X = rng.standard_normal((*shape, sizes.dimension)) / np.sqrt(sizes.dimension)
    return DenseLinearModel(X, rng.choice([-1.0, 1.0], shape), Logistic(), l2=0.1)


def sparse(sizes: Sizes) -> Any:
    """A problem with 75 non-zeros a sample."""
    rng, n = np.random.default_rng(0), sizes.clients * sizes.samples
    # One column in each of 75 ranges, so that those of a sample differ and are in order.
    ends = np.linspace(0, sizes.dimension, NONZEROS + 1)
    columns = (ends[:-1] + rng.random((n, NONZEROS)) * np.diff(ends)).astype(np.int32)
    first = np.arange(0, n * NONZEROS + 1, NONZEROS, dtype=np.int32)
    X = sp.csr_array((rng.standard_normal(n * NONZEROS), columns.ravel(), first), (n, sizes.dimension))
    owner = np.repeat(np.arange(sizes.clients), sizes.samples)
    return SparseLinearModel(X, rng.choice([-1.0, 1.0], n), Logistic(), owner)


@dataclass(frozen=True)
class Case:
    """A method, its problem, and the series of sizes on which it is measured.

    `outside` are the sizes that should not matter: clients that stay out, and samples that are not drawn.
    """

    name: str
    algorithm: Any
    problem: Callable[[Sizes], Any]
    base: Sizes
    series: dict[str, tuple[int, ...]]
    outside: tuple[str, ...]


SERIES = {
    "clients": (100, 1000, 10_000, 100_000),
    "cohort": (10, 40, 160, 640),
    "dimension": (64, 256, 1024, 4096),
    "runs": (1, 8, 32, 128),
    "samples": (20, 80, 320, 1280),
}
SPARSE = {
    "clients": (100, 1000, 10_000),
    "cohort": (10, 40, 160, 640),
    "dimension": (10_000, 100_000, 1_000_000),
    "runs": (1, 4, 16),
    "samples": (2, 8, 32, 128),
}
DRAWN, ALL = ("clients", "samples"), ("clients",)
CASES = (
    Case("FedAvg", FedAvg(step=0.1, local_steps=STEPS, batch=BATCH), dense, Sizes(), SERIES, DRAWN),
    Case(
        "FedIterHT",
        FedIterHT(step=0.1, local_steps=STEPS, batch=BATCH, sparsity=8),
        dense,
        Sizes(),
        SERIES,
        DRAWN,
    ),
    Case("Fed-PLT", FedPLT(rho=1.0, solver=Gradient(steps=STEPS)), dense, Sizes(), SERIES, ALL),
    Case("SCAFFOLD", Scaffold(step=0.1, solver=Gradient(steps=STEPS)), dense, Sizes(), SERIES, ALL),
    Case(
        "FedAvg, sparse",
        FedAvg(step=0.1, local_steps=STEPS, batch=1),
        sparse,
        Sizes(samples=2, dimension=47_236),
        SPARSE,
        ALL,
    ),
)


def measured(case: Case, sizes: Sizes, rounds: int) -> tuple[float, float]:
    """Median time of a round, seconds, and the largest memory of one, bytes."""
    problem, streams = case.problem(sizes), Streams(0, tuple(range(sizes.runs)))
    cohort = FixedSize(sizes.cohort)

    def run(note: Callable[[int, int], None], t: int) -> None:
        simulate(case.algorithm, problem, streams, t, metrics={}, cohort=cohort, progress=note)

    times: list[float] = []
    run(lambda t, of: times.append(time.process_time()), rounds)
    taken = [after - before for before, after in pairwise(times[2:])]
    held: list[tuple[int, int]] = []

    def peak(t: int, of: int) -> None:
        held.append(tracemalloc.get_traced_memory())
        tracemalloc.reset_peak()

    tracemalloc.start()
    run(peak, 5)
    tracemalloc.stop()
    most = max(after[1] - before[0] for before, after in pairwise(held[1:]))
    return statistics.median(taken), most


def exponent(sizes: tuple[int, ...], values: list[float]) -> float:
    """Slope of log(value) over log(size) of the last three."""
    return float(np.polyfit(np.log(sizes[-3:]), np.log(values[-3:]), 1)[0])


def lines(case: Case, rounds: int) -> tuple[list[str], int]:
    """The table's lines of a method, and how many exponents are larger than asked."""
    found, missed = [], 0
    for what, series in case.series.items():
        base = replace(case.base, clients=max(case.base.clients, max(series) if what == "cohort" else 0))
        times, memories = zip(
            *(measured(case, replace(base, **{what: size}), rounds) for size in series), strict=True
        )
        asked = STAYS_OUT if what in case.outside else TAKES_PART
        slopes = [exponent(series, list(values)) for values in (times, memories)]
        over = sum(slope > most for slope, most in zip(slopes, asked, strict=True))
        missed += over
        found.append(
            f"| {case.name} | {what} | {series[0]:,} to {series[-1]:,} | {1e3 * times[0]:.2f} "
            f"| {1e3 * times[-1]:.2f} | {slopes[0]:.2f} | {memories[-1] / 2**20:.2f} | {slopes[1]:.2f} "
            f"| {asked[0]}, {asked[1]}{' (missed)' if over else ''} |"
        )
    return found, missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="of each measurement")
    parser.add_argument("--only", nargs="*", help="names of methods")
    arguments = parser.parse_args()
    print("| method | grows | from, to | ms at the first | ms at the last | exponent ", end="")
    print("| MiB at the last | exponent | at most |\n|---|---|---|--:|--:|--:|--:|--:|--:|")
    failed = 0
    for one in CASES:
        if arguments.only is None or one.name in arguments.only:
            rows, missed = lines(one, arguments.rounds)
            print("\n".join(rows), flush=True)
            failed += missed
    sys.exit(1 if failed else 0)
