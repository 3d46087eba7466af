"""Errata of Dieuleveut et al. 2025."""

from __future__ import annotations

import numpy as np

from replifed.claims.errata import Errata, Outcome

ERRATA = Errata("fedmm")


def _gaussian_loss(a: np.ndarray, b: np.ndarray, weight: float) -> np.ndarray:
    """(33) for P = Q = N(0, 1), f(x) = a x^2 / 2 and g(y) = b y^2 / 2; the solution is a = b = 1."""
    return a / 2 + b - a * b**2 / 2 + weight * (a * b - 1) ** 2


def _joint_minimum(weight: float) -> tuple[float, float]:
    a, b = np.logspace(-3, 3, 601)[:, None], np.logspace(-3, 6, 901)
    value = _gaussian_loss(a, b, weight)
    return float(value.min()), float(a[value.min(axis=1).argmin(), 0])


def _saddle(weight: float) -> tuple[float, float]:
    """The conjugate maximises what is then f's conjugate, b = 1/a, at which the cycle term vanishes."""
    a = np.logspace(-3, 3, 601)
    value = _gaussian_loss(a, 1 / a, weight)
    return float(value.min()), float(a[value.argmin()])


@ERRATA.add(
    "transport_loss",
    place="Section 7, problems (31) to (33), reconstructed",
    printed="[lost from the text at hand; here as in the solver that it cites] minimise E_P f + "
    "E_Q[<Y, grad g> - f(grad g)] + lambda E_Q|grad f(grad g) - Y|^2 over both networks",
    corrected="the middle term is maximal in g at the conjugate of f: g ascends it (or takes part in the "
    "cycle term alone), while f descends with grad g held fixed, as the cited solver does. Minimised "
    "over both, the loss has no lower bound even where P and Q are standard normal and both potentials "
    "quadratic",
    forms=(_joint_minimum, _saddle),
)
def _has_the_identity_as_solution(minimise) -> Outcome:
    minima = [minimise(weight) for weight in (1.0, 10.0)]
    low, at = min(minima)
    good = all(abs(value - 1) < 1e-3 and abs(place - 1) < 0.05 for value, place in minima)
    return Outcome(good, f"least value {low:.3g}, at f = {at:.3g} x^2 / 2")


@ERRATA.add(
    "transport_local",
    place="Section 7, problem (32), reconstructed",
    printed="[of the formula as in the cited solver] the cycle term makes g the conjugate of f, with no "
    "condition on its weight lambda",
    corrected="where P and Q are standard normal and both potentials quadratic, the solution f = g = "
    "|x|^2 / 2 is a strict local minimum for lambda > 1/2 and a saddle point below: descent in both that "
    "starts there stays there with a heavy cycle term alone",
    forms=(0.45, 0.55),
)
def _curvature(weight: float) -> Outcome:
    """Growth of the loss around the solution in the direction in which it grows least."""
    angle, radius = np.linspace(0, 2 * np.pi, 721), 1e-3
    around = _gaussian_loss(1 + radius * np.cos(angle), 1 + radius * np.sin(angle), weight)
    least = float((around - 1).min() / radius**2)
    return Outcome(least > 0, f"at a weight of {weight:g} the loss is 1 + {least:.3g} r^2 in one direction")


@ERRATA.add(
    "transport_bound",
    place="Section 7, problems (32) and (33), reconstructed",
    printed="[of the formulas as in the cited solver] minimise over input-convex networks, with no condition "
    "on their curvature",
    corrected="where f is strongly convex with m > 1 / (2 lambda) the loss has a lower bound: at any c, "
    "f(z) <= f(c) + <grad f(z), z - c> - m |z - c|^2 / 2, so that with u = grad f(z) - y the part under "
    "E_Q is at least <y, c> - f(c) + m |z - c|^2 / 2 - |u||z - c| + lambda |u|^2 >= <y, c> - f(c); with "
    "c = E_P X, for which E_P f >= f(c), the loss is at least <E_P X, E_Q Y>. With less convexity it has "
    "none; the cited solver's networks have 0.0001",
    forms=(0.9, 1.1),
)
def _bounded(multiple: float) -> Outcome:
    """Least of the part of (33) under E_Q, whatever grad g(y) is, against -f(0), from which it cannot fall.

    f(x) = m x^2 / 2 + sqrt(1 + x^2), m a `multiple` of 1 / (2 weight).
    """
    x, y = np.logspace(-3, 5, 801), np.linspace(-3, 3, 61)[:, None]
    x = np.concatenate([-x, [0.0], x])
    low = []
    for weight in (0.1, 1.0, 10.0):
        m, root = multiple / (2 * weight), np.sqrt(1 + x**2)
        value = y * x - m * x**2 / 2 - root + weight * (m * x + x / root - y) ** 2
        low.append(float(value.min() + 1))
    return Outcome(
        min(low) >= -1e-9, f"of {multiple:g} / (2 lambda) the least value is {min(low):.3g} - f(0)"
    )


@ERRATA.add(
    "uvp",
    place="Section 7.2",
    printed="the unexplained variance is divided by the norm of the covariance matrix of Q",
    corrected="by its trace, as in the cited implementation: the map to the mean of Q explains nothing, "
    "which is 100 %",
    forms=(np.linalg.norm, np.trace),
)
def _constant_map_explains_nothing(spread) -> Outcome:
    """Unexplained variance of the map to the mean of Q, in percent."""
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(500, 4)) * [1, 2, 1, 1]
    unexplained = 100 * ((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean() / spread(np.cov(Y.T, ddof=0))
    return Outcome(abs(unexplained - 100) < 1e-6, f"{unexplained:.4g} % of the variance is unexplained")
