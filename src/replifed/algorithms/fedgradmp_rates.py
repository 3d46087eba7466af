"""What Theorems 5, 7 and 8 promise of FedGradMP (Jeong, Needell, Qin 2023), as functions of its constants.

All for exact projections, eta_1 = eta_2 = eta_3 = 1, where they are known to be so; other values of eta
enter as printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Restricted constants of the clients' losses over 4 tau coordinates.

    Parameters
    ----------
    convexity : array, shape (N,)
        rho^-_{4 tau}(i) of f_i.
    smoothness : array, shape (N,)
        rho-bar^+_{4 tau}(i), the mean over minibatches of their rho^+.
    squared_smoothness : array, shape (N,), or None
        E_j (rho^+_tau(i, j))^2; needed for eta_1 > 1 only.
    weights : array, shape (N,)
        p_i.
    """

    convexity: NDArray
    smoothness: NDArray
    weights: NDArray
    squared_smoothness: NDArray | None = None

    @property
    def holds(self) -> bool:
        """Whether beta_1 is positive on every client: 2 rho^- > rho-bar^+."""
        return bool((2 * self.convexity > self.smoothness).all())

    def beta1(self) -> NDArray:
        """Lemma 3; infinite where the lemma says nothing."""
        gap = 2 * self.convexity - self.smoothness
        return np.where(gap > 0, self.smoothness / np.where(gap > 0, gap, 1.0), np.inf)

    def beta2(self, theta: float = math.inf, eta1: float = 1.0) -> NDArray:
        """Lemma 4."""
        low = self.convexity
        beta = 2 * (self.smoothness + theta**-2 - eta1**2 * low) / (eta1**2 * low)
        if eta1 > 1:
            if self.squared_smoothness is None:
                raise ValueError("eta1 > 1 needs squared_smoothness")
            root = math.sqrt(eta1**2 - 1) / eta1
            beta = beta + 2 * root / low * (3 * self.squared_smoothness + 1)
        return beta


class Promise(NamedTuple):
    """E|x_T - x*|^2 <= kappa^T |x_0 - x*|^2 + residual.

    Attributes
    ----------
    kappa : factor a round
    residual : what is left; infinite where the theorem promises nothing
    holds : whether kappa is below one and the lemmas apply
    """

    kappa: float
    residual: float
    holds: bool


def theorem5(
    constants: Constants,
    local_steps: int,
    slope: float,
    variance: float = 0.0,
    *,
    theta: float = math.inf,
    eta: tuple[float, float, float] = (1.0, 1.0, 1.0),
    accuracy: float | None = None,
) -> Promise:
    """Theorem 5, and with an `accuracy` delta of the sub-problems Theorem 7.

    Parameters
    ----------
    constants : Constants
    local_steps : int
        K.
    slope : float
        sum_i p_i max_{|Omega| = 4 tau} |P_Omega grad f_i(x*)|^2; where eta_1 > 1, zeta_*^2, that is
        sum_i p_i |grad f_i(x*)|^2.
    variance : float or array, shape (N,)
        sigma_i^2 of the minibatch gradients; zero for full batches.
    theta : float
        The free number of Young's inequality; best infinite for full batches.
    eta : (eta_1, eta_2, eta_3)
    accuracy : float, optional
        delta of Theorem 7, with which mu and kappa double per local iteration.
    """
    eta1, eta2, eta3 = eta
    p = constants.weights
    beta1, beta2 = constants.beta1(), constants.beta2(theta, eta1)
    outer = 2 * eta3**2 + 2
    mu = (1 if accuracy is None else 2) * (1 + eta2) ** 2 * beta1 * beta2
    with np.errstate(over="ignore"):
        kappa = float(outer * (p * mu**local_steps).sum())
    holds = constants.holds and kappa < 1
    if not holds:
        return Promise(kappa, math.inf, False)
    low, high = constants.convexity, constants.smoothness
    last = 4 / (high * (2 * low - high))
    young = 0.0 if np.all(np.asarray(variance) == 0) else 2 * theta**2
    root = math.sqrt(eta1**2 - 1) / eta1
    nu = (1 + eta2) ** 2 * (
        float((8 * beta1 / low**2 + last + 6 * root * beta1 / low).max()) * slope
        + float((p * (beta1 / low * (young + 6 * root) + last) * variance).sum())
    )
    if accuracy is not None:
        nu += accuracy**2
    geometric = (p * geometric_sum(mu, local_steps)).sum()
    return Promise(kappa, float(outer * nu * geometric / (1 - kappa)), True)


def geometric_sum(mu: NDArray | float, K: int) -> NDArray:
    """(1 - mu^K) / (1 - mu), that is 1 + mu + ... + mu^(K-1)."""
    return np.asarray(sum(np.asarray(mu, float) ** k for k in range(K)))


def theorem8_factors(constants: Constants, local_steps: int, cohort: int, theta: float = math.inf):
    """kappa of Theorem 8 for cohorts of L clients, and the factor (1 - mu^K) / (1 - mu) of its residual.

    Notes
    -----
    mu is printed as a K-th power, which (1 - mu^K) / (1 - mu) would raise again; taken here is mu itself,
    with which the theorem becomes Theorem 5 for equal clients and L = N.
    """
    mu = 4 * constants.beta1() * constants.beta2(theta)
    # The worst cohort is that of the L largest.
    worst = np.sort(mu**local_steps)[::-1][:cohort]
    return float(4 * worst.mean()), float(geometric_sum(mu.max(), local_steps))
