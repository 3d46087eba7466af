"""Jensen surrogates: EM as majorise-minimise (Example 2, Appendix C)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from replifed.operators.linear_systems import solve_each
from replifed.problems.surrogates.base import Family


@dataclass(frozen=True, kw_only=True)
class Poisson(Family):
    """Counts with a random effect: z | h ~ Poisson(exp(theta + h)), h ~ N(0, 1), prior exp(-lam e^theta).

    phi = (theta, -e^theta), psi = 0, sbar = (z, E[e^h | z, theta]), T(s) = log(s_1 / (s_2 + lam)).

    Parameters
    ----------
    lam : float
        Weight of the prior, above 0.
    nodes : int
        Of Gauss-Hermite quadrature, for each count centred and scaled at the mode of p(z, h | theta).

    Notes
    -----
    With 40 nodes the loss and E[e^h | z, theta], which share them, have relative errors below 1e-9 for counts
    up to 1000 and |theta| <= 6. Nodes move with theta: the surrogate majorises the loss so computed, and has
    its gradient, to 1e-8 instead of exactly.
    """

    lam: float
    nodes: int = 40

    parameters = 1
    statistics = 2

    @cached_property
    def _rule(self) -> tuple[NDArray, NDArray]:
        """Nodes x, and log(w e^(x^2/2)) of their weights w for N(0, 1)."""
        x, w = np.polynomial.hermite_e.hermegauss(self.nodes)
        return x, np.log(w / np.sqrt(2 * np.pi)) + 0.5 * x**2

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        from scipy.special import gammaln, wrightomega

        x, log_weights = self._rule
        z = Z[..., 0]
        # The mode of z (theta + h) - e^(theta + h) - h^2/2: v = e^(theta + h) solves v + log v = theta + z.
        v = wrightomega(theta + z)
        scale = 1 / np.sqrt(1 + v)
        h = (z - v)[..., None] + scale[..., None] * x
        intensity = theta[..., None] + h
        joint = z[..., None] * intensity - np.exp(intensity) - 0.5 * h**2 + log_weights
        top = joint.max(axis=-1, keepdims=True)
        weights = np.exp(joint - top)
        total = weights.sum(axis=-1)
        loss = gammaln(z + 1) - top[..., 0] - np.log(scale * total)
        effect = (weights * np.exp(h)).sum(axis=-1) / total
        s = np.stack([np.broadcast_to(z, effect.shape), effect], axis=-1)
        return loss.mean(axis=-1), s.mean(axis=-2)

    def T(self, s: NDArray) -> NDArray:
        return np.log(s[..., :1] / (s[..., 1:] + self.lam))

    def project(self, s: NDArray) -> NDArray:
        # S is closed and T is defined on it: at least 1e-9 counts, a non-negative effect.
        return np.maximum(s, np.array([1e-9, 0.0]))

    def phi(self, theta: NDArray) -> NDArray:
        return np.concatenate([theta, -np.exp(theta)], axis=-1)

    def penalty(self, theta: NDArray) -> NDArray:
        return self.lam * np.exp(theta[..., 0])


@dataclass(frozen=True, kw_only=True)
class PoissonKnownMean(Poisson):
    """The same model where E[Z], the `mean` over all clients, is known: one statistic.

    psi = -E[Z] theta, phi = -e^theta, sbar = E[e^h | z, theta], T(s) = log(E[Z] / (s + lam)). MM-1 holds in
    expectation over the data.
    """

    mean: float
    nodes: int = 30

    statistics = 1

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        loss, s = super().expectations(Z, theta)
        return loss, s[..., 1:]

    def T(self, s: NDArray) -> NDArray:
        return np.log(self.mean / (s + self.lam))

    def project(self, s: NDArray) -> NDArray:
        return np.maximum(s, 0.0)

    def phi(self, theta: NDArray) -> NDArray:
        return -np.exp(theta)

    def psi(self, theta: NDArray) -> NDArray:
        return -self.mean * theta[..., 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianMixture(Family):
    """Means of L Gaussians with known weights w and one known covariance Gamma; g = lam sum_l |m_l|^2.

    sbar = (r_l, z r_l) with r the posterior weights, phi = (-m_l' Gamma^-1 m_l / 2, Gamma^-1 m_l), psi = 0,
    T: m_l = (s1_l Gamma^-1 + 2 lam I)^-1 Gamma^-1 s2_l. S: s1 in the unit simplex.

    Parameters
    ----------
    weights : array, shape (L,)
    covariance : array, shape (p, p)
    lam : float
        Above 0.
    """

    weights: NDArray
    covariance: NDArray
    lam: float

    @property
    def shape(self) -> tuple[int, int]:
        """(L, p)."""
        return len(self.weights), len(self.covariance)

    @property
    def parameters(self) -> int:
        L, p = self.shape
        return L * p

    @property
    def statistics(self) -> int:
        L, p = self.shape
        return L + L * p

    @cached_property
    def _precision(self) -> NDArray:
        return np.linalg.inv(self.covariance)

    def _split(self, s: NDArray) -> tuple[NDArray, NDArray]:
        L, p = self.shape
        return s[..., :L], s[..., L:].reshape(*s.shape[:-1], L, p)

    def _joined(self, s1: NDArray, s2: NDArray) -> NDArray:
        return np.concatenate([s1, s2.reshape(*s2.shape[:-2], -1)], axis=-1)

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        L, p = self.shape
        m = theta.reshape(*theta.shape[:-1], L, p)
        away = Z[..., :, None, :] - m[..., None, :, :]
        joint = np.log(self.weights) - 0.5 * ((away @ self._precision) * away).sum(axis=-1)
        top = joint.max(axis=-1, keepdims=True)
        r = np.exp(joint - top)
        total = r.sum(axis=-1, keepdims=True)
        r /= total
        constant = 0.5 * (p * np.log(2 * np.pi) + np.linalg.slogdet(self.covariance)[1])
        loss = constant - top[..., 0] - np.log(total[..., 0])
        s2 = np.swapaxes(r, -1, -2) @ Z / Z.shape[-2]
        return loss.mean(axis=-1), self._joined(r.mean(axis=-2), s2)

    def T(self, s: NDArray) -> NDArray:
        s1, s2 = self._split(s)
        system = s1[..., None, None] * self._precision + 2 * self.lam * np.eye(self.shape[1])
        right = (s2 @ self._precision)[..., None]
        return solve_each(system, right)[..., 0].reshape(*s.shape[:-1], -1)

    def project(self, s: NDArray) -> NDArray:
        s1, s2 = self._split(s)
        return self._joined(_on_simplex(s1), s2)

    def phi(self, theta: NDArray) -> NDArray:
        m = theta.reshape(*theta.shape[:-1], *self.shape)
        turned = m @ self._precision
        return self._joined(-0.5 * (turned * m).sum(axis=-1), turned)

    def penalty(self, theta: NDArray) -> NDArray:
        return self.lam * (theta**2).sum(axis=-1)


def _on_simplex(x: NDArray) -> NDArray:
    """Euclidean projection of each row on the unit simplex."""
    falling = -np.sort(-x, axis=-1)
    excess = np.cumsum(falling, axis=-1) - 1.0
    count = np.arange(1, x.shape[-1] + 1)
    last = (falling * count > excess).sum(axis=-1, keepdims=True) - 1
    shift = np.take_along_axis(excess, last, axis=-1) / (last + 1)
    return np.maximum(x - shift, 0.0)
