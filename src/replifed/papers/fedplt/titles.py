"""Names and looks of methods, solvers and readings."""

from __future__ import annotations

from replifed.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

METHODS = {
    "fedplt": "Fed-PLT",
    "fedpd": "Fed-PD",
    "fedlin": "FedLin",
    "tamuna": "TAMUNA",
    "led": "LED",
    "fivegcs": "5GCS",
    "fedavg": "FedAvg (biased, for reference)",
}
SOLVERS = {"gradient": "gradient", "accelerated": "acc. gradient"}
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
EMPIRICAL, EXACT, BOUND, SECOND, PRINTED = BLUE, GREEN, VERMILLION, ORANGE, BLACK
SEQUENCE = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, BLACK, GREY)


def participation(cohort: int, agents: int) -> str:
    """Name of a cohort's size: "all" or "half"."""
    return "all" if cohort == agents else "half"
