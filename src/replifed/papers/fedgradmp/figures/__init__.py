"""Errors and accuracies of FedGradMP and its rivals; a video frame; and Theorem 5."""

from replifed.figures.artefact import by_name
from replifed.papers.fedgradmp.figures.digits import DIGITS
from replifed.papers.fedgradmp.figures.regression import REGRESSION
from replifed.papers.fedgradmp.figures.theory import THEORY
from replifed.papers.fedgradmp.figures.video import VIDEO

FIGURES = by_name(*REGRESSION, VIDEO, *DIGITS, THEORY)
