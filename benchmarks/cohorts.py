"""A round with a cohort of 10 of 50 clients, 784 features, K = 5, batches of 5: clients with more samples."""

from __future__ import annotations

import timing  # isort: skip, sets the number of threads

import argparse

import numpy as np

from replifed.algorithms.base import Round
from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.fediterht import FedIterHT
from replifed.network.participation import FixedSize
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic
from replifed.randomness import Streams

N, COHORT, D, K, B, TAU = 50, 10, 784, 5, 5, 100
SAMPLES = (20, 200, 2000)
# A round's time over that with the fewest samples, as a ratio of it to theirs.
ASKED = 1 / 1.3


def rounds(m: int):
    """A round of each method on clients with `m` samples."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1, N, m, D), dtype=np.float32), rng.choice([-1.0, 1.0], (1, N, m))
    problem, streams, cohort = DenseLinearModel(X, y, Logistic()), Streams(0, (0,)).at(0), FixedSize(COHORT)
    active, chosen = cohort(streams, N)
    context = Round(0, active, None, streams, chosen)
    settings = {"step": 0.01, "local_steps": K, "batch": B}
    for method in (FedAvg(**settings), FedIterHT(**settings, sparsity=TAU)):
        state = method.init(problem, Streams(0, (0,)))
        yield lambda method=method, state=state: [method.round(state, problem, context) for _ in range(10)]


def measure(repeats: int) -> list[timing.Row]:
    """Rounds on clients with few and with more samples, taking turns."""
    rows = []
    for name, same in zip(("FedAvg", "FedIterHT"), zip(*map(rounds, SAMPLES), strict=True), strict=True):
        few, *more = (seconds / 10 for seconds in timing.medians(*same, repeats=repeats))
        for m, seconds in zip(SAMPLES[1:], more, strict=True):
            work = f"{name}, cohort of 10 of 50 with {m} samples; loop: with {SAMPLES[0]}"
            rows.append(timing.Row(work, few, seconds, ASKED))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=21)
    timing.report(measure(parser.parse_args().repeats))
