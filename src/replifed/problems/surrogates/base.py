"""Majorise-minimise with surrogates that are linear in a statistic.

A family offers, for a loss l(z, theta) and a penalty g(theta) (Dieuleveut et al. 2025, Section 2):

* MM-1: l(z, theta) <= l(z, tau) + psi(theta) - psi(tau) - <sbar(z, tau), phi(theta) - phi(tau)>, with
  equality at theta = tau;
* MM-2: T(s) = argmin_theta g(theta) + psi(theta) - <s, phi(theta)>, unique for s in a convex set S.

So a surrogate is known by its statistic s, statistics of several clients average to that of their
mixture, and MM is the iteration theta <- T(E sbar(Z, theta)), or s <- E sbar(Z, T(s)).
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from replifed.randomness import Streams


class Family(Protocol):
    """A family of surrogates. Leading axes broadcast; samples are the axis before the last of `Z`."""

    @property
    def parameters(self) -> int:
        """d, coordinates of theta."""

    @property
    def statistics(self) -> int:
        """q, coordinates of s."""

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        """Means of l(z, theta), (...), and of sbar(z, theta), (..., q), over the samples Z (..., m, p)."""

    def sbar(self, Z: NDArray, theta: NDArray, among: Any = None) -> NDArray:
        """Mean over the samples of sbar(z, theta), shape (..., q); see `watch` for `among`."""
        return self.expectations(Z, theta)[1]

    def watch(self, Z: NDArray) -> None:
        """Announce that calls will use the samples Z (S, N, m, p) repeatedly, which allows warm starts.

        A call on a part of Z passes as `among` its index in (R, N, m), of samples and of their model.
        """
        return None

    def T(self, s: NDArray) -> NDArray:
        """Minimiser of the surrogate, (..., q) -> (..., d)."""

    def project(self, s: NDArray) -> NDArray:
        """Euclidean projection on S."""
        return s

    def phi(self, theta: NDArray) -> NDArray:
        """(..., d) -> (..., q)."""

    def psi(self, theta: NDArray) -> NDArray:
        """(..., d) -> (...)."""
        return np.zeros(theta.shape[:-1])

    def penalty(self, theta: NDArray) -> NDArray:
        """g, (..., d) -> (...); infinite outside its domain."""
        return np.zeros(theta.shape[:-1])


@runtime_checkable
class Surrogate(Protocol):
    """Capability of a federated problem: min over theta of sum_i mu_i E_i l(Z, theta) + g(theta)."""

    parameters: int

    def start(self, streams: Streams) -> NDArray:
        """Statistic s_0, shape (R, q)."""

    def oracle(self, theta: NDArray, chosen: NDArray, batch: NDArray | None) -> NDArray:
        """Each chosen client's mean of sbar(z, theta) over its minibatch, shape (R, c, q)."""

    def mirror(self, theta: NDArray) -> NDArray:
        """sum_i mu_i E_i sbar(Z, theta), shape (R, q)."""

    def T(self, s: NDArray) -> NDArray:
        """Minimiser of the surrogate, (..., q) -> (..., d)."""

    def project(self, s: NDArray) -> NDArray:
        """Projection on S."""


class FederatedSurrogate:
    """A family of surrogates on the data of N clients that hold equally many samples.

    Samples Z are (S, N, m, p), where S is 1 if all runs share their data. If Z has N = 1 and `n_clients` is
    larger, all clients hold the same samples, which are evaluated once. Methods start from the `mirror` of
    `theta` (S, d). The weights mu_i are equal by default.
    """

    def __init__(
        self,
        family: Family,
        Z: NDArray,
        theta: NDArray,
        *,
        n_clients: int | None = None,
        weights: NDArray | None = None,
    ) -> None:
        self.family, self.Z, self.theta0 = family, Z, theta
        S, distinct, m, _ = Z.shape
        self.n_clients = distinct if n_clients is None else n_clients
        if distinct not in (1, self.n_clients):
            raise ValueError(f"samples of {distinct} clients for {self.n_clients} clients")
        mu = np.full(self.n_clients, 1 / self.n_clients) if weights is None else np.asarray(weights, float)
        self.weights = np.broadcast_to(mu, (S, self.n_clients))
        self.sizes = np.full((S, self.n_clients), m)
        self.dim, self.parameters, self.dtype = family.statistics, family.parameters, Z.dtype
        self.T, self.project = family.T, family.project
        family.watch(Z)
        # The last model that all samples were evaluated at, each client's statistic there, and the means.
        self._last: tuple[NDArray, NDArray, tuple[NDArray, NDArray]] | None = None

    def start(self, streams: Streams) -> NDArray:
        theta = np.broadcast_to(self.theta0, (len(streams), self.parameters))
        return self.mirror(theta).copy()

    def oracle(self, theta: NDArray, chosen: NDArray | None, batch: NDArray | None) -> NDArray:
        """Mean of sbar(z, theta), (R, d) -> (R, c, q), over a minibatch of each chosen client.

        `chosen` clients are (R or 1, c), minibatches (R or 1, c, b); None stands for all clients or all
        samples.
        """
        clients = np.arange(self.n_clients)[None] if chosen is None else chosen
        if batch is None and self._last is not None and np.array_equal(self._last[0], theta):
            sbar = self._last[1]
            everyone = np.broadcast_to(sbar, (len(sbar), self.n_clients, self.dim))
            return np.take_along_axis(everyone, clients[..., None], axis=1)
        if self.Z.shape[1] == 1 and batch is None:
            all_alike = self.family.sbar(self.Z, theta[:, None])
            return np.broadcast_to(all_alike, (len(all_alike), clients.shape[1], self.dim))
        among = self._among(len(theta), clients, batch)
        return self.family.sbar(self._samples(clients, batch), theta[:, None], among)

    def _among(self, runs: int, clients: NDArray, batch: NDArray | None) -> tuple[NDArray, ...]:
        """Index of each run's samples, as `_samples` takes them, in (R, N, m)."""
        run = np.arange(runs)[:, None]
        index = clients if self.Z.shape[1] > 1 else np.zeros_like(clients)
        return (run, index) if batch is None else (run[:, :, None], index[:, :, None], batch)

    def _samples(self, clients: NDArray, batch: NDArray | None) -> NDArray:
        if batch is None and clients.shape == (1, self.n_clients):
            return self.Z
        runs = max(len(self.Z), len(clients), 1 if batch is None else len(batch))
        clients = np.broadcast_to(clients, (runs, clients.shape[1]))
        run = np.arange(runs)[:, None] if len(self.Z) > 1 else np.zeros((1, 1), dtype=int)
        index = clients if self.Z.shape[1] > 1 else np.zeros_like(clients)
        if batch is None:
            return self.Z[run, index]
        return self.Z[run[:, :, None], index[:, :, None], np.broadcast_to(batch, (runs, *batch.shape[1:]))]

    def mirror(self, theta: NDArray) -> NDArray:
        """sum_i mu_i E_i sbar(Z, theta), shape (R, q)."""
        return self._expectations(theta)[1]

    def loss(self, theta: NDArray) -> NDArray:
        """W(theta), the objective on all data, shape (R,)."""
        return self._expectations(theta)[0] + self.family.penalty(theta)

    def _expectations(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        # Metrics ask for the objective and for the mirror at one theta, the next round's clients for their
        # answers there, and codes cost the most.
        if self._last is None or not np.array_equal(self._last[0], theta):
            loss, sbar = self.family.expectations(self.Z, theta[:, None])
            weights = self.weights if self.Z.shape[1] > 1 else self.weights.sum(axis=1, keepdims=True)
            mean = (weights * loss).sum(axis=1), (weights[..., None] * sbar).sum(axis=1)
            self._last = theta.copy(), sbar, mean
        return self._last[2]
