"""The paper, and what its figures call experiments, methods, readings and levels of heterogeneity."""

from __future__ import annotations

from collections.abc import Iterable

from replifed.algorithms.looks import method_line

PAPER = {
    "name": "FedHT and FedIterHT",
    "citation": (
        "Q. Tong, G. Liang, J. Ding, T. Zhu, M. Pan, J. Bi: Federated Optimization of ℓ0-norm Regularized "
        "Sparse Learning. Algorithms 15(9), 319, 2022."
    ),
    "doi": "10.3390/a15090319",
}

EXPERIMENTS = {
    "simulation1": "Simulation I",
    "simulation2": "Simulation II",
    "e2006": "E2006-tfidf",
    "rcv1": "RCV1",
    "mnist": "MNIST",
    "mnist_classes": "MNIST, τ in each class",
    "planted": "Planted problem",
    "biased": "One minimiser",
    "dissimilar": "Dissimilar clients",
    "dissimilar_support": "Dissimilar on the support",
    "dissimilar_noisy": "Dissimilar, noisy",
    "dissimilar_support_noisy": "Dissimilar on the support, noisy",
}

# tau of the paper's experiments; the text gives none for the simulations.
SPARSITIES = {"simulation1": 200, "simulation2": 200, "e2006": 200, "rcv1": 200, "mnist": 500}

# Figure 3, in words: FedIterHT needs so many rounds to where Distributed-IHT is after so many, which are so
# many times more.
ROUNDS = {"simulation1": (20, 100, 5.0), "simulation2": (50, 200, 4.0)}

METHODS = {
    "fedht": "FedHT",
    "fediterht": "FedIterHT",
    "distributed_iht": "Distributed-IHT",
    "fedavg": "FedAvg",
}

LINES = {
    **{name: method_line(name) for name in ("fediterht", "fedht", "distributed_iht")},
    "fedavg": method_line("fedavg", "FedAvg (dense, for reference)"),
}

# That which decides first, then the one that was fitted.
READINGS = {
    "theory": "the theorems' step",
    "common": "one common step",
    "own": "each method's own best step",
}
# Figures 3 and 6: the paper prints one grid of steps for all data sets, whose best step may lie at its edge.
PRINTED = "best step of the printed grid"
COMPARISON_READINGS = {"printed": PRINTED, **READINGS}
REAL_READINGS = {"printed": PRINTED, "own": READINGS["own"]}
# Figure 2 compares levels of heterogeneity, so there "common" means common to the levels.
LEVEL_READINGS = {"printed": PRINTED, "own": READINGS["own"], "equal": "one step at all levels"}


def level_name(level: str) -> str:
    """Heterogeneity level in words.

    >>> level_name("0.1,0.1"), level_name("1.0,1.0"), level_name("")
    ('(0.1, 0.1)', '(1, 1)', '')
    """
    return f"({', '.join(f'{float(number):g}' for number in level.split(','))})" if level else ""


def experiment_name(experiment: str, level: str = "") -> str:
    """An experiment, at a level of heterogeneity, in words."""
    return f"{EXPERIMENTS[experiment]} {level_name(level)}".strip()


def level_key(level: str) -> list[float]:
    """Sort levels from the mildest to the most heterogeneous."""
    return [float(number) for number in level.split(",") if number]


def ordered_levels(levels: Iterable[str]) -> list[str]:
    """Distinct levels from the mildest to the most heterogeneous."""
    return sorted(set(levels), key=level_key)
