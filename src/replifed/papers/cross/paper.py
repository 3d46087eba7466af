"""The comparison: its problems, and methods by purpose, with their lines."""

from __future__ import annotations

from replifed.algorithms.registry import BUILT_IN, METHODS, method_class
from replifed.figures.lines import Line
from replifed.figures.methods import LINES, method_line

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


def _lines(*methods: str) -> dict[str, Line]:
    return {method: _OTHERWISE.get(method, LINES[method]) for method in methods}


_OTHERWISE = {"fedmm": method_line("fedmm", "FedMM (proximal gradient)")}
FIRST_ORDER = _lines("fedavg", "fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs")
SECOND_ORDER = _lines(
    *("gradient_descent", "newton", "giant", "fednl", "shed", "ideal_shed", "nqshed", "qshed", "fedlin")
)
COMPOSITE = _lines("fedmid", "feddualavg", "fedplt", "fedmm")
SPARSE = _lines("fedht", "fediterht", "distributed_iht", "fedgradmp")
AVERAGED = _lines(
    *("fedavg", "fedprox", "fednova", "fedavgm", "fedadam_server", "fedac", "mb_sgd", "mb_ac_sgd")
)
CORRECTED = _lines("fedavg", "scaffold", "scaffnew", "slocalgd", "feddyn", "fedsplit", "fedlin")
EVERY = {**FIRST_ORDER, **SECOND_ORDER, **COMPOSITE, **SPARSE, **AVERAGED, **CORRECTED}
LABELS = {name: line.label for name, line in EVERY.items()}

# Problems for all methods, and those for some of them.
EXPERIMENTS = {"a9a": "a9a", "phishing": "phishing", "mushrooms": "mushrooms", "w8a": "w8a"}
WITH_NORM = {"a9a_l1": "a9a with a 1-norm", "w8a_l1": "w8a with a 1-norm"}
PROBLEMS = {**EXPERIMENTS, **WITH_NORM, "planted": "planted sparse model"}

# Lines of custom methods: thicker, and in colours that no built-in method has.
_CUSTOM = [
    Line("", color, dashes, marker, 2.4)
    for dashes in ("-", (0, (6, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
    for color, marker in (("#C2185B", "h"), ("#6D4C41", "p"), ("#827717", "d"), ("#4527A0", "H"))
]


def lines() -> dict[str, Line]:
    """Return lines: built-in methods' as in `cross`, others' by their attributes label and line, if any."""
    custom = [name for name in METHODS if name not in EVERY and name not in BUILT_IN]
    styled = {}
    for number, name in enumerate(custom):
        cls, default = method_class(name), _CUSTOM[number % len(_CUSTOM)]
        label = getattr(cls, "label", cls.__name__)
        styled[name] = getattr(cls, "line", default)._replace(label=label)
    return {**styled, **EVERY}


def labels() -> dict[str, str]:
    """Return what `lines` calls each method."""
    return {name: line.label for name, line in lines().items()}
