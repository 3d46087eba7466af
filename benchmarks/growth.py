"""How time and memory of a round grow with clients, cohort, dimension, runs and samples a client.

Time is the median processor time of a round, the objective not recorded; memory is the round's peak beyond
what was held before it. An exponent e is fitted to the last three sizes: the quantity grows like size^e.

    python growth.py                             # a table
    python growth.py --page                      # also docs/growth.csv, and the page's picture and table
    python growth.py --page --stored             # the same from the numbers that docs/growth.csv has
"""

from __future__ import annotations

import timing  # noqa: F401 # isort: skip, sets the number of threads

import argparse
import csv
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import page
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
STORED, PICTURE = (page.FILE.with_suffix(suffix) for suffix in (".csv", ".webp"))


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


@dataclass(frozen=True)
class Series:
    """What a method takes as one size grows: seconds of a round, and bytes."""

    case: Case
    what: str
    sizes: tuple[int, ...]
    seconds: list[float]
    bytes: list[float]

    @property
    def outside(self) -> bool:
        """Whether the size should not matter."""
        return self.what in self.case.outside

    @property
    def exponents(self) -> tuple[float, float]:
        """Of time and of memory."""
        return exponent(self.sizes, self.seconds), exponent(self.sizes, self.bytes)

    @property
    def missed(self) -> int:
        """How many exponents are larger than asked."""
        asked = STAYS_OUT if self.outside else TAKES_PART
        return sum(slope > most for slope, most in zip(self.exponents, asked, strict=True))

    def line(self) -> str:
        """The table's line."""
        asked = STAYS_OUT if self.outside else TAKES_PART
        time, memory = self.exponents
        return (
            f"| {self.case.name} | {self.what} | {self.sizes[0]:,} to {self.sizes[-1]:,} "
            f"| {1e3 * self.seconds[0]:.2f} | {1e3 * self.seconds[-1]:.2f} | {time:.2f} "
            f"| {self.bytes[-1] / 2**20:.2f} | {memory:.2f} "
            f"| {asked[0]}, {asked[1]}{' (missed)' if self.missed else ''} |"
        )


def grown(case: Case, what: str, rounds: int) -> Series:
    """Measure a method as one size grows."""
    sizes = case.series[what]
    base = replace(case.base, clients=max(case.base.clients, max(sizes) if what == "cohort" else 0))
    times, memories = zip(
        *(measured(case, replace(base, **{what: size}), rounds) for size in sizes), strict=True
    )
    return Series(case, what, sizes, list(times), list(memories))


def write(found: list[Series]) -> None:
    """Store what was measured."""
    with STORED.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("method", "grows", "size", "seconds", "bytes"))
        for one in found:
            for size, seconds, memory in zip(one.sizes, one.seconds, one.bytes, strict=True):
                table.writerow((one.case.name, one.what, size, f"{seconds:.3g}", round(memory)))


def read() -> list[Series]:
    """Return what `write` has stored."""
    with STORED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = []
    for case in CASES:
        for what in case.series:
            mine = [row for row in rows if (row["method"], row["grows"]) == (case.name, what)]
            seconds, memories = ([float(row[key]) for row in mine] for key in ("seconds", "bytes"))
            found.append(Series(case, what, tuple(int(row["size"]) for row in mine), seconds, memories))
    return found


def ranges(found: list[Series]) -> str:
    """The page's table: exponents from the least method's to the largest's."""
    lines = ["| grows | time | memory |", "|---|--:|--:|"]
    for what in SERIES:
        for outside in (True, False):
            of = [one for one in found if (one.what, one.outside) == (what, outside)]
            some = len(of) < sum(one.what == what for one in found)
            if of:
                names = (
                    f", {' and '.join(one.case.name for one in of)} (minibatches)" if some and outside else ""
                )
                names = ", others" if some and not outside else names
                slopes = zip(*(one.exponents for one in of), strict=True)
                lines.append(f"| {what}{names} | {' | '.join(between(list(values)) for values in slopes)} |")
    return "\n".join(lines)


def between(values: list[float]) -> str:
    """The least and the largest of some numbers, or both in one where they look alike."""
    least, largest = (f"{value + 0.0:.1f}".replace("-0.0", "0.0") for value in (min(values), max(values)))
    return least if least == largest else f"{least} to {largest}"


def draw(found: list[Series], file: Path) -> None:
    """Draw time and memory of a round over each size."""
    import matplotlib.pyplot as plt

    colours = dict(
        zip(
            (case.name for case in CASES),
            ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000"),
            strict=True,
        )
    )
    figure, axes = plt.subplots(
        2, len(SERIES), figsize=(7.6, 3.8), sharex="col", sharey="row", layout="constrained"
    )
    for column, what in zip(axes.T, SERIES, strict=True):
        for one in found:
            if one.what == what:
                style = {
                    "color": colours[one.case.name],
                    "ls": ":" if one.outside else "-",
                    "marker": "o",
                    "ms": 2.5,
                }
                column[0].loglog(one.sizes, [1e3 * each for each in one.seconds], lw=1, **style)
                column[1].loglog(one.sizes, [each / 2**20 for each in one.bytes], lw=1, **style)
        column[1].set_xlabel("samples a client" if what == "samples" else what, fontsize=8)
        for panel in column:
            panel.grid(alpha=0.25)
            panel.tick_params(which="both", labelsize=7)
    axes[0, 0].set_ylabel("ms a round", fontsize=8)
    axes[1, 0].set_ylabel("MiB a round", fontsize=8)
    shown = [plt.Line2D([], [], color=colour, marker="o", ms=2.5, lw=1) for colour in colours.values()]
    figure.legend(
        shown, list(colours), loc="outside lower center", ncols=len(colours), fontsize=7, frameon=False
    )
    figure.savefig(file, dpi=150)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40, help="of each measurement")
    parser.add_argument("--only", nargs="*", help="names of methods")
    parser.add_argument("--page", action="store_true", help="write docs/growth.*")
    parser.add_argument("--stored", action="store_true", help="measure nothing: take docs/growth.csv")
    arguments = parser.parse_args()
    if arguments.page and arguments.only is not None:
        parser.error("--page needs all methods")
    print("| method | grows | from, to | ms at the first | ms at the last | exponent ", end="")
    print("| MiB at the last | exponent | at most |\n|---|---|---|--:|--:|--:|--:|--:|--:|")
    found = read() if arguments.stored else []
    for one in found:
        print(one.line())
    if not arguments.stored:
        for case in CASES:
            for what in case.series if arguments.only is None or case.name in arguments.only else ():
                found.append(grown(case, what, arguments.rounds))
                print(found[-1].line(), flush=True)
    if arguments.page:
        if not arguments.stored:
            write(found)
        draw(found, PICTURE)
        page.put(
            "growth",
            f"![Time and memory of a round as one size grows]({PICTURE.name})\n\n"
            f"Dotted: sizes that should not matter.\n\n{ranges(found)}",
        )
    return 1 if any(one.missed for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
