"""Quadratic surrogates: proximal gradient descent as majorise-minimise (Example 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from replifed.operators.soft_threshold import soft_threshold


class Penalty(Protocol):
    """A convex g with a proximal map."""

    def __call__(self, theta: NDArray) -> NDArray:
        """g, (..., d) -> (...)."""

    def prox(self, x: NDArray, rho: float) -> NDArray:
        """argmin_theta rho g(theta) + |theta - x|^2 / 2."""


@dataclass(frozen=True, kw_only=True)
class ElasticNet:
    """l1 |theta|_1 + l2 |theta|^2 / 2; the lasso with l2 = 0."""

    l1: float = 0.0
    l2: float = 0.0

    def __call__(self, theta: NDArray) -> NDArray:
        return self.l1 * np.abs(theta).sum(axis=-1) + 0.5 * self.l2 * (theta**2).sum(axis=-1)

    def prox(self, x: NDArray, rho: float) -> NDArray:
        return soft_threshold(x, rho * self.l1) / (1.0 + rho * self.l2)


@dataclass(frozen=True, kw_only=True)
class Box:
    """Indicator of low <= theta <= high, coordinate by coordinate."""

    low: float
    high: float

    def __call__(self, theta: NDArray) -> NDArray:
        inside = ((theta >= self.low) & (theta <= self.high)).all(axis=-1)
        return np.where(inside, 0.0, np.inf)

    def prox(self, x: NDArray, rho: float) -> NDArray:
        return np.clip(x, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Quadratic:
    """Least squares with a penalty; a sample is (features, target).

    l(z, theta) = (a'theta - y)^2 / 2 <= its quadratic expansion with curvature 1/rho (eq. 4), so that
    psi = |theta|^2 / (2 rho), phi = theta / rho, sbar = theta - rho grad l(z, theta), T = prox_{rho g}.

    Parameters
    ----------
    parameters : int
        d.
    rho : float
        At most 1 / max |a|^2, for MM-1 sample by sample.
    g : Penalty
    """

    parameters: int
    rho: float
    g: Any

    @property
    def statistics(self) -> int:
        return self.parameters

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        features, y = Z[..., :-1], Z[..., -1]
        residual = (features @ theta[..., None])[..., 0] - y
        gradient = (residual[..., None, :] @ features)[..., 0, :] / Z.shape[-2]
        return 0.5 * (residual**2).mean(axis=-1), theta - self.rho * gradient

    def sbar(self, Z: NDArray, theta: NDArray) -> NDArray:
        return self.expectations(Z, theta)[1]

    def T(self, s: NDArray) -> NDArray:
        return self.g.prox(s, self.rho)

    def project(self, s: NDArray) -> NDArray:
        return s

    def phi(self, theta: NDArray) -> NDArray:
        return theta / self.rho

    def psi(self, theta: NDArray) -> NDArray:
        return (theta**2).sum(axis=-1) / (2 * self.rho)

    def penalty(self, theta: NDArray) -> NDArray:
        return self.g(theta)


@dataclass(frozen=True, kw_only=True)
class Location:
    """Remark 1, first reading: l(z, theta) = (theta - z)^2 / 2 on an interval; T clips.

    psi = theta^2 / 2, phi = theta, sbar = z. The statistic does not depend on theta.
    """

    low: float = -1.0
    high: float = 1.0

    parameters = 1
    statistics = 1

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        loss = 0.5 * ((theta - Z[..., 0]) ** 2).mean(axis=-1)
        return loss, self.sbar(Z, theta)

    def sbar(self, Z: NDArray, theta: NDArray) -> NDArray:
        return np.broadcast_to(Z.mean(axis=-2), (*np.broadcast_shapes(Z.shape[:-2], theta.shape[:-1]), 1))

    def T(self, s: NDArray) -> NDArray:
        return np.clip(s, self.low, self.high)

    def project(self, s: NDArray) -> NDArray:
        return s

    def phi(self, theta: NDArray) -> NDArray:
        return theta

    def psi(self, theta: NDArray) -> NDArray:
        return 0.5 * theta[..., 0] ** 2

    def penalty(self, theta: NDArray) -> NDArray:
        return Box(low=self.low, high=self.high)(theta)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Remark 1, second reading: l(z, theta) = theta z - log theta for theta > 0; T inverts.

    psi = -log theta, phi = -theta, sbar = z, S the positive numbers (kept above `floor`).
    """

    floor: float = 1e-9

    parameters = 1
    statistics = 1

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        loss = theta[..., 0] * Z[..., 0].mean(axis=-1) - np.log(theta[..., 0])
        return loss, self.sbar(Z, theta)

    def sbar(self, Z: NDArray, theta: NDArray) -> NDArray:
        return np.broadcast_to(Z.mean(axis=-2), (*np.broadcast_shapes(Z.shape[:-2], theta.shape[:-1]), 1))

    def T(self, s: NDArray) -> NDArray:
        return 1.0 / s

    def project(self, s: NDArray) -> NDArray:
        return np.maximum(s, self.floor)

    def phi(self, theta: NDArray) -> NDArray:
        return -theta

    def psi(self, theta: NDArray) -> NDArray:
        return -np.log(theta[..., 0])

    def penalty(self, theta: NDArray) -> NDArray:
        return np.zeros(theta.shape[:-1])
