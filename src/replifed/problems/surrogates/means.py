"""Surrogates whose statistic is the mean of the samples, whatever theta: the two readings of Remark 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replifed.problems.surrogates.base import Family


class _Mean(Family):
    """sbar = z for one number z."""

    parameters = 1
    statistics = 1

    def sbar(self, Z: NDArray, theta: NDArray) -> NDArray:
        return np.broadcast_to(Z.mean(axis=-2), (*np.broadcast_shapes(Z.shape[:-2], theta.shape[:-1]), 1))


@dataclass(frozen=True, kw_only=True)
class Location(_Mean):
    """First reading: l(z, theta) = (theta - z)^2 / 2 on an interval; T clips.

    psi = theta^2 / 2, phi = theta.
    """

    low: float = -1.0
    high: float = 1.0

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        return 0.5 * ((theta - Z[..., 0]) ** 2).mean(axis=-1), self.sbar(Z, theta)

    def T(self, s: NDArray) -> NDArray:
        return np.clip(s, self.low, self.high)

    def phi(self, theta: NDArray) -> NDArray:
        return theta

    def psi(self, theta: NDArray) -> NDArray:
        return 0.5 * theta[..., 0] ** 2

    def penalty(self, theta: NDArray) -> NDArray:
        inside = ((theta >= self.low) & (theta <= self.high)).all(axis=-1)
        return np.where(inside, 0.0, np.inf)


@dataclass(frozen=True, kw_only=True)
class Rate(_Mean):
    """Second reading: l(z, theta) = theta z - log theta for theta > 0; T inverts.

    psi = -log theta, phi = -theta, S the positive numbers (kept above `floor`).
    """

    floor: float = 1e-9

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        loss = theta[..., 0] * Z[..., 0].mean(axis=-1) - np.log(theta[..., 0])
        return loss, self.sbar(Z, theta)

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
