"""Bounds of Theorems 5 and 7 on FedGradMP (Jeong, Needell, Qin 2023), as functions of its constants.

All bounds hold for exact projections, eta_1 = eta_2 = eta_3 = 1, and full batches, for which an infinite
theta is best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Restricted constants of the clients' losses over 4 tau coordinates; arrays of shape (N,).

    Parameters
    ----------
    convexity : rho^-_{4 tau}(i) of f_i.
    smoothness : rho-bar^+_{4 tau}(i), the mean over minibatches of their rho^+.
    weights : p_i.
    """

    convexity: NDArray
    smoothness: NDArray
    weights: NDArray

    @property
    def holds(self) -> bool:
        """True if beta_1 is positive on every client: 2 rho^- > rho-bar^+."""
        return bool((2 * self.convexity > self.smoothness).all())

    def beta1(self) -> NDArray:
        """beta_1 of Lemma 3; infinite where the lemma does not apply."""
        gap = 2 * self.convexity - self.smoothness
        return np.where(gap > 0, self.smoothness / np.where(gap > 0, gap, 1.0), np.inf)

    def beta2(self) -> NDArray:
        """beta_2 of Lemma 4."""
        return 2 * (self.smoothness - self.convexity) / self.convexity


class Promise(NamedTuple):
    """E|x_T - x*|^2 <= kappa^T |x_0 - x*|^2 + residual."""

    kappa: float  # factor per round
    residual: float  # infinite where the theorem does not apply
    holds: bool  # True if kappa is below one and the lemmas apply


def theorem5(constants: Constants, local_steps: int, slope: float, accuracy: float | None = None) -> Promise:
    """Bound of Theorem 5, or with an `accuracy` delta of the sub-problems of Theorem 7.

    Parameters
    ----------
    constants : Constants
    local_steps : K.
    slope : sum_i p_i max_{|Omega| = 4 tau} |P_Omega grad f_i(x*)|^2.
    accuracy : delta of Theorem 7, which doubles the mu(i) of Theorem 5 and multiplies kappa's terms by 2^K.
    """
    p, low, high = constants.weights, constants.convexity, constants.smoothness
    beta1 = constants.beta1()
    mu = (4 if accuracy is None else 8) * beta1 * constants.beta2()
    with np.errstate(over="ignore"):
        kappa = float(4 * (p * mu**local_steps).sum())
    if not (constants.holds and kappa < 1):
        return Promise(kappa, math.inf, False)
    nu = 4 * float((8 * beta1 / low**2 + 4 / (high * (2 * low - high))).max()) * slope
    if accuracy is not None:
        nu += accuracy**2
    geometric = (p * geometric_sum(mu, local_steps)).sum()
    return Promise(kappa, float(4 * nu * geometric / (1 - kappa)), True)


def geometric_sum(mu: NDArray | float, K: int) -> NDArray:
    """(1 - mu^K) / (1 - mu), that is 1 + mu + ... + mu^(K-1)."""
    return np.asarray(sum(np.asarray(mu, float) ** k for k in range(K)))
