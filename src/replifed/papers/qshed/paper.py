"""The paper, what it prints, and names of experiments, channels and methods, with the lines of these."""

from __future__ import annotations

from replifed.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, Line

PAPER = {
    "name": "Q-SHED",
    "citation": (
        "N. Dal Fabbro, M. Rossi, L. Schenato, S. Dey: Q-SHED: Distributed Optimization at the Edge via "
        "Hessian Eigenvectors Quantization. IEEE International Conference on Communications (ICC), 2023; "
        "arXiv 2305.10852."
    ),
    "doi": "10.48550/arXiv.2305.10852",
}

EXPERIMENTS = {"fmnist": "FMNIST", "w8a": "w8a"}
DIMENSIONS = {"fmnist": 90, "w8a": 300}
CHANNELS = {"constant": "no fading", "rayleigh": "Rayleigh fading"}
THRESHOLDS = (1e-4, 1e-6, 1e-8)
# Section IV-A: what a device allocates to its first eigenvectors, and their eigenvalues.
PRINTED_BITS = (3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1)
PRINTED_VALUES = (0.21, 0.11, 0.06, 0.03, 0.03, 0.02, 0.02, 0.01, 0.01, 0.01, 0.01)

# By method and variant, "method" or "method.variant".
LINES = {
    "ideal_shed": Line("ideal-SHED", BLACK, (0, (1, 1))),
    "qshed": Line("Q-SHED", BLUE, "-", "o"),
    "qshed.exact_q": Line("Q-SHED, exact choice of q", PURPLE, (0, (2, 1)), "P"),
    "nqshed": Line("NQ-SHED", VERMILLION, (0, (5, 1.5)), "s"),
    "fednl.rank1_ls": Line("FedNL, rank 1, line search", GREEN, (0, (4, 1.5, 1, 1.5)), "^"),
    "fednl.projected": Line("FedNL, rank 1, projected only", GREY, (0, (1, 1.2)), "", 1.0),
    "fednl.quantised_ls": Line("FedNL, rank 1, line search, quantised", VERMILLION, (0, (1, 2)), "<"),
    "fednl.option2_ls": Line("FedNL, rank 1, option 2, line search", ORANGE, (0, (3, 1)), "v"),
    "fednl.topk_ls": Line("FedNL, top-k, line search", PURPLE, (0, (6, 2, 2, 2)), "D"),
    "shed": Line("SHED", VERMILLION, (0, (2, 1)), "X"),
    "giant": Line("GIANT", SKY, (0, (6, 2)), "P"),
    "newton": Line("distributed Newton", BLACK, "-", "*"),
    "gradient_descent": Line("gradient descent", GREY, (0, (4, 2)), "", 1.2),
}


def curve_name(method: str, variant: str) -> str:
    """Key of a curve in `LINES`."""
    name = f"{method}.{variant}" if variant else method
    return name if name in LINES else method


def shown_with(experiment: str) -> str:
    """The experiment in whose panels an experiment is drawn: methods and searches beyond it are run apart."""
    return experiment.removesuffix("_baselines").removesuffix("_giant_search")
