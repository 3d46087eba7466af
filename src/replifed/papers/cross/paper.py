"""The comparison: its problems, and methods by purpose, with their lines."""

from __future__ import annotations

from replifed.algorithms.looks import method_line, method_lines
from replifed.algorithms.registry import BUILT_IN, METHODS
from replifed.figures.lines import Line

PAPER = {"name": "All methods on the same problems", "citation": "A comparison that no paper has.", "doi": ""}

# Rules of the comparison, on all data; and those of `cross`.
FAIR = (
    "Full local gradients. The one number of each first-order method is searched on the same grid of "
    "multiples of a reference value, by the mean over the same repetitions, which are not reported, at a "
    "distance from multiples that diverge. All searches have one budget of runs; extensions of the grid "
    "count. A search runs for a third of the reported rounds; for all of them FedAvg would take a shorter "
    "step and end lower. FedGradMP and FedMM have no number to tune, since their steps follow from the data; "
    "nor have gradient descent and the methods that use Hessians, which search their step lengths "
    "themselves. Unquantised numbers are rounded to 32 bits and counted so; what Q-SHED, NQ-SHED and FedMM "
    "quantise counts its own bits. Sample gradients do not include Hessians, which have a column of their "
    "own."
)
SETTING = (
    "Logistic regression with a ridge on four data sets, on two of them with a 1-norm as well, clients by "
    "k-means; and a drawn linear regression with a planted sparse model, from which those of the clients "
    f"differ. {FAIR}"
)
COHORTS = (
    "One client in ten, drawn uniformly, takes part in a round. a9a has 100 clients, by k-means. Digits by "
    "writer are MNIST's of 50 writers, drawn anew for each seed, of whom 5 never take part; there is softmax "
    "regression. Methods whose papers have no form for cohorts are left out."
)


# Methods by purpose, in the order of the figures' legends.
FIRST_ORDER = ("fedavg", "fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs")
SECOND_ORDER = (
    "gradient_descent",
    "newton",
    "giant",
    "fednl",
    "shed",
    "ideal_shed",
    "nqshed",
    "qshed",
    "fedlin",
)
COMPOSITE = ("fedmid", "feddualavg", "fedplt", "fedmm")
SPARSE = ("fedht", "fediterht", "distributed_iht", "fedgradmp")
AVERAGED = ("fedavg", "fedprox", "fednova", "fedavgm", "fedadam_server", "fedac", "mb_sgd", "mb_ac_sgd")
CORRECTED = ("fedavg", "scaffold", "scaffnew", "slocalgd", "feddyn", "fedsplit", "fedlin")
_OTHERWISE = {"fedmm": method_line("fedmm", "FedMM (proximal gradient)")}


def lines(*first: str) -> dict[str, Line]:
    """Return the lines of all built-in methods, some of them first."""
    return method_lines(dict.fromkeys([*first, *BUILT_IN])) | _OTHERWISE


EVERY = lines(*FIRST_ORDER, *SECOND_ORDER, *COMPOSITE, *SPARSE, *AVERAGED, *CORRECTED)
LABELS = {name: line.label for name, line in EVERY.items()}


def registered_lines() -> dict[str, Line]:
    """Return the lines of custom methods, and then of built-in ones."""
    return method_lines(name for name in METHODS if name not in EVERY) | EVERY


def registered_labels() -> dict[str, str]:
    """Return what `registered_lines` calls each method."""
    return {name: line.label for name, line in registered_lines().items()}


# Problems for all methods, and those for some of them.
EXPERIMENTS = {"a9a": "a9a", "phishing": "phishing", "mushrooms": "mushrooms", "w8a": "w8a"}
WITH_NORM = {"a9a_l1": "a9a with a 1-norm", "w8a_l1": "w8a with a 1-norm"}
WITH_COHORT = {
    "a9a_cohort": "a9a, one client in ten",
    "writers": "digits by writer, one in ten",
}
PROBLEMS = {**EXPERIMENTS, **WITH_NORM, "planted": "planted sparse model", **WITH_COHORT}
