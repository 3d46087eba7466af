"""The look of each method, equal in the pictures of all papers."""

from __future__ import annotations

from typing import Any

from replifed.figures.lines import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, WINE, Line

LONG, SHORT, DOTS, DASH_DOT = (0, (5, 1.5)), (0, (2.5, 1)), (0, (1, 1.2)), (0, (4, 1.5, 1, 1.5))
# Dashes of variants of a method, which keep its colour.
WIDE, TWO_DOTS, TWO_DASHES, SPARSE = (
    (0, (7, 2.5)),
    (0, (6, 2, 1, 1.5, 1, 1.5)),
    (0, (6, 2, 2, 2)),
    (0, (1, 2)),
)

# No two share colour and dashes, and methods that meet in a panel have different colours.
LINES = {
    "distributed_iht": Line("Distributed-IHT", GREEN, DASH_DOT, "^"),
    "fedac": Line("FedAc", PURPLE, "-", "o"),
    "fedadam": Line("FedAdam", WINE, DOTS, "s"),
    "fedadam_server": Line("FedAdam", WINE, DASH_DOT, "*"),
    "fedavg": Line("FedAvg", GREY, DOTS, "x", 1.2),
    "fedavgm": Line("FedAvgM", ORANGE, DOTS, "D"),
    "feddualavg": Line("FedDualAvg", PURPLE, DOTS, "D"),
    "feddyn": Line("FedDyn", ORANGE, SHORT, "D"),
    "fedgradmp": Line("FedGradMP", BLACK, "-", "v"),
    "fedht": Line("FedHT", BLUE, LONG, "s"),
    "fediterht": Line("FedIterHT", VERMILLION, "-", "o"),
    "fedlin": Line("FedLin", SKY, "-", "X"),
    "fedmid": Line("FedMid", BLUE, SHORT, "s"),
    "fedmm": Line("FedMM", GREEN, "-", "o"),
    "fedmm_ot": Line("FedMM-OT", GREEN, WIDE, "o"),
    "fednl": Line("FedNL", GREEN, DOTS, "^"),
    "fednova": Line("FedNova", SKY, DOTS, "P"),
    "fedpd": Line("Fed-PD", PURPLE, SHORT, "P"),
    "fedplt": Line("Fed-PLT", ORANGE, "-", "D"),
    "fedprox": Line("FedProx", BLUE, DOTS, "v"),
    "fedsplit": Line("FedSplit", PURPLE, DASH_DOT, "P"),
    "fivegcs": Line("5GCS", VERMILLION, DASH_DOT, "*"),
    "giant": Line("GIANT", PURPLE, LONG, "P"),
    "gradient_descent": Line("gradient descent", GREY, LONG, "", 1.2),
    "ideal_shed": Line("ideal-SHED", VERMILLION, SHORT, "X"),
    "led": Line("LED", WINE, "-", ">"),
    "mb_ac_sgd": Line("accelerated minibatch SGD", GREEN, LONG, "^"),
    "mb_sgd": Line("minibatch SGD", BLACK, LONG, "<"),
    "newton": Line("distributed Newton", BLACK, SHORT, "v"),
    "nqshed": Line("NQ-SHED", ORANGE, LONG, "<"),
    "parameter_aggregation": Line("parameter aggregation (naive)", VERMILLION, LONG, "s"),
    "qshed": Line("Q-SHED", BLUE, "-", "o"),
    "sa_ssmm": Line("centralised EM", GREY, "-", "", 3.0),
    "scaffnew": Line("Scaffnew", BLUE, DASH_DOT, "o"),
    "scaffold": Line("SCAFFOLD", VERMILLION, DOTS, "s"),
    "shed": Line("SHED", WINE, LONG, "^"),
    "slocalgd": Line("S-Local-GD", BLACK, DASH_DOT, "^"),
    "tamuna": Line("TAMUNA", GREEN, SHORT, "<"),
}


def method_line(method: str, label: str = "", **changed: Any) -> Line:
    """Return the line of a method, or of a variant of it whose look is `changed`."""
    line = LINES[method]
    return line._replace(label=label or line.label, **changed)
