"""What the paper's figures call experiments, methods, readings and levels of heterogeneity."""

from __future__ import annotations

from collections.abc import Iterable

EXPERIMENTS = {
    "simulation1": "Simulation I",
    "simulation2": "Simulation II",
    "e2006": "E2006-tfidf",
    "rcv1": "RCV1",
    "mnist": "MNIST",
    "planted": "Planted problem",
}

METHODS = {
    "fedht": "FedHT",
    "fediterht": "FedIterHT",
    "distributed_iht": "Distributed-IHT",
    "fedavg": "FedAvg",
}

READINGS = {"own": "each method's own best step", "common": "one common step"}
# Figure 6: the paper prints one grid of steps for all data sets, whose best step may lie at its edge.
REAL_READINGS = {"own": READINGS["own"], "printed": "best step of the printed grid"}
# Figure 2 compares levels of heterogeneity, so there "common" means common to the levels.
LEVEL_READINGS = {"own": READINGS["own"], "equal": "one step at all levels"}


def level_name(level: str) -> str:
    """Heterogeneity level for people.

    >>> level_name("0.1,0.1"), level_name("1.0,1.0"), level_name("")
    ('(0.1, 0.1)', '(1, 1)', '')
    """
    return f"({', '.join(f'{float(number):g}' for number in level.split(','))})" if level else ""


def ordered_levels(levels: Iterable[str]) -> list[str]:
    """Distinct levels from the mildest to the most heterogeneous."""
    return sorted(set(levels), key=lambda level: [float(number) for number in level.split(",") if number])
