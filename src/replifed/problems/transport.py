"""Transport maps between a mixture held by clients and a public measure, the map between them known.

The Wasserstein-2 benchmark of Korotin et al. (Do neural optimal transport solvers work?, NeurIPS 2021): P is
a mixture of three Gaussians, and Q its image under the gradient of a convex potential, which is therefore
the optimal map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from replifed.problems.icnn import ICNN, benchmark_hidden

# Strong convexity of the trained networks.
_STRONG = 1e-4


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """The benchmark's P in R^dim: centres on a grid, covariances from random maps, variance dim."""

    dim: int
    # Number of components, and the standard deviation of each before standardising.
    components: ClassVar[int] = 3
    std: ClassVar[float] = 0.4

    @cached_property
    def _drawn(self) -> tuple[NDArray, NDArray]:
        """Centres (k, d) and maps (k, d, d)."""
        k, d = self.components, self.dim
        rng = np.random.RandomState(0)  # numpy's legacy generator and the seed of the benchmark
        centres = np.stack([rng.choice(k, k, replace=False) for _ in range(d)], axis=1) - (k - 1) / 2
        maps = rng.normal(size=(k, d, d))
        maps /= np.linalg.norm(maps, axis=2, keepdims=True)
        scale = np.sqrt(((centres**2).sum(axis=1).mean() + d * self.std**2) / d)
        return centres / scale, maps / scale

    def sample(self, rng: np.random.Generator, size: int) -> NDArray:
        """Draw (size, dim)."""
        centres, maps = self._drawn
        which = rng.integers(self.components, size=size)
        noise = rng.standard_normal((size, self.dim))
        return (maps[which] @ noise[:, :, None])[:, :, 0] * self.std + centres[which]


class TrueMap:
    """Gradient of the sum of two networks, shifted and scaled to mean 0 and variance dim on P.

    Parameters
    ----------
    pair : array, shape (2, parameters)
        Parameters of both networks.
    dim : int
    samples : array, shape (n, dim)
        Of P, for the standardisation.
    """

    def __init__(self, pair: NDArray, dim: int, samples: NDArray) -> None:
        self.net = ICNN(dim=dim, hidden=benchmark_hidden(dim), strong=1e-2)
        self.pair = np.asarray(pair, dtype=float)
        self.shift, self.scale = 0.0, 1.0
        pushed = self(samples)
        self.shift = pushed.mean(axis=0)
        self.scale = 1 / np.sqrt(pushed.var(axis=0).mean())

    def __call__(self, x: NDArray) -> NDArray:
        """T*(x), (n, dim) -> (n, dim)."""
        return self.scale * (self.net.push(self.pair, x[None]).sum(axis=0) - self.shift)


@runtime_checkable
class Transport(Protocol):
    """Capability of a federated transport problem."""

    net: ICNN

    def sources(self, chosen: NDArray, batch: NDArray | None) -> NDArray:
        """Samples of P of each chosen client's minibatch, or all its samples, (R or 1, c, b, dim)."""

    def targets(self, batch: NDArray) -> NDArray:
        """Public samples of Q, (R or 1, b, dim)."""


class FederatedTransport:
    """Samples of P split between clients, public samples of Q, and how far a map is from the true one.

    Parameters
    ----------
    sources : array, shape (N, m, dim)
        The clients' samples of P.
    targets : array, shape (n, dim)
        Public samples of Q.
    tests : array, shape (n, dim)
        Fresh samples of P, on which maps are compared.
    true_map : callable
        T*.
    """

    def __init__(self, sources: NDArray, targets: NDArray, tests: NDArray, true_map: Any) -> None:
        N, m, dim = sources.shape
        self.n_clients, self.dtype = N, np.dtype(np.float32)
        self.net = ICNN(dim=dim, hidden=benchmark_hidden(dim), strong=_STRONG)
        self.dim = self.net.parameters
        self.sizes, self.weights = np.full((1, N), m), np.full((1, N), 1 / N)
        self._sources, self._targets = sources.astype(np.float32), targets.astype(np.float32)
        self._tests, self._images = tests.astype(np.float32), true_map(tests)
        self._variance = self._images.var(axis=0).sum()
        self.n_targets = len(targets)

    def sources(self, chosen: NDArray, batch: NDArray | None) -> NDArray:
        return self._sources[chosen] if batch is None else self._sources[chosen[:, :, None], batch]

    def targets(self, batch: NDArray) -> NDArray:
        return self._targets[batch]

    def uvp(self, omega: NDArray) -> NDArray:
        """L2-UVP of grad f_omega, in percent: 100 E|T(x) - T*(x)|^2 / Var(Q), Var the covariance's trace."""
        return self._uvp(self.net.push(omega, self._tests))

    def _uvp(self, images: NDArray) -> NDArray:
        return 100 * ((images - self._images) ** 2).sum(axis=-1).mean(axis=-1) / self._variance

    def linear_uvp(self) -> float:
        """L2-UVP of the best linear map between Gaussians with the moments of P and Q."""
        from scipy.linalg import sqrtm

        x, y = self._tests.astype(float), self._images
        root = np.real(sqrtm(np.cov(x.T)))
        inverse = np.linalg.inv(root)
        weight = inverse @ np.real(sqrtm(root @ np.cov(y.T) @ root)) @ inverse
        return float(self._uvp((x - x.mean(axis=0)) @ weight.T + y.mean(axis=0)))
