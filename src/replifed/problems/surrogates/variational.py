"""Variational surrogates: l(z, theta) = min_h of a function of (z, theta, h) (Example 3, Section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.operators.lasso import lasso
from replifed.operators.linear_systems import solve_each
from replifed.problems.surrogates.base import Family


@dataclass(frozen=True, kw_only=True)
class DictionaryLearning(Family):
    """Problem (28): l(z, theta) = min_h |z - theta h|^2 / 2 + lam |h|_1, g = eta |theta|_F^2, theta (p, K).

    sbar = (h h', z h') at the minimising h, phi = (-theta'theta / 2, theta), psi = 0 (eqs. 15 to 17), and
    T(s) = s2 (s1 + 2 eta I)^-1. S: s1 symmetric positive semi-definite, s2 free. Statistics are flat, s1
    first, and so is theta, row by row.

    Parameters
    ----------
    features : int
        p.
    atoms : int
        K.
    lam, eta : float
        Above 0.
    """

    features: int
    atoms: int
    lam: float
    eta: float
    _last: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def parameters(self) -> int:
        return self.features * self.atoms

    @property
    def statistics(self) -> int:
        return self.atoms**2 + self.features * self.atoms

    def watch(self, Z: NDArray) -> None:
        """Expect these very samples time and again: their last codes are where the next search starts."""
        self._last.clear()
        self._last["samples"] = Z

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        h, D = self._coded(Z, theta)
        away = Z - h @ np.swapaxes(D, -1, -2)
        loss = 0.5 * (away**2).sum(axis=-1) + self.lam * np.abs(h).sum(axis=-1)
        return loss.mean(axis=-1), self._statistic(Z, h)

    def sbar(self, Z: NDArray, theta: NDArray) -> NDArray:
        return self._statistic(Z, self._coded(Z, theta)[0])

    def _coded(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        D = theta.reshape(*theta.shape[:-1], self.features, self.atoms)
        correlations = Z @ D
        gram = np.swapaxes(D, -1, -2) @ D
        lead, (m, K) = correlations.shape[:-2], correlations.shape[-2:]
        if len(lead) > 1 and gram.shape[:-2] == (*lead[:-1], 1):
            # One dictionary for all clients of a run: their samples go into one problem.
            flat = correlations.reshape(-1, lead[-1] * m, K)
        else:
            flat = correlations.reshape(-1, m, K)
            gram = np.broadcast_to(gram, (*lead, K, K))
        watched = Z is self._last.get("samples")
        guess = self._last.get("codes") if watched else None
        if guess is not None and guess.shape != flat.shape:
            guess = None
        h = lasso(gram.reshape(-1, K, K), flat, self.lam, guess)
        if watched:
            self._last["codes"] = h
        return h.reshape(correlations.shape), D

    def _statistic(self, Z: NDArray, h: NDArray) -> NDArray:
        m = Z.shape[-2]
        s1 = np.swapaxes(h, -1, -2) @ h / m
        s2 = np.swapaxes(Z, -1, -2) @ h / m
        return self._joined(s1, s2)

    def _split(self, s: NDArray) -> tuple[NDArray, NDArray]:
        p, K = self.features, self.atoms
        return s[..., : K * K].reshape(*s.shape[:-1], K, K), s[..., K * K :].reshape(*s.shape[:-1], p, K)

    def _joined(self, s1: NDArray, s2: NDArray) -> NDArray:
        lead = s2.shape[:-2]
        return np.concatenate([s1.reshape(*lead, -1), s2.reshape(*lead, -1)], axis=-1)

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
        D = theta.reshape(*theta.shape[:-1], self.features, self.atoms)
        return self._joined(-0.5 * np.swapaxes(D, -1, -2) @ D, D)

    def penalty(self, theta: NDArray) -> NDArray:
        return self.eta * (theta**2).sum(axis=-1)
