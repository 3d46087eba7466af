"""The paper, its methods, and the settings of its figures according to the published code."""

from __future__ import annotations

from typing import NamedTuple

from replifed.algorithms.looks import method_line
from replifed.figures.lines import DASH_DOT, ORANGE, SHORT, SKY

PAPER = {
    "name": "FedAc",
    "citation": (
        "H. Yuan, T. Ma: Federated Accelerated Stochastic Gradient Descent. Advances in Neural Information "
        "Processing Systems (NeurIPS) 33, 2020; arXiv 2006.08950."
    ),
    "doi": "10.48550/arXiv.2006.08950",
}


class Variant(NamedTuple):
    """A method as the authors' results name it."""

    method: str  # in the registry
    coupling: str | None  # of its two sequences; None of FedAvg, and so of minibatch SGD, which have one
    kind: str = "local"  # or "minibatch", one step for every K


VARIANTS = {
    "fedavg": Variant("fedavg", None),
    "fedac_1": Variant("fedac", "1"),
    "fedac_2": Variant("fedac", "2"),
    "naive_fedac": Variant("fedac", "naive"),
    "mb_sgd": Variant("mb_sgd", None, "minibatch"),
    "mb_ac_sgd": Variant("mb_ac_sgd", "naive", "minibatch"),
}
LINES = {
    "mb_sgd": method_line("mb_sgd", "MB-SGD"),
    "mb_ac_sgd": method_line("mb_ac_sgd", "MB-AC-SGD"),
    "fedavg": method_line("fedavg"),
    "fedac_1": method_line("fedac", "FedAc-I"),
    # The couplings are what is compared, so that each has a colour.
    "fedac_2": method_line("fedac", "FedAc-II", color=SKY, dashes=SHORT, marker="D"),
    "naive_fedac": method_line("fedac", "naive FedAc", color=ORANGE, dashes=DASH_DOT, marker="P"),
}

# The experiments' weights of regularisation, and the optima that the authors take from their objectives.
L2 = {"a9a_2": 1e-2, "a9a_3": 1e-3, "a9a_4": 1e-4}
OPTIMA = {1e-2: 0.3727237615595949, 1e-3: 0.3333407530091771, 1e-4: 0.3245069255709821}
# Smoothness of the mean loss on a9a, without regularisation: the largest eigenvalue of X'X / (4 n).
SMOOTHNESS = 1.571919699222661
EPSILON_OPTIMUM = 0.47130400753628965

_STEPS = (0.001, 0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Steps of which a point of a figure is the best; others were run, too.
FIGURE_STEPS = {
    1e-2: _STEPS,
    1e-3: _STEPS,
    1e-4: (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
}


# Numbers of workers and of local steps that the authors published, and the most workers that were run.
WORKERS, LOCAL_STEPS = [2**power for power in range(14)], [2**power for power in range(10)]
MOST_RUN = 256
# Runs on a9a that they published, and those of these that are at hand with at most `MOST_RUN` workers.
PUBLISHED_RUNS, RUNS_AT_HAND = 32_190, 13_892
# Points, the best of each l2, method and (K, M), that they published, and those with as few workers.
PUBLISHED_POINTS, POINTS_RUN = 2210, 1440


class Drawn(NamedTuple):
    """A figure of the paper."""

    l2: float
    methods: tuple[str, ...]
    panels: str  # M or K, which panels differ in; the other one is the horizontal axis
    values: tuple[int, ...]  # of the panels
    first: int  # minimum of the horizontal axis

    def count(self, most: int = WORKERS[-1]) -> int:
        """Number of its points that have at most so many workers."""
        along = LOCAL_STEPS if self.panels == "M" else WORKERS
        cases = [(one, x) for one in self.values for x in along if x >= self.first]
        few = [case for case in cases if case[self.panels == "K"] <= most]
        return len(self.methods) * len(few)


_METHODS = ("mb_sgd", "mb_ac_sgd", "fedavg", "fedac_1")
_K, _M = (1, 8, 32, 64, 128, 256), (256, 512, 1024, 2048, 4096, 8192)
DRAWN = {
    "fig1": Drawn(1e-3, _METHODS, "K", _K, 4),
    "fig2": Drawn(1e-3, _METHODS, "M", _M, 1),
    "fig3": Drawn(1e-2, _METHODS, "K", _K, 4),
    "fig4": Drawn(1e-2, _METHODS, "M", _M, 1),
    "fig5": Drawn(1e-4, _METHODS, "K", _K, 4),
    "fig6": Drawn(1e-4, _METHODS, "M", _M, 1),
    # The published code does not say which panels it has [C].
    "fig7": Drawn(1e-4, ("mb_ac_sgd", "fedac_1", "naive_fedac"), "K", (1, 8, 16, 64, 128, 256), 16),
}
