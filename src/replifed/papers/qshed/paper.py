"""The paper, what it prints, and names of experiments, channels and methods, with the lines of these."""

from __future__ import annotations

from replifed.algorithms.looks import method_line
from replifed.figures.lines import SPARSE, TWO_DASHES, TWO_DOTS, WIDE

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
CHANNELS = {"constant": "no fading", "rayleigh": "Rayleigh fading"}
THRESHOLDS = (1e-4, 1e-6, 1e-8)
# Section IV-A: what a device allocates to its first eigenvectors, and their eigenvalues.
PRINTED_BITS = (3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1)
PRINTED_VALUES = (0.21, 0.11, 0.06, 0.03, 0.03, 0.02, 0.02, 0.01, 0.01, 0.01, 0.01)

# By method and variant, "method" or "method.variant".
LINES = {
    "ideal_shed": method_line("ideal_shed"),
    "qshed": method_line("qshed"),
    "qshed.exact_q": method_line("qshed", "Q-SHED, exact choice of q", dashes=TWO_DASHES, marker="P"),
    "nqshed": method_line("nqshed"),
    "fednl.rank1_ls": method_line("fednl", "FedNL, rank 1, line search"),
    "fednl.projected": method_line(
        "fednl", "FedNL, rank 1, projected only", dashes=SPARSE, marker="", width=1.2
    ),
    "fednl.quantised_ls": method_line(
        "fednl", "FedNL, rank 1, line search, quantised", dashes=TWO_DOTS, marker="<"
    ),
    "fednl.option2_ls": method_line(
        "fednl", "FedNL, rank 1, option 2, line search", dashes=TWO_DASHES, marker="v"
    ),
    "fednl.vector16_ls": method_line("fednl", "FedNL, rank 1 at 16 bits", dashes=SPARSE, marker="X"),
    "fednl.topk_ls": method_line("fednl", "FedNL, top-k, line search", dashes=WIDE, marker="D"),
    **{name: method_line(name) for name in ("shed", "giant", "newton", "gradient_descent")},
}


def curve_name(method: str, variant: str) -> str:
    """Key of a curve in `LINES`."""
    name = f"{method}.{variant}" if variant else method
    return name if name in LINES else method


def shown_with(experiment: str) -> str:
    """The experiment in whose panels an experiment is drawn: methods and searches beyond it are run apart."""
    for ending in ("_baselines", "_halved", "_others", "_printed"):
        experiment = experiment.removesuffix(ending)
    return experiment
