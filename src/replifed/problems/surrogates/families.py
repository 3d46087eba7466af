"""Families of surrogates: means (Remark 1), Jensen's, that is EM (Example 2), and variational (Example 3)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.operators.lasso import lasso
from replifed.operators.matrices import solve_each
from replifed.problems.surrogates.base import Family


class _Mean(Family):
    """sbar = z for one number z, whatever theta."""

    parameters = 1
    statistics = 1

    def sbar(self, Z: NDArray, theta: NDArray, among: Any = None) -> NDArray:
        return np.broadcast_to(Z.mean(axis=-2), (*np.broadcast_shapes(Z.shape[:-2], theta.shape[:-1]), 1))


@dataclass(frozen=True, kw_only=True)
class Location(_Mean):
    """First interpretation of Remark 1: l(z, theta) = (theta - z)^2 / 2 on an interval; T clips.

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
    """Second interpretation of Remark 1: l(z, theta) = theta z - log theta for theta > 0; T inverts.

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


@dataclass(frozen=True, kw_only=True)
class Poisson(Family):
    """Counts with a random effect: z | h ~ Poisson(exp(theta + h)), h ~ N(0, 1), prior exp(-lam e^theta).

    phi = (theta, -e^theta), psi = 0, sbar = (z, E[e^h | z, theta]), T(s) = log(s_1 / (s_2 + lam)).

    Integrals over h use Gauss-Hermite quadrature, for each count centred and scaled at the mode of
    p(z, h | theta). With 40 nodes, the loss and E[e^h | z, theta] have relative errors below 1e-9 for counts
    up to 1000 and |theta| <= 6. The nodes move with theta, so the surrogate majorises the computed loss, and
    has its gradient, only up to 1e-8.
    """

    lam: float  # weight of the prior, above 0
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
    """The `Poisson` model with a known `mean` E[Z] over all clients, and a single statistic.

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


class _Pair(Family):
    """Families whose statistic is two flattened arrays in a row; theta has the shape of the second."""

    @property
    @abstractmethod
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, int]]:
        """Shapes of the two arrays."""

    @property
    def parameters(self) -> int:
        return math.prod(self.shapes[1])

    @property
    def statistics(self) -> int:
        return math.prod(self.shapes[0]) + self.parameters

    def _split(self, s: NDArray) -> tuple[NDArray, NDArray]:
        lead, (first, second) = s.shape[:-1], self.shapes
        s1, s2 = np.split(s, [math.prod(first)], axis=-1)
        return s1.reshape(*lead, *first), s2.reshape(*lead, *second)

    def _joined(self, s1: NDArray, s2: NDArray) -> NDArray:
        lead = s2.shape[:-2]
        return np.concatenate([s1.reshape(*lead, -1), s2.reshape(*lead, -1)], axis=-1)

    def _matrix(self, theta: NDArray) -> NDArray:
        return theta.reshape(*theta.shape[:-1], *self.shapes[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianMixture(_Pair):
    """Means of L Gaussians with known weights w and one known covariance Gamma; g = lam sum_l |m_l|^2.

    sbar = (r_l, z r_l) with r the posterior weights, phi = (-m_l' Gamma^-1 m_l / 2, Gamma^-1 m_l), psi = 0,
    T: m_l = (s1_l Gamma^-1 + 2 lam I)^-1 Gamma^-1 s2_l. S: s1 in the unit simplex.
    """

    weights: NDArray  # (L,)
    covariance: NDArray  # (p, p)
    lam: float  # above 0

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, int]]:
        L, p = len(self.weights), len(self.covariance)
        return (L,), (L, p)

    @cached_property
    def _precision(self) -> NDArray:
        return np.linalg.inv(self.covariance)

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        away = Z[..., :, None, :] - self._matrix(theta)[..., None, :, :]
        joint = np.log(self.weights) - 0.5 * ((away @ self._precision) * away).sum(axis=-1)
        top = joint.max(axis=-1, keepdims=True)
        r = np.exp(joint - top)
        total = r.sum(axis=-1, keepdims=True)
        r /= total
        constant = 0.5 * (Z.shape[-1] * np.log(2 * np.pi) + np.linalg.slogdet(self.covariance)[1])
        loss = constant - top[..., 0] - np.log(total[..., 0])
        s2 = np.swapaxes(r, -1, -2) @ Z / Z.shape[-2]
        return loss.mean(axis=-1), self._joined(r.mean(axis=-2), s2)

    def T(self, s: NDArray) -> NDArray:
        s1, s2 = self._split(s)
        system = s1[..., None, None] * self._precision + 2 * self.lam * np.eye(len(self.covariance))
        right = (s2 @ self._precision)[..., None]
        return solve_each(system, right)[..., 0].reshape(*s.shape[:-1], -1)

    def project(self, s: NDArray) -> NDArray:
        s1, s2 = self._split(s)
        return self._joined(_on_simplex(s1), s2)

    def phi(self, theta: NDArray) -> NDArray:
        m = self._matrix(theta)
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


@dataclass(frozen=True, kw_only=True)
class DictionaryLearning(_Pair):
    """Problem (28): l(z, theta) = min_h |z - theta h|^2 / 2 + lam |h|_1, g = eta |theta|_F^2, theta (p, K).

    sbar = (h h', z h') at the minimising h, phi = (-theta'theta / 2, theta), psi = 0 (eqs. 15 to 17), and
    T(s) = s2 (s1 + 2 eta I)^-1. S: s1 symmetric positive semi-definite, s2 free.
    """

    features: int  # p
    atoms: int  # K
    lam: float  # above 0, as eta
    eta: float
    _last: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, int]]:
        return (self.atoms, self.atoms), (self.features, self.atoms)

    def watch(self, Z: NDArray) -> None:
        """See `Family.watch`: the search of a sample's code starts from its last code."""
        self._last.clear()
        self._last["samples"] = Z

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        h, D = self._coded(Z, theta)
        away = Z - h @ np.swapaxes(D, -1, -2)
        loss = 0.5 * (away**2).sum(axis=-1) + self.lam * np.abs(h).sum(axis=-1)
        return loss.mean(axis=-1), self._statistic(Z, h)

    def sbar(self, Z: NDArray, theta: NDArray, among: Any = None) -> NDArray:
        return self._statistic(Z, self._coded(Z, theta, among)[0])

    def _coded(self, Z: NDArray, theta: NDArray, among: Any = None) -> tuple[NDArray, NDArray]:
        D = self._matrix(theta)
        correlations = Z @ D
        gram = np.swapaxes(D, -1, -2) @ D
        *lead, m, K = correlations.shape
        if len(lead) > 1 and gram.shape[:-2] == (*lead[:-1], 1):
            # One dictionary for all clients of a run: their samples go into one problem.
            m *= lead[-1]
        else:
            gram = np.broadcast_to(gram, (*lead, K, K))
        flat = correlations.reshape(-1, m, K)
        whole, codes, guess = Z is self._last.get("samples"), self._last.get("codes"), None
        if codes is not None and len(codes) == len(correlations) and (whole or among is not None):
            guess = (codes if whole else codes[among]).reshape(flat.shape)
        h = lasso(gram.reshape(-1, K, K), flat, self.lam, guess).reshape(correlations.shape)
        if whole:
            self._last["codes"] = h
        elif codes is not None and guess is not None:
            codes[among] = h
        return h, D

    def _statistic(self, Z: NDArray, h: NDArray) -> NDArray:
        m = Z.shape[-2]
        s1 = np.swapaxes(h, -1, -2) @ h / m
        s2 = np.swapaxes(Z, -1, -2) @ h / m
        return self._joined(s1, s2)

    def T(self, s: NDArray) -> NDArray:
        s1, s2 = self._split(s)
        system = s1 + 2 * self.eta * np.eye(self.atoms)
        theta = np.swapaxes(solve_each(np.swapaxes(system, -1, -2), np.swapaxes(s2, -1, -2)), -1, -2)
        return theta.reshape(*s.shape[:-1], -1)

    def project(self, s: NDArray) -> NDArray:
        s1, s2 = self._split(s)
        sound = np.isfinite(s1).all(axis=(-1, -2), keepdims=True)
        symmetric = np.where(sound, 0.5 * (s1 + np.swapaxes(s1, -1, -2)), 0.0)
        values, vectors = np.linalg.eigh(symmetric)
        nearest = (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        return self._joined(np.where(sound, nearest, s1), s2)

    def phi(self, theta: NDArray) -> NDArray:
        D = self._matrix(theta)
        return self._joined(-0.5 * np.swapaxes(D, -1, -2) @ D, D)

    def penalty(self, theta: NDArray) -> NDArray:
        return self.eta * (theta**2).sum(axis=-1)
