"""Methods by what they send, with the lines and names that stand for them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from replifed.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, Line

FIRST_ORDER = {
    "fedavg": Line("FedAvg", GREY, (0, (1, 1.2)), "", 1.2),
    "fedmid": Line("FedMid (no 1-norm)", GREY, (0, (4, 2)), "x", 1.2),
    "feddualavg": Line("FedDualAvg (no 1-norm)", GREY, "-", "+", 1.2),
    "fedht": Line("FedHT", VERMILLION, (0, (5, 1.5)), "s"),
    "fediterht": Line("FedIterHT", BLUE, "-", "o"),
    "distributed_iht": Line("Distributed-IHT", GREEN, (0, (4, 1.5, 1, 1.5)), "^"),
    "fedgradmp": Line("FedGradMP", BLACK, (0, (6, 2, 2, 2)), "v"),
    "fedplt": Line("Fed-PLT", ORANGE, "-", "D"),
    "fedpd": Line("Fed-PD", PURPLE, "-", "P"),
    "fedlin": Line("FedLin", SKY, "-", "X"),
    "tamuna": Line("TAMUNA", ORANGE, (0, (2, 1)), "<"),
    "led": Line("LED", PURPLE, (0, (2, 1)), ">"),
    "fivegcs": Line("5GCS", SKY, (0, (2, 1)), "*"),
}
SECOND_ORDER = {
    "gradient_descent": Line("gradient descent", GREY, (0, (1, 1.2)), "", 1.2),
    "newton": Line("distributed Newton", BLACK, "-", "v"),
    "giant": Line("GIANT", PURPLE, "-", "P"),
    "fednl": Line("FedNL", VERMILLION, (0, (5, 1.5)), "s"),
    "shed": Line("SHED", GREEN, (0, (4, 1.5, 1, 1.5)), "^"),
    "ideal_shed": Line("ideal-SHED", SKY, "-", "X"),
    "nqshed": Line("NQ-SHED", ORANGE, (0, (2, 1)), "<"),
    "qshed": Line("Q-SHED", BLUE, "-", "o"),
    "fedlin": Line("FedLin, for reference", GREY, "-", "", 1.2),
}


def lines(frame: pd.DataFrame, known: Mapping[str, Line]) -> dict[str, Line]:
    """The line of each method in a table: those known, in their order, then any others."""
    present = list(dict.fromkeys(frame["method"]))
    others = {method: Line(method, BLACK, "-", "") for method in present if method not in known}
    return {method: line for method, line in known.items() if method in present} | others


EXPERIMENTS = {"a9a": "a9a", "phishing": "phishing", "mushrooms": "mushrooms", "w8a": "w8a"}
AXES = {"round": "communication rounds", "bits": "bits sent", "sample_gradients": "sample gradients"}
