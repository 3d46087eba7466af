"""Common settings of FedHT and FedIterHT, and their theorems (Tong et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, Self

from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Conditions, Guarantee, Method, Range, usual_settings


@dataclass(frozen=True, kw_only=True)
class HardThresholding(Method):
    """Settings of a method that runs local gradient steps and keeps the server's model sparse.

    Parameters
    ----------
    step : gamma, a number or one per run, (R,).
    sparsity : tau, non-zeros of the server's model, a number or one per run, (R,).
    local_steps : K.
    batch : Gamma, the first round's minibatch size; None takes all of a client's samples.
    batch_decay : omega; round t uses Gamma / omega^t samples (Theorems 1 and 2), 1 keeps the size constant.
    """

    step: Annotated[float | NDArray, POSITIVE]
    sparsity: Annotated[int | NDArray, COUNT]
    local_steps: Annotated[int, COUNT]
    batch: Annotated[int | None, COUNT] = None
    batch_decay: Annotated[float, Range(0, 1, low_open=True)] = 1.0

    weighted: ClassVar = True
    guarantee: ClassVar = Guarantee(linear_to_bias=True, unbounded_dissimilarity=False, growing_batches=True)
    small: ClassVar = {"step": 0.05, "sparsity": 4, "local_steps": 3}

    def batch_size(self, t: int) -> int | None:
        """Minibatch size of round t, Gamma / omega^t; None for all samples."""
        shrunk = self.batch_decay**t
        # Below this the batch exceeds every client's samples, and the power would underflow.
        return None if self.batch is None or shrunk < 1e-12 else math.ceil(self.batch / shrunk)

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """The step as a multiple of 1 / L."""
        return cls(**usual_settings(cls, multiple, given), sparsity=given.sparsity)


class Rate(NamedTuple):
    """Linear rate of a theorem, E|x_T - x*|^2 <= theta^T |x_0 - x*|^2 + bias."""

    theta: float  # factor per round
    least_sparsity: float  # smallest tau that the theorem allows, for tau* non-zeros in x*
    holds: bool  # True if tau is large enough and theta below one
    # xi l^2 / delta: the theorem also requires Gamma >= spread * sum_i p_i sigma_i^2 / (l^2 |x_0 - x*|^2),
    # with sigma_i^2 the variance of the gradient of one of client i's samples. NaN where tau <= tau*.
    spread: float


def alpha(tau: int, tau_star: int) -> float:
    """2 sqrt(tau*) / sqrt(tau - tau*): |H_tau(x) - x*|^2 <= (1 + alpha) |x - x*|^2 (Lemma 1).

    Infinite for tau <= tau*.
    """
    return 2.0 * math.sqrt(tau_star / (tau - tau_star)) if tau > tau_star else math.inf


def fedht_rate(kappa: float, tau: int, tau_star: int, local_steps: int) -> Rate:
    """Theorem 1: theta_1 = (1 + 2 alpha)(1 - 1/(12 kappa_d))^K if tau >= (16 (12 kappa_d - 1)^2 + 1) tau*.

    Parameters
    ----------
    kappa : condition number kappa_d = l_d / rho_d; infinite where rho_d is zero.
    tau, tau_star : sparsity levels of the iterates and of the solution.
    local_steps : K.
    """
    a, q = alpha(tau, tau_star), (1.0 - 1.0 / (12.0 * kappa)) ** local_steps
    least = (16.0 * (12.0 * kappa - 1.0) ** 2 + 1.0) * tau_star
    theta = (1.0 + 2.0 * a) * q
    spread = (1.0 + a) * (1.0 - q) * kappa / (a * q)  # xi_1 l_d^2 / delta_1
    return Rate(theta, least, tau >= least and theta < 1.0, spread)


def fediterht_rate(kappa: float, tau: int, tau_star: int, local_steps: int) -> Rate:
    """Theorem 2: theta_2 = (1 + 2 alpha)^2 (1 - 1/(12 kappa_s))^K.

    It requires tau >= (16 / (sqrt(12 kappa_s / (12 kappa_s - 1)) - 1)^2 + 1) tau*. Parameters are
    those of `fedht_rate`, with the restricted condition number kappa_s.
    """
    a, q = alpha(tau, tau_star), (1.0 - 1.0 / (12.0 * kappa)) ** local_steps
    gap = math.sqrt(12.0 * kappa / (12.0 * kappa - 1.0)) - 1.0 if math.isfinite(kappa) else 0.0
    least = (16.0 / gap**2 + 1.0) * tau_star if gap > 0 else math.inf
    theta = (1.0 + 2.0 * a) ** 2 * q
    spread = (1.0 + a) ** 2 * (1.0 - q) * kappa / ((2.0 * a + 3.0 * a**2) * q)  # xi_2 l_s^2 / delta_2
    return Rate(theta, least, tau >= least and theta < 1.0, spread)


RATES = {"fedht": fedht_rate, "fediterht": fediterht_rate}
"""Rate of each method's theorem."""
