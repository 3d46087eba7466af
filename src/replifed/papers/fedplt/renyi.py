"""Renyi differential privacy of noisy gradient descent, and its conversion to (epsilon, delta).

Throughout, `sensitivity` is the largest change of a client's gradient when one of its samples is replaced:
L / q for a mean of q losses, L for their sum. `deviation` is the standard deviation of t in Fed-PLT's
eq. (13), before the factor sqrt(2 gamma).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def proposition4(
    order: ArrayLike,
    *,
    sensitivity: float,
    mu: float,
    deviation: ArrayLike,
    gamma: ArrayLike,
    rounds: ArrayLike,
    steps: ArrayLike,
) -> NDArray:
    """Fed-PLT's Proposition 4: bound on the Renyi divergence of a client's final model.

    epsilon <= order s^2 / (mu tau^2) (1 - exp(-mu gamma K N_e / 2)), for full participation and starts
    x_{i,0} ~ N(0, 2 tau^2 / mu).

    Parameters
    ----------
    order : lambda > 1.
    sensitivity : s.
    mu : strong-convexity constant of the losses.
    deviation : tau, here a standard deviation.
    gamma, rounds, steps : step size, K and N_e.
    """
    # One minus the exponential, without loss of digits where it is small.
    saturation = -np.expm1(-0.5 * mu * np.asarray(gamma) * np.multiply(rounds, steps))
    return np.asarray(order) * sensitivity**2 / (mu * np.square(deviation)) * saturation


def composed_gaussian(
    order: ArrayLike,
    *,
    sensitivity: float,
    deviation: ArrayLike,
    gamma: ArrayLike,
    rounds: ArrayLike,
    steps: ArrayLike,
) -> NDArray:
    """Bound from composing all noisy steps, each a Gaussian mechanism; it grows linearly in K N_e.

    A replaced sample changes a step by at most gamma s, and the step's noise has the standard deviation
    sqrt(2 gamma) tau, so that its cost is order gamma s^2 / (4 tau^2).
    """
    per_step = np.asarray(order) * np.asarray(gamma) * sensitivity**2 / (4.0 * np.square(deviation))
    return per_step * np.multiply(rounds, steps)


def best_epsilon(slope: ArrayLike, delta: float) -> NDArray:
    """Smallest epsilon of (epsilon, delta)-privacy that a Renyi bound slope * order implies.

    At one order it implies slope * order + log(1 / delta) / (order - 1) (Lemma 5); at the best one this is
    slope + 2 sqrt(slope log(1 / delta)). Both bounds of this module are linear in the order.
    """
    slope = np.asarray(slope)
    return slope + 2.0 * np.sqrt(slope * np.log(1.0 / delta))


def advanced_composition(epsilon: ArrayLike, count: ArrayLike, slack: float) -> NDArray:
    """Epsilon of `count` mechanisms with `epsilon` each (Kairouz, Oh and Viswanath 2015, Theorem 3.4).

    Its delta is `slack` plus the deltas of the mechanisms.
    """
    epsilon, count = np.asarray(epsilon), np.asarray(count)
    drift = count * epsilon * np.tanh(epsilon / 2)  # (e^epsilon - 1) / (e^epsilon + 1)
    plain = epsilon * np.sqrt(2 * count * np.log(1 / slack))
    tight = epsilon * np.sqrt(2 * count * np.log(np.e + epsilon * np.sqrt(count) / slack))
    return np.minimum(count * epsilon, drift + np.minimum(plain, tight))
