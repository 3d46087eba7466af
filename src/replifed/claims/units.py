"""Units of claims' numbers, and how far another processor's rounding may move each."""

from __future__ import annotations

import math
from typing import NamedTuple


class Unit(NamedTuple):
    """Tolerances of a number: a `share` of it, at most `most`, and at least `least`.

    `effect` is the smallest difference between two methods that is called one, by default; None where that
    depends on the problem's scale. `quantity` says what a number of this unit is.
    """

    quantity: str
    share: float
    most: float
    least: float
    effect: float | None = None


# Differences have the unit of their terms. Rounding changes the last bit of a product. That hardly moves
# smooth quantities, and others by what depends on one comparison. No share reaches a tenth, except that of
# rounds: a change by two of them is always noticed.
UNITS = {
    # Of communication. Hard thresholding may swap a coordinate of a support, which costs a round or two.
    "rounds": Unit("communication rounds", 0.4, 1.5, 0.1, 1.0),
    # A spectrum on the edge between two allocations moves whole bits, and those must be found.
    "bits": Unit("bits", 0.05, 0.5, 1e-6, 1.0),
    # Differences of decimal logarithms. Swapped coordinates move a curve by a few per cent; near machine
    # precision by half of what is left.
    "decades": Unit("difference of decimal logarithms (decades)", 0.08, 0.2, 1e-5, 0.02),
    # As decades, in natural logarithms.
    "e-folds": Unit("difference of natural logarithms (e-folds)", 0.08, 0.4, 1e-5, 0.05),
    # A quantity as a multiple of another: mean rounds or errors, either of which moves by a few per cent.
    "ratio": Unit("ratio of two quantities", 0.08, math.inf, 1e-5, 0.05),
    # Part of a whole: a sample next to a decision boundary, or a round of many.
    "share": Unit("share of a whole, 0 to 1", 0.08, 0.02, 1e-6, 0.005),
    # Factor by which an error shrinks each round. Smooth iterations; what a fit picks as its last round moves
    # the third digit. Equal rates differ in the seventh.
    "rate": Unit("rate: factor by which the error shrinks in a round", 0.08, 0.002, 1e-5, 0.003),
    # Norm of a difference of models: means over runs on the same random numbers, down to the smallest noise.
    "distance": Unit("distance: norm of a difference of models", 0.05, math.inf, 1e-9),
    # Of a Hessian. A decomposition is exact to twelve digits; which round is nearest may change.
    "eigenvalue": Unit("eigenvalue of a Hessian", 0.05, math.inf, 1e-6),
    # A point of a grid of parameters, the same or another one: only printed digits may differ.
    "grid": Unit("value of a parameter on its grid", 1e-9, math.inf, 1e-12),
}
# Units of what is counted.
COUNTED = ("rounds", "bits", "ratio")


def tolerance(measured: float, unit: str) -> float:
    """Tolerance of a number against another processor's rounding."""
    rule = UNITS[unit]
    return max(min(rule.most, rule.share * abs(measured)), rule.least)
