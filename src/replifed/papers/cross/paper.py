"""The comparison: its problems, and methods by what they are for, with the lines that stand for them."""

from __future__ import annotations

from replifed.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, Line

PAPER = {"name": "All methods on the same problems", "citation": "A comparison that no paper has.", "doi": ""}

SETTING = (
    "Logistic regression with a ridge on four data sets, on two of them with a 1-norm as well, clients by "
    "k-means; and a drawn linear regression with a planted sparse model, from which those of the clients "
    "differ. Full local gradients; each "
    "first-order method's one number searched on the same grid of multiples of a reference value, by the "
    "mean over repetitions that are not reported, at a distance from multiples that diverge. FedGradMP and "
    "FedMM have no number to tune, since their steps follow from the data, and neither have gradient descent "
    "and the methods that use Hessians, which search their step lengths themselves. Whatever is sent is "
    "rounded to floats of 32 bits and counted so, but for the vectors that Q-SHED and NQ-SHED quantise, and "
    "FedMM's, which are counted so."
)

FIRST_ORDER = {
    "fedavg": Line("FedAvg", GREY, (0, (1, 1.2)), "", 1.2),
    "fedplt": Line("Fed-PLT", ORANGE, "-", "D"),
    "fedpd": Line("Fed-PD", PURPLE, "-", "P"),
    "fedlin": Line("FedLin", SKY, "-", "X"),
    "tamuna": Line("TAMUNA", GREEN, (0, (2, 1)), "<"),
    "led": Line("LED", BLUE, (0, (5, 1.5)), ">"),
    "fivegcs": Line("5GCS", VERMILLION, (0, (4, 1.5, 1, 1.5)), "*"),
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
COMPOSITE = {
    "fedmid": Line("FedMid", VERMILLION, (0, (5, 1.5)), "s"),
    "feddualavg": Line("FedDualAvg", BLUE, (0, (2, 1)), "o"),
    "fedplt": Line("Fed-PLT", ORANGE, "-", "D"),
    "fedmm": Line("FedMM (proximal gradient)", GREEN, (0, (4, 1.5, 1, 1.5)), "^"),
}
SPARSE = {
    "fedht": Line("FedHT", VERMILLION, (0, (5, 1.5)), "s"),
    "fediterht": Line("FedIterHT", BLUE, "-", "o"),
    "distributed_iht": Line("Distributed-IHT", GREEN, (0, (4, 1.5, 1, 1.5)), "^"),
    "fedgradmp": Line("FedGradMP", BLACK, (0, (6, 2, 2, 2)), "v"),
}
AVERAGED = {
    "fedavg": Line("FedAvg", GREY, (0, (1, 1.2)), "", 1.2),
    "fedprox": Line("FedProx", GREEN, (0, (2, 1)), "v"),
    "fednova": Line("FedNova", PURPLE, (0, (5, 1.5)), "P"),
    "fedavgm": Line("FedAvgM", ORANGE, "-", "D"),
    "fedadam_server": Line("FedAdam", VERMILLION, (0, (4, 1.5, 1, 1.5)), "*"),
    "fedac": Line("FedAc", BLUE, "-", "o"),
    "mb_sgd": Line("minibatch SGD", BLACK, (0, (2, 1)), "<"),
    "mb_ac_sgd": Line("accelerated minibatch SGD", SKY, "-", "X"),
}
CORRECTED = {
    "fedavg": Line("FedAvg", GREY, (0, (1, 1.2)), "", 1.2),
    "scaffold": Line("SCAFFOLD", VERMILLION, (0, (5, 1.5)), "s"),
    "scaffnew": Line("Scaffnew", BLUE, "-", "o"),
    "slocalgd": Line("S-Local-GD", GREEN, (0, (2, 1)), "^"),
    "feddyn": Line("FedDyn", ORANGE, "-", "D"),
    "fedsplit": Line("FedSplit", PURPLE, (0, (4, 1.5, 1, 1.5)), "P"),
    "fedlin": Line("FedLin, for reference", SKY, "-", "", 1.2),
}
# Of all methods at once: those that search along a direction are dotted.
_DOTTED = {name: line._replace(dashes=(0, (1, 1))) for name, line in SECOND_ORDER.items()}
_DOTTED["gradient_descent"] = Line("gradient descent", BLACK, (0, (3, 3)), "", 1.2)
EVERY = {**AVERAGED, **CORRECTED, **FIRST_ORDER, **_DOTTED, **FIRST_ORDER, **COMPOSITE, **SPARSE}
LABELS = {name: line.label for name, line in EVERY.items()}

# Problems for all methods, and those for some of them.
EXPERIMENTS = {"a9a": "a9a", "phishing": "phishing", "mushrooms": "mushrooms", "w8a": "w8a"}
WITH_NORM = {"a9a_l1": "a9a with a 1-norm", "w8a_l1": "w8a with a 1-norm"}
PROBLEMS = {**EXPERIMENTS, **WITH_NORM, "planted": "planted sparse model"}
# Those on which communications are counted against the condition number.
RATES = {"rates_a9a": "a9a", "rates_planted": "planted least squares"}
