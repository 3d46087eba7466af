"""The comparison: its problems, and methods by what they send, with the lines that stand for them."""

from __future__ import annotations

from replifed.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, Line

PAPER = {"name": "All methods on the same problems", "citation": "A comparison that no paper has.", "doi": ""}

SETTING = (
    "Logistic regression with a ridge on four data sets, clients by k-means, full local gradients; each "
    "first-order method's one number searched on the same grid of multiples of a reference value, by the "
    "mean over repetitions that are not reported, at a distance from multiples that diverge. FedGradMP has "
    "no number to tune, since its steps follow from the data, and neither have gradient descent and the "
    "methods that use Hessians, which search their step lengths themselves. Whatever is sent is rounded to "
    "floats of 32 bits and counted so, but for the vectors that Q-SHED and NQ-SHED quantise."
)

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


EXPERIMENTS = {"a9a": "a9a", "phishing": "phishing", "mushrooms": "mushrooms", "w8a": "w8a"}
