"""The paper, the numbers that it prints, and names of methods and readings."""

from __future__ import annotations

PAPER = {
    "name": "Fed-PLT",
    "citation": (
        "N. Bastianello, C. Liu, K. H. Johansson: Enhancing Privacy in Federated Learning through Local "
        "Training. arXiv:2403.17572, 2024."
    ),
    "doi": "10.48550/arXiv.2403.17572",
}

METHODS = {
    "fedplt": "Fed-PLT",
    "fedpd": "Fed-PD",
    "fedlin": "FedLin",
    "tamuna": "TAMUNA",
    "led": "LED",
    "fivegcs": "5GCS",
    "fedavg": "FedAvg (biased, for reference)",
}
READINGS = {
    "theory": "parameters of each method's theory",
    "common": "tuned on other data sets",
    "own": "tuned for each data set",
    "equal budget": "equal budget: local step and own parameters tuned for each data set",
}

COLUMNS = {
    ("gradient", "all"): "Grad.",
    ("gradient", "half"): "Grad., partial p.",
    ("accelerated", "all"): "Acc. grad.",
    ("accelerated", "half"): "Acc. grad., partial p.",
}
"""Columns of Table II: local solver, and whether all agents or half of them take part."""

FEDPLT_RATES = (0.531, 0.761, 0.560, 0.778)
TABLE2: dict[str, tuple[float | None, ...]] = {
    "fedplt": FEDPLT_RATES,
    "fedpd": (0.756, None, 0.740, None),
    "fedlin": (0.546, None, 0.774, None),
    "tamuna": (0.905, 0.960, 0.901, 0.958),
    "led": (0.762, None, 0.777, None),
    "fivegcs": (0.789, 0.897, 0.789, 0.894),
}

TABLE3 = (0.955, 0.907, 0.862, 0.815, 0.764, 0.719, 0.666, 0.617, 0.569, 0.531)
"""Rates with 1 to 10 active agents."""

_LEVELS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
_ERRORS = (0.1357, 0.1359, 0.1380, 0.1569, 0.2957, 0.8478, 2.7529, 9.8387)
TABLE4 = dict(zip(_LEVELS, _ERRORS, strict=True))
"""Asymptotic error for each level of noise."""

STORED = {**dict.fromkeys(("fedplt", "fedpd", "fedlin", "tamuna", "led"), (2, 1)), "fivegcs": (1, 3)}
"""Variables that Table I has agents and coordinator store: (a, b) for a N + b."""

WAITING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "fedplt": ((), ()),
    "fedpd": ((), ()),
    "fedlin": (("x", "g_i"), ()),
    "tamuna": (("w_i",), ()),
    "led": (("phi_i",), ()),
    "fivegcs": ((), ("x_hat",)),
}
"""What agents and coordinator keep, beside their state, from a message to its reply within a round."""

BEST_RHO = 0.3
BEST_EPOCHS = 10
"""Where Figures 2 and 3 have their minima."""
